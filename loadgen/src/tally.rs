//! What is counted, by thread and in all.

use std::collections::BTreeMap;

use crate::errors::Errors;

#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests handed to the kernel.
    pub sent: u64,
    /// Answers, the warm-up included.
    pub completed: u64,
    /// Answers to requests that were due after the warm-up.
    pub measured: u64,
    /// Answers that came after the warm-up and before the end of sending, whenever they were due: what the
    /// rate counts.
    pub completed_in_window: u64,
    /// Requests that were due before the end and never sent, because their connection was waiting or closed.
    pub unsent: u64,
    /// Requests still without an answer when the run was given up, one timeout after its end.
    pub in_flight_at_end: u64,
    /// Requests whose connection closed before their answer.
    pub lost: u64,
    pub bytes_read: u64,
    pub errors: Errors,
    /// Answers by status.
    pub answers: BTreeMap<u16, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.measured += other.measured;
        self.completed_in_window += other.completed_in_window;
        self.unsent += other.unsent;
        self.in_flight_at_end += other.in_flight_at_end;
        self.lost += other.lost;
        self.bytes_read += other.bytes_read;
        self.errors.add(&other.errors);
        for (&status, count) in &other.answers {
            *self.answers.entry(status).or_default() += count;
        }
    }

    /// Answers with a status over 399, as wrk2 counts them.
    pub fn error_statuses(&self) -> u64 {
        self.answers.range(400..).map(|(_, count)| count).sum()
    }

    /// Answers with a status that is not among those expected; none are unexpected if nothing is said.
    pub fn unexpected(&self, expect: &[u16]) -> u64 {
        let wrong = |status: &u16| !expect.is_empty() && !expect.contains(status);
        self.answers.iter().filter(|(status, _)| wrong(status)).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_judged_by_wrk2s_rule_and_by_ours() {
        let tally =
            Tally { answers: BTreeMap::from([(200, 5), (304, 1), (404, 2), (503, 3)]), ..Tally::default() };
        assert_eq!(tally.error_statuses(), 5);
        assert_eq!(tally.unexpected(&[]), 0);
        assert_eq!(tally.unexpected(&[200, 404]), 4);
    }
}
