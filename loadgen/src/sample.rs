//! A random sample of the answered requests, so that what they wrote can be read again and compared after the
//! run.
//!
//! Every answered request draws a number; those with the lowest numbers stay. So every request of the run is
//! as likely to be kept as any other, whichever thread sent it, and the samples of all threads together are
//! cut down by the same rule.
//!
//! Off, it costs one test of an option per request. On, it copies each request once when it is sent, and
//! digests the bodies of those that are kept: `room` × (1 + ln(answers / room)) of them. Memory: one request
//! per connection and `room` targets per thread.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use sha2::{Digest, Sha256};

use crate::http::request::{Parts, nth};
use crate::schedule::mix;

/// Keeps the draws apart from those of Poisson arrivals and `math.random`.
const STREAM: u64 = 0x5a3f_1e00_0000_0000;

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledRequest {
    pub thread: usize,
    /// Number of the connection, of all of the run.
    pub connection: usize,
    pub method: String,
    /// As in the request line: path and query.
    pub target: String,
    /// Of the answer.
    pub status: u16,
    pub body_bytes: usize,
    /// None without a body.
    pub body_sha256: Option<[u8; 32]>,
}

#[derive(Debug)]
struct Drawn {
    draw: u64,
    /// Which answer of its thread this is, from 0.
    order: u64,
    request: SampledRequest,
}

/// The sample of one thread.
#[derive(Debug)]
pub struct Sample {
    thread: usize,
    room: usize,
    random: fastrand::Rng,
    answers: u64,
    /// The highest draw on top: the next to go.
    kept: BinaryHeap<Drawn>,
    /// What each connection of the thread sent last, by its place.
    sent: Vec<Vec<u8>>,
}

impl Sample {
    pub fn new(thread: usize, room: usize, seed: u64, connections: usize) -> Self {
        let random = fastrand::Rng::with_seed(mix(seed ^ STREAM, thread as u64));
        Self {
            thread,
            room,
            random,
            answers: 0,
            kept: BinaryHeap::new(),
            sent: vec![Vec::new(); connections],
        }
    }

    #[inline]
    pub fn sent(&mut self, place: usize, bytes: &[u8]) {
        let sent = &mut self.sent[place];
        sent.clear();
        sent.extend_from_slice(bytes);
    }

    /// Request `index` of the batch that the connection at `place` sent last has its answer.
    #[inline]
    pub fn answered(&mut self, place: usize, index: u32, connection: usize, status: u16) {
        let (draw, order) = (self.random.u64(..), self.answers);
        self.answers += 1;
        if self.kept.len() == self.room && self.kept.peek().is_none_or(|highest| highest.draw <= draw) {
            return;
        }
        let Some(parts) = nth(&self.sent[place], index) else { return };
        let request = sampled(self.thread, connection, status, &parts);
        if self.kept.len() == self.room {
            self.kept.pop();
        }
        self.kept.push(Drawn { draw, order, request });
    }
}

fn sampled(thread: usize, connection: usize, status: u16, parts: &Parts) -> SampledRequest {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    SampledRequest {
        thread,
        connection,
        method: text(parts.method),
        target: text(parts.target),
        status,
        body_bytes: parts.body.len(),
        body_sha256: (!parts.body.is_empty()).then(|| Sha256::digest(&parts.body).into()),
    }
}

/// The sample of all threads together, by thread and then in the order in which they were answered.
pub fn merged(threads: impl IntoIterator<Item = Sample>, room: usize) -> Vec<SampledRequest> {
    let mut drawn: Vec<Drawn> = threads.into_iter().flat_map(|sample| sample.kept).collect();
    drawn.sort_unstable();
    drawn.truncate(room);
    drawn.sort_unstable_by_key(|one| (one.request.thread, one.order));
    drawn.into_iter().map(|one| one.request).collect()
}

/// By draw; equal ones, which hardly come, by place.
impl Ord for Drawn {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.draw, self.request.thread, self.order).cmp(&(other.draw, other.request.thread, other.order))
    }
}

impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Drawn {}

#[cfg(test)]
mod tests {
    use super::*;

    /// `threads` threads of one connection each, which answer as many requests each; the targets are their
    /// numbers.
    fn sample(room: usize, seed: u64, answers: &[usize]) -> Vec<SampledRequest> {
        let mut first = 0;
        let one = |(thread, &count): (usize, &usize)| {
            let mut sample = Sample::new(thread, room, seed, 1);
            for number in first..first + count {
                sample.sent(0, format!("GET {number} HTTP/1.1\r\n\r\n").as_bytes());
                sample.answered(0, 0, thread, 200);
            }
            first += count;
            sample
        };
        merged(answers.iter().enumerate().map(one).collect::<Vec<_>>(), room)
    }

    fn targets(sample: &[SampledRequest]) -> Vec<usize> {
        sample.iter().map(|request| request.target.parse().unwrap()).collect()
    }

    #[test]
    fn every_answer_is_as_likely_to_be_kept_as_any_other_whichever_thread_sent_it() {
        // 300 and 100 requests; each of the 400 is kept in one of ten samples.
        let mut kept = [0u32; 400];
        let seeds = 2000;
        for seed in 0..seeds {
            targets(&sample(40, seed, &[300, 100])).iter().for_each(|&number| kept[number] += 1);
        }
        let share = |range: std::ops::Range<usize>| {
            let length = range.len() as f64;
            kept[range].iter().sum::<u32>() as f64 / length / seeds as f64
        };
        // 30 × 2 000 draws with a chance of 0.1: a standard deviation of 0.0012.
        for range in [0..30, 270..300, 300..330, 370..400] {
            let share = share(range.clone());
            assert!((share - 0.1).abs() < 0.006, "seeds 0 to {seeds}, {range:?}: {share}");
        }
    }

    #[test]
    fn the_sample_depends_on_the_seed_and_on_the_answers_alone() {
        assert_eq!(sample(5, 7, &[100, 100]), sample(5, 7, &[100, 100]));
        assert_ne!(sample(5, 7, &[100, 100]), sample(5, 8, &[100, 100]));
    }

    #[test]
    fn fewer_answers_than_room_are_all_kept_by_thread_and_in_their_order() {
        assert_eq!(targets(&sample(10, 1, &[3, 2])), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn of_a_batch_each_request_is_sampled_with_its_own_target_and_body() {
        let mut sample = Sample::new(0, 9, 1, 1);
        sample.sent(0, b"PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n");
        sample.answered(0, 0, 4, 201);
        sample.answered(0, 1, 4, 404);
        let kept = merged([sample], 9);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = kept[0]
            .body_sha256
            .map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        assert_eq!((kept[0].target.as_str(), kept[0].body_bytes, digest.as_deref()), ("/a", 3, Some(abc)));
        assert_eq!((kept[1].method.as_str(), kept[1].target.as_str(), kept[1].status), ("GET", "/b", 404));
        assert_eq!((kept[1].body_bytes, kept[1].body_sha256), (0, None));
    }
}
