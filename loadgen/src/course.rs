//! How far the run of one thread has come: whether a request may still leave, whether answers are awaited,
//! and when it is over. Pure: it is told what happened and when.
//!
//! ```text
//! new → start → (sent → answered* → is_free)* → end
//! ```
//!
//! Times are monotonic nanoseconds.

use crate::error::Error;
use crate::plan::Plan;

#[derive(Debug)]
pub struct Course {
    /// Far away until [`Course::start`].
    start_ns: u64,
    duration_ns: u64,
    timeout_ns: u64,
    /// See [`Plan::ends_by_answers`].
    ends_by_answers: bool,
    /// In a closed loop that ends with a number of requests: those left of this thread's.
    requests_left: Option<u64>,
    /// Connections that wait for answers.
    busy: usize,
    last_sent_ns: u64,
    /// Since when an answer is awaited: the latest came, the run began, or a connection was still free.
    awaited_ns: u64,
    /// Nothing new is sent, and nothing opened again.
    is_ending: bool,
    failure: Option<Error>,
}

impl Course {
    pub fn new(plan: &Plan, thread: usize) -> Self {
        Self {
            start_ns: u64::MAX / 2,
            duration_ns: plan.duration_ns,
            timeout_ns: plan.timeout_ns,
            ends_by_answers: plan.ends_by_answers(),
            requests_left: plan.requests_of(thread),
            busy: 0,
            last_sent_ns: 0,
            awaited_ns: 0,
            is_ending: false,
            failure: None,
        }
    }

    pub fn start(&mut self, start_ns: u64) {
        (self.start_ns, self.awaited_ns) = (start_ns, start_ns);
    }

