//! Where requests come from: a script that makes each, or those that are sent in turn.

use std::ops::Deref;

use crate::alternation::Server;
use crate::error::Error;
use crate::http::HttpError;
use crate::http::request::Batch;
use crate::plan::Plan;
use crate::requests::{Request, Rotation};
use crate::script::WorkerState;

pub(super) struct Source<'a> {
    script: Option<WorkerState>,
    /// The requests that are sent in turn to each server, unless the script makes each.
    fixed: Option<[Rotation<'a>; 2]>,
    /// The latest string of several requests that the script made, and what it holds; empty if there was
    /// none. Scripts that pipeline return the same again and again.
    latest: (Vec<u8>, Batch),
}

/// A request, or several, as bytes.
pub(super) enum Bytes<'s> {
    Fixed(&'s [u8]),
    Made(mlua::BorrowedBytes),
}

impl Bytes<'_> {
    /// It took a script's time.
    #[inline]
    pub(super) fn were_made(&self) -> bool {
        matches!(self, Self::Made(_))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl<'a> Source<'a> {
    /// Of the thread at this place among those of all parts.
    pub(super) fn new(plan: &'a Plan, place: usize, script: Option<WorkerState>) -> Result<Self, Error> {
        let fixed = match &script {
            Some(script) if script.makes_requests() => None,
            Some(script) => {
                let request =
                    vec![Request::new(script.default_request()?).map_err(|problem| script.wrong(problem))?];
                Some([(); 2].map(|()| Rotation::new(request.clone(), 0, 1, 1)))
            }
            None => {
                let threads = plan.threads * plan.part.of;
                Some(
                    [0, 1].map(|server| Rotation::new(&plan.requests[server], place, threads, plan.series())),
                )
            }
        };
        Ok(Self { script, fixed, latest: (Vec::new(), Batch::default()) })
    }

    pub(super) fn script(&self) -> Option<&WorkerState> {
        self.script.as_ref()
    }

    pub(super) fn into_script(self) -> Option<WorkerState> {
        self.script
    }

    /// What is sent next to this server; none if the script has nothing to send. `number`: see
    /// [`crate::due::DueRequests::request_number`].
    #[inline]
    pub(super) fn next(
        &mut self,
        server: Server,
        number: Option<u64>,
    ) -> Result<Option<(Bytes<'_>, Batch)>, Error> {
        match (&mut self.fixed, &self.script) {
            (Some(rotations), _) => {
                let request = rotations[server].next(number);
                Ok(Some((Bytes::Fixed(&request.bytes), request.batch.clone())))
            }
            (None, Some(script)) => made(script, &mut self.latest),
            (None, None) => unreachable!("without a script the request is fixed"),
        }
    }
}

fn made<'s>(
    script: &WorkerState,
    latest: &mut (Vec<u8>, Batch),
) -> Result<Option<(Bytes<'s>, Batch)>, Error> {
    let Some(string) = script.request()? else { return Ok(None) };
    let bytes = string.as_bytes();
    if *bytes == *latest.0 && !bytes.is_empty() {
        return Ok(Some((Bytes::Made(bytes), latest.1.clone())));
    }
    let batch = Batch::parse(&bytes)
        .map_err(|HttpError(why)| script.wrong(format!("request() returned no request: {why}")))?;
    if batch.requests > 1 {
        latest.0.clear();
        latest.0.extend_from_slice(&bytes);
        latest.1 = batch.clone();
    }
    Ok(Some((Bytes::Made(bytes), batch)))
}
