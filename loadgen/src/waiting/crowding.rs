//! Others that need the CPU of a thread that spins.

/// A thread that spins and waits for its CPU for more than this share of the time takes it from others, the
/// service perhaps …
const WAITED_SHARE_MAX: f64 = 0.05;
/// … if that lasts for so many looks, a tenth of a second each.
const LOOKS: u32 = 3;
/// How far apart looks are, about.
const LOOK_NS: u64 = 90_000_000;

/// Notices that others need the CPU on which a thread spins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crowding {
    last: Option<(u64, u64)>,
    crowded: u32,
}

impl Crowding {
    /// `waited_ns`: how long the thread has waited for a CPU up to now. True if it had better not spin.
    pub fn look(&mut self, now_ns: u64, waited_ns: u64) -> bool {
        let Some((then_ns, before_ns)) = self.last else {
            self.last = Some((now_ns, waited_ns));
            return false;
        };
        if now_ns - then_ns < LOOK_NS {
            return false;
        }
        let waited = waited_ns.saturating_sub(before_ns) as f64 / (now_ns - then_ns) as f64;
        self.last = Some((now_ns, waited_ns));
        self.crowded = if waited > WAITED_SHARE_MAX { self.crowded + 1 } else { 0 };
        self.crowded >= LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;

    /// Looks every 100 ms at a thread that waited for its CPU for these milliseconds of each.
    fn crowded_after(waited_ms: &[u64]) -> Option<usize> {
        let (mut crowding, mut waited) = (Crowding::default(), 0);
        crowding.look(0, 0);
        waited_ms.iter().enumerate().position(|(look, ms)| {
            waited += ms * 1000 * US;
            crowding.look((look as u64 + 1) * 100_000 * US, waited)
        })
    }

    #[test]
    fn others_on_its_cpu_end_the_spin_if_they_stay() {
        assert_eq!(crowded_after(&[0, 60, 20, 30, 40]), Some(3));
        assert_eq!(crowded_after(&[60, 60, 0, 60, 60, 0, 4, 4, 4, 4]), None, "noise that passes is none");
    }
}
