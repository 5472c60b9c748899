//! When the wait after this one will end, so that its timer can be set ahead.

/// Guesses how long after this wait the next one ends, for a timer that is set ahead costs less.
///
/// At a constant rate waits end at about equal distances. A guess that turns out wrong costs a wake, so none
/// is made unless those before it would have been right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    /// When the last wait ended, until the next begins.
    ended_ns: Option<u64>,
    /// How far apart the ends of waits are, about.
    apart_ns: u64,
    right: u32,
}

/// So many guesses in a row are to be right before one counts …
const RIGHT_LEAST: u32 = 4;
/// … and more than these are forgotten, so that a time of other waits is noticed soon.
const RIGHT_MOST: u32 = 8;

impl Ahead {
    pub fn ended(&mut self, until_ns: u64) {
        self.ended_ns = Some(until_ns);
    }

    /// A wait begins that is to end between these; how long after it the next one will.
    pub fn begins(&mut self, earliest_ns: u64, wanted_ns: u64, latest_ns: u64) -> Option<u64> {
        if let Some(ended_ns) = self.ended_ns.take() {
            let was_right = (earliest_ns..=latest_ns).contains(&(ended_ns + self.apart_ns));
            self.right = if was_right { (self.right + 1).min(RIGHT_MOST) } else { self.right / 2 };
            let apart_ns = wanted_ns.saturating_sub(ended_ns);
            // An eighth of what is new: the mean of the last few.
            self.apart_ns = if self.apart_ns == 0 { apart_ns } else { (7 * self.apart_ns + apart_ns) / 8 };
        }
        (self.right >= RIGHT_LEAST).then_some(self.apart_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;

    /// How many of the last 1 000 waits of these distances, each between a `before` the wanted time and a
    /// `behind` after it, had a guess, and how many guesses were right.
    fn guessed(mut apart_ns: impl FnMut() -> u64) -> (usize, usize) {
        let (mut ahead, mut ended_ns, mut guess) = (Ahead::default(), 0, None);
        let (mut made, mut right) = (0, 0);
        for wait in 0..1100 {
            let wanted_ns = ended_ns + apart_ns();
            let (earliest_ns, latest_ns) = (wanted_ns - 30 * US, wanted_ns + 20 * US);
            if let (Some(guess_ns), true) = (guess, wait >= 100) {
                made += 1;
                right += usize::from((earliest_ns..=latest_ns).contains(&(ended_ns + guess_ns)));
            }
            guess = ahead.begins(earliest_ns, wanted_ns, latest_ns);
            ended_ns = wanted_ns;
            ahead.ended(ended_ns);
        }
        (made, right)
    }

    #[test]
    fn the_next_wait_is_guessed_where_waits_are_about_equal_and_hardly_ever_where_they_are_not() {
        let mut random = fastrand::Rng::with_seed(11);
        assert_eq!(guessed(|| 60 * US), (1000, 1000));
        assert_eq!(guessed(|| random.u64(50 * US..70 * US)), (1000, 1000), "seed=11");
        let (made, _) = guessed(|| (-random.f64().ln() * 1e6) as u64 + 30 * US);
        assert!(made < 20, "seed=11: {made} guesses of waits that are drawn at random");
    }
}
