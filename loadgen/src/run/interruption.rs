//! Ctrl-C and SIGTERM: the first ends the run early and in order, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, exit};

/// Which signal asked for an early end, if any. A second one ends the program at once.
pub(super) struct Interruption {
    seen: Arc<AtomicUsize>,
    /// Set by the first signal, and by whoever else ends the run early; workers look at it, so that nobody
    /// need wake for it.
    pub(super) stop: Arc<AtomicBool>,
}

impl Interruption {
    pub(super) fn watch() -> Result<Self, Error> {
        let (seen, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let again = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let code = exit::SIGNAL_BASE + signal;
            let register = || -> std::io::Result<()> {
                signal_hook::flag::register_conditional_shutdown(signal, code, again.clone())?;
                signal_hook::flag::register(signal, again.clone())?;
                signal_hook::flag::register(signal, stop.clone())?;
                signal_hook::flag::register_usize(signal, seen.clone(), signal as usize).map(drop)
            };
            register().map_err(|problem| Error::Failed(format!("cannot watch for signals: {problem}")))?;
        }
        Ok(Self { seen, stop })
    }

    pub(super) fn signal(&self) -> Option<i32> {
        match self.seen.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}
