//! How long connections took to open: TCP, and the TLS handshake behind it. Of all that were opened, before
//! the run and in it. Pure.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::recorder::{HIGHEST_US, histogram, microseconds};

/// Times of one thread, or of all, in microseconds.
#[derive(Clone, Debug)]
pub struct OpeningTimes {
    pub connect: Histogram<u64>,
    pub tls: Option<Handshakes>,
}

/// Of connections with TLS.
#[derive(Clone, Debug)]
pub struct Handshakes {
    /// With certificate and signature.
    pub full: Histogram<u64>,
    /// Those that went on with a session of their connection's last socket.
    pub resumed: Histogram<u64>,
    /// What was agreed on, and how often.
    pub protocols: BTreeMap<String, u64>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self { full: histogram(), resumed: histogram(), protocols: BTreeMap::new() }
    }
}

impl OpeningTimes {
    pub fn new(with_tls: bool) -> Self {
        Self { connect: histogram(), tls: with_tls.then(Handshakes::default) }
    }

    pub fn connected(&mut self, took_ns: u64) {
        record(&mut self.connect, took_ns);
    }

    pub fn shook(&mut self, took_ns: u64, resumed: bool, protocol: String) {
        let tls = self.tls.get_or_insert_default();
        record(if resumed { &mut tls.resumed } else { &mut tls.full }, took_ns);
        *tls.protocols.entry(protocol).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        let same_shape = "both have the project's one shape";
        self.connect.add(&other.connect).expect(same_shape);
        if let Some(theirs) = &other.tls {
            let own = self.tls.get_or_insert_default();
            own.full.add(&theirs.full).expect(same_shape);
            own.resumed.add(&theirs.resumed).expect(same_shape);
            theirs
                .protocols
                .iter()
                .for_each(|(name, count)| *own.protocols.entry(name.clone()).or_default() += count);
        }
    }
}

fn record(histogram: &mut Histogram<u64>, took_ns: u64) {
    histogram.saturating_record(microseconds(took_ns).min(HIGHEST_US));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_and_resumed_handshakes_are_told_apart_over_all_threads() {
        let (mut one, mut other) = (OpeningTimes::new(false), OpeningTimes::new(true));
        one.connected(20_000);
        other.connected(30_000);
        other.shook(5_000_000, false, "TLSv1_3".to_owned());
        other.shook(1_000_000, true, "TLSv1_3".to_owned());
        one.add(&other);
        let tls = one.tls.expect("one of them has TLS");
        assert_eq!(
            (one.connect.len(), tls.full.len(), tls.resumed.len(), tls.protocols["TLSv1_3"]),
            (2, 1, 1, 2)
        );
        assert!(tls.full.equivalent(tls.full.max(), 5000), "{}", tls.full.max());
    }
}