    #[inline]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// From here on no answer is followed by another request.
    #[inline]
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }

    /// 0 before the start.
    #[inline]
    pub fn since_start_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.start_ns)
    }

    /// When what is due so long after the start is due; never if it is never.
    #[inline]
    pub fn at_ns(&self, after_start_ns: u64) -> u64 {
        self.start_ns.saturating_add(after_start_ns)
    }

    /// Whether requests that were due before the end may leave.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.failure.is_none() && self.requests_left != Some(0)
    }

    /// Whether an answer that came by now is followed by another request.
    #[inline]
    pub fn goes_on(&self, now: u64) -> bool {
        self.may_send() && !self.is_ending && now < self.end_ns()
    }

    /// A connection waits for the answers to so many requests.
    #[inline]
    pub fn sent(&mut self, requests: u32, sent_ns: u64) {
        self.last_sent_ns = sent_ns;
        self.busy += 1;
        if let Some(left) = &mut self.requests_left {
            *left = left.saturating_sub(u64::from(requests));
        }
    }

    #[inline]
    pub fn answered(&mut self, now: u64) {
        self.awaited_ns = now;
    }

    /// A connection has all its answers, or is lost with them.
    #[inline]
    pub fn is_free(&mut self) {
        self.busy -= 1;
    }

    #[inline]
    pub fn awaits_answers(&self) -> bool {
        self.busy > 0
    }

    /// When the last request left, if an answer is awaited.
    #[inline]
    pub fn answer_sent_ns(&self) -> Option<u64> {
        self.awaits_answers().then_some(self.last_sent_ns)
    }

    /// The run is called off. The first failure is the one that is told.
    pub fn fail(&mut self, problem: Error) {
        self.failure.get_or_insert(problem);
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Failed, or a closed loop that lasts until the last answer to its number of requests has it.
    pub fn is_done(&self) -> bool {
        self.failure.is_some() || (self.requests_left == Some(0) && self.busy == 0)
    }

    /// No answer has come for the timeout, and no connection has been free to ask: a run that only answers
    /// can end would last for ever. Time in which one is free does not count: a script may have it wait for
    /// longer than the timeout, and nobody owes an answer meanwhile. Nor is it given up while the answer to
    /// the last request is not overdue, which may have left on a connection that took long to open again; but
    /// after twice the timeout it is: of connections that are lost again and again one has always just asked.
    pub fn is_given_up(&mut self, now: u64, any_is_free: impl FnOnce() -> bool) -> bool {
        if !self.ends_by_answers {
            return false;
        }
        if self.requests_left != Some(0) && any_is_free() {
            self.awaited_ns = self.awaited_ns.max(now);
        }
        let sent_ns = self.answer_sent_ns().unwrap_or(0).min(self.awaited_ns + self.timeout_ns);
        now.saturating_sub(self.awaited_ns.max(sent_ns)) >= self.timeout_ns
    }

    /// No more will be sent; how many requests were left.
    pub fn give_up(&mut self) -> u64 {
        self.requests_left.replace(0).unwrap_or(0)
    }

    /// Sending has ended.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    #[inline]
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    pub fn into_failure(self) -> Option<Error> {
        self.failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    const MS: u64 = 1_000_000;

    fn started(typed: &str) -> Course {
        let mut course = Course::new(&plan(typed), 0);
        course.start(1000 * MS);
        course
    }

    #[test]
    fn an_answer_is_followed_by_a_request_until_the_end_and_what_was_due_before_may_leave_behind_it() {
        let mut course = started("-c2 -t1 -R100 -d3s http://h/");
        assert_eq!([3999, 4000].map(|ms| course.goes_on(ms * MS)), [true, false]);
        assert!(course.may_send());
        course.end();
        assert_eq!((course.goes_on(1500 * MS), course.is_ending()), (false, true));
        assert_eq!([999, 1001].map(|ms| course.since_start_ns(ms * MS)), [0, MS]);
        assert_eq!(course.at_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn before_its_start_a_run_is_not_over_however_late_it_is() {
        let course = Course::new(&plan("-c2 -t1 -R100 -d3s http://h/"), 0);
        assert!(course.goes_on(u64::MAX / 4) && course.end_ns() > u64::MAX / 4);
    }

    #[test]
    fn an_answer_is_awaited_since_the_last_request_left_as_long_as_any_connection_is_busy() {
        let mut course = started("-c2 -t1 -R100 -d3s http://h/");
        assert_eq!(course.answer_sent_ns(), None);
        course.sent(1, 1001 * MS);
        course.sent(1, 1002 * MS);
        course.is_free();
        assert_eq!((course.awaits_answers(), course.answer_sent_ns()), (true, Some(1002 * MS)));
        course.is_free();
        assert_eq!((course.awaits_answers(), course.answer_sent_ns()), (false, None));
    }

    #[test]
    fn a_number_of_requests_ends_with_the_last_answer_and_no_more_leave_than_that() {
        let mut course = started("-c2 -t1 --closed --requests 5 http://h/");
        course.sent(1, 1001 * MS);
        course.sent(3, 1001 * MS);
        assert!(course.may_send() && !course.is_done());
        course.is_free();
        course.sent(3, 1002 * MS); // of a batch that passes the number
        assert!(!course.may_send() && !course.goes_on(1002 * MS) && !course.is_done());
        course.is_free();
        course.is_free();
        assert!(course.is_done());
    }

    #[test]
    fn the_first_failure_ends_the_run_and_is_the_one_that_is_told() {
        let mut course = started("-c2 -t1 -R100 -d3s http://h/");
        course.fail(Error::Failed("first".to_owned()));
        course.fail(Error::Failed("second".to_owned()));
        assert!(course.is_done() && !course.may_send() && !course.goes_on(1500 * MS));
        assert_eq!(course.into_failure().unwrap().to_string(), "first");
    }

    #[test]
    fn a_run_that_answers_end_is_given_up_when_none_has_come_for_the_timeout_and_nobody_could_ask() {
        let mut course = started("-c1 -t1 -T 2s --closed --requests 5 http://h/");
        course.sent(1, 1001 * MS);
        assert!(!course.is_given_up(3000 * MS, || false) && course.is_given_up(3001 * MS, || false));
        course.answered(2500 * MS);
        assert!(!course.is_given_up(4499 * MS, || false) && course.is_given_up(4500 * MS, || false));
        assert!(!course.is_given_up(6000 * MS, || true), "a free connection could ask");
        assert!(!course.is_given_up(7999 * MS, || false) && course.is_given_up(8000 * MS, || false));
        assert_eq!((course.give_up(), course.give_up()), (4, 0));
        assert!(course.is_given_up(9000 * MS, || true), "none is left that a free connection could send");
    }

    #[test]
    fn a_request_that_left_when_its_connection_was_open_again_has_the_whole_timeout_for_its_answer() {
        let mut course = started("-c1 -t1 -T 2s --closed --requests 5 http://h/");
        course.sent(1, 1001 * MS);
        course.is_free(); // lost
        course.sent(1, 2900 * MS);
        assert!(!course.is_given_up(4899 * MS, || false) && course.is_given_up(4900 * MS, || false));
        course.is_free();
        assert!(course.is_given_up(4899 * MS, || false), "nothing is under way that could be answered");
    }

    #[test]
    fn of_connections_that_are_lost_out_of_step_no_answer_is_awaited_for_longer_than_twice_the_timeout() {
        let mut course = started("-c2 -t1 -T 2s --closed --requests 1000 http://h/");
        course.sent(1, 1000 * MS);
        let mut now = 1000 * MS;
        while !course.is_given_up(now, || false) {
            assert!(now < 5000 * MS, "{now}");
            now += 400 * MS;
            course.sent(1, now);
            course.is_free(); // the other one is lost
        }
        assert!(now >= 3000 * MS, "{now}");
    }

    #[test]
    fn a_run_that_ends_at_its_time_is_never_given_up() {
        let mut course = started("-c1 -t1 -R100 -d60s -T 2s http://h/");
        course.sent(1, 1001 * MS);
        assert!(!course.is_given_up(30_000 * MS, || false));
    }
}
