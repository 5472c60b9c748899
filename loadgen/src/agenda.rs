//! Whose request is due next, among the connections of one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::schedule::Ring;

#[derive(Debug)]
pub enum Agenda {
    /// Uniform arrivals come in a fixed order.
    Ring(Ring),
    /// Poisson arrivals: (due time, place) of connections that wait for their next due time.
    Heap(BinaryHeap<Reverse<(u64, usize)>>),
    /// Closed loop: an answer is followed by the next request, nothing is due by itself.
    Nothing,
}

impl Agenda {
    /// After the start of the run; never if nothing will be due by itself.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.next_due_ns(),
            Self::Heap(heap) => heap.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns),
            Self::Nothing => u64::MAX,
        }
    }

    /// Place of a connection whose time has come; it may be busy, or ahead already.
    #[inline]
    pub fn pop(&mut self, now_ns: u64) -> Option<usize> {
        match self {
            Self::Ring(ring) => ring.pop(now_ns),
            Self::Heap(heap) => {
                heap.peek().filter(|Reverse((due_ns, _))| *due_ns <= now_ns)?;
                heap.pop().map(|Reverse((_, place))| place)
            }
            Self::Nothing => None,
        }
    }

    /// A connection waits for its next due time, which is to come.
    #[inline]
    pub fn await_due(&mut self, due_ns: u64, place: usize) {
        if let Self::Heap(heap) = self {
            heap.push(Reverse((due_ns, place)));
        }
    }
}
