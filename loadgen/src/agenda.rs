//! Which free connection sends next, among those of one thread, and when.
//!
//! Only connections that are free stand here, each at most once: a connection that waits for an answer needs
//! no waking when its next request falls due, so a slow service costs the generator nothing. That is what
//! tells the one from the other in the verdict, and why this is a heap and not a walk around all connections,
//! which would be cheaper by 50 ns or so a request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::uniform::NEVER;

/// (due time, place of the connection in its thread), the earliest first.
#[derive(Debug, Default)]
pub struct Agenda(BinaryHeap<Reverse<(u64, u32)>>);

impl Agenda {
    pub fn with_room(connections: usize) -> Self {
        Self(BinaryHeap::with_capacity(connections))
    }

    /// After the start of the run; [`NEVER`] if nothing will be due by itself.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        self.0.peek().map_or(NEVER, |Reverse((due_ns, _))| *due_ns)
    }

    /// The connection whose request is due first, if that is due by now.
    #[inline]
    pub fn pop(&mut self, now_ns: u64) -> Option<usize> {
        self.0.peek().filter(|Reverse((due_ns, _))| *due_ns <= now_ns)?;
        self.0.pop().map(|Reverse((_, place))| place as usize)
    }

    /// A connection is free, and its next request is due then.
    #[inline]
    pub fn push(&mut self, due_ns: u64, place: usize) {
        self.0.push(Reverse((due_ns, place as u32)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_in_the_order_of_their_due_times_and_not_before() {
        let mut agenda = Agenda::with_room(3);
        [(30, 0), (10, 1), (20, 2)].iter().for_each(|&(due_ns, place)| agenda.push(due_ns, place));
        assert_eq!((agenda.next_due_ns(), agenda.pop(9)), (10, None));
        assert_eq!(
            [agenda.pop(25), agenda.pop(25), agenda.pop(25), agenda.pop(30)],
            [Some(1), Some(2), None, Some(0)]
        );
        assert_eq!(agenda.next_due_ns(), NEVER);
    }
}
