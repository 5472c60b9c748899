//! How late sends were for other reasons than the service, over all of a thread and then over all threads:
//! by the generator's own fault, and by its pauses before it tried to open a lost connection again.

use hdrhistogram::Histogram;

use crate::lateness::OwnLateness;
use crate::recorder::{Counts, LongHistogram, add_counts, histogram};

/// Of one thread.
#[derive(Debug, Default)]
pub struct OwnLatenesses {
    faults: LongHistogram,
    /// Of those sends alone that a pause made late; there are none as long as no connection is lost.
    pauses: Option<Box<LongHistogram>>,
}

/// The same as counts.
#[derive(Debug, Default)]
pub struct OwnCounts {
    faults: Counts,
    pauses: Counts,
}

impl OwnLatenesses {
    #[inline]
    pub fn record(&mut self, late: OwnLateness, times: u32) {
        self.faults.record(late.fault_ns, times);
        if late.pause_ns > 0 {
            self.pauses.get_or_insert_default().record(late.pause_ns, times);
        }
    }

    /// See [`LongHistogram::make_room`].
    pub fn make_room(&mut self) {
        self.faults.make_room();
        if let Some(pauses) = &mut self.pauses {
            pauses.make_room();
        }
    }

    pub fn into_counts(self) -> OwnCounts {
        OwnCounts {
            faults: self.faults.into_counts(),
            pauses: self.pauses.map_or_else(Counts::new, |pauses| pauses.into_counts()),
        }
    }
}

/// Of all threads, microseconds.
#[derive(Clone, Debug)]
pub struct OwnHistograms {
    /// Of every send.
    pub faults: Histogram<u64>,
    /// Of those that a pause made late.
    pub pauses: Histogram<u64>,
}

impl Default for OwnHistograms {
    fn default() -> Self {
        Self { faults: histogram(), pauses: histogram() }
    }
}

impl OwnHistograms {
    pub fn add(&mut self, counts: &OwnCounts) {
        add_counts(&mut self.faults, &counts.faults);
        add_counts(&mut self.pauses, &counts.pauses);
    }

    /// Pauses of every send: 0 of those that none made late.
    pub fn pauses_of_all(&self) -> Histogram<u64> {
        let mut all = self.pauses.clone();
        all.record_n(0, self.faults.len().saturating_sub(self.pauses.len())).expect("0 is within all bounds");
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::percentile;

    #[test]
    fn pauses_are_known_apart_from_faults_and_most_sends_have_none() {
        let mut thread = OwnLatenesses::default();
        (0..3).for_each(|_| thread.record(OwnLateness { fault_ns: 2_000_000, pause_ns: 0 }, 1));
        thread.record(OwnLateness { fault_ns: 0, pause_ns: 30_000 }, 1);
        thread.make_room();
        let mut all = OwnHistograms::default();
        all.add(&thread.into_counts());
        all.add(&OwnLatenesses::default().into_counts());
        assert_eq!((all.faults.len(), all.pauses.len(), all.pauses.max()), (4, 1, 30));
        let pauses = all.pauses_of_all();
        assert_eq!((pauses.len(), percentile(&pauses, 75.0), percentile(&pauses, 99.0)), (4, 0, 30));
    }
}
