//! When each request is due at an even rate. Pure: no clock, no sockets; times are nanoseconds after the
//! start of the run.
//!
//! Constant throughput over n serial connections at R requests per second: request i of connection k is due
//! at `(k + i × n) / R` seconds. All requests of all connections together are thus R per second, evenly
//! spread; a connection that waits for an answer is late with its next request, which is sent as soon as that
//! answer has come.
//!
//! Requests due before the end belong to the run; one due at the end or later does not, however late anyone
//! looks at it.

/// The due time of what does not belong to the run.
pub const NEVER: u64 = u64::MAX;

/// Due times of all connections of a run.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    ns_per_request: f64,
    connections: u64,
    end_ns: u64,
}

impl Uniform {
    pub fn new(rate_rps: f64, connections: usize, end_ns: u64) -> Self {
        Self { ns_per_request: 1e9 / rate_rps, connections: connections as u64, end_ns }
    }

    /// Due time of request `request` of connection `connection`, both counted from 0; [`NEVER`] if not before
    /// the end.
    ///
    /// Computed from the start each time, so that rounding does not add up: exact to a nanosecond for 2^53 ns
    /// (104 days).
    #[inline]
    pub fn due_ns(&self, connection: usize, request: u64) -> u64 {
        let place = connection as u64 + request * self.connections;
        let due_ns = (place as f64 * self.ns_per_request).round() as u64;
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// Connections that share the rate.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// How many requests of `connection` are due before `by_ns`, and before the end.
    pub fn due_before(&self, connection: usize, by_ns: u64) -> u64 {
        let by_ns = by_ns.min(self.end_ns);
        let estimate = by_ns as f64 / self.ns_per_request / self.connections as f64;
        let mut count = (estimate as u64).saturating_sub(2);
        while self.due_ns(connection, count) < by_ns {
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_i_of_connection_k_is_due_at_its_place_in_the_period() {
        let uniform = Uniform::new(2000.0, 64, NEVER);
        for (connection, request) in [(0, 0), (1, 0), (63, 0), (0, 1), (17, 12345)] {
            let seconds = (connection as f64 / 64.0 + request as f64) * 64.0 / 2000.0;
            assert_eq!(
                uniform.due_ns(connection, request),
                (seconds * 1e9).round() as u64,
                "k={connection} i={request}"
            );
        }
    }

    #[test]
    fn all_connections_together_are_evenly_spread() {
        let uniform = Uniform::new(1e6, 10_000, NEVER);
        let mut due: Vec<u64> = (0..10_000).flat_map(|k| (0..3).map(move |i| uniform.due_ns(k, i))).collect();
        due.sort_unstable();
        assert!(due.windows(2).all(|pair| pair[1] - pair[0] == 1000));
    }

    #[test]
    fn rounding_does_not_add_up_over_a_day() {
        let uniform = Uniform::new(3.0, 1, NEVER);
        assert_eq!(uniform.due_ns(0, 3 * 86_400), 86_400_000_000_000);
    }

    #[test]
    fn half_a_request_per_second_is_one_every_two_seconds() {
        let uniform = Uniform::new(0.5, 1, NEVER);
        assert_eq!([0, 1, 2].map(|i| uniform.due_ns(0, i)), [0, 2_000_000_000, 4_000_000_000]);
    }

    #[test]
    fn requests_due_before_an_end_are_those_whose_time_is_before_it() {
        for (rate, connections, end) in
            [(0.5, 1, 4_000_000_000), (20_000.0, 64, 1_000_000_000), (999.9, 7, 123_456_789), (1e9, 3, 1000)]
        {
            let uniform = Uniform::new(rate, connections, NEVER);
            for k in 0..connections {
                let counted = (0..).take_while(|&i| uniform.due_ns(k, i) < end).count() as u64;
                assert_eq!(uniform.due_before(k, end), counted, "rate={rate} k={k}");
            }
        }
    }

    #[test]
    fn what_is_due_at_the_end_does_not_belong_to_the_run_and_what_is_due_just_before_it_does() {
        let second = 1_000_000_000;
        assert_eq!(Uniform::new(10.0, 10, second).due_ns(0, 1), NEVER);
        assert_eq!(Uniform::new(10.0, 10, second + 1).due_ns(0, 1), second);
        for rate in [0.5, 1.0, 3.0, 999.9, 20_000.0, 1e6] {
            let due: u64 = (0..64).map(|k| Uniform::new(rate, 64, second).due_before(k, u64::MAX)).sum();
            assert_eq!(due, rate.ceil() as u64, "rate={rate}");
        }
    }
}
