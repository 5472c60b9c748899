//! Whether the answer that is awaited comes so soon that to sleep meanwhile costs more.

/// Whether answers come so soon that it is cheaper to wait for them busily than to sleep and be woken.
///
/// Each wait in vain puts the next try off for twice as long as the one before, so that a slow service costs
/// next to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Soon {
    in_vain: u32,
    left_out: u32,
}

/// Of so many waits at least one is tried: two to the power of this.
const TRIED_LEAST: u32 = 7;

impl Soon {
    /// Asked once before each wait. One that a due request cuts short teaches nothing: it is tried only as
    /// long as answers come soon.
    pub fn may_be_tried(&mut self, cut_short: bool) -> bool {
        let tried = self.left_out == 0 && (self.in_vain == 0 || !cut_short);
        self.left_out = self.left_out.saturating_sub(1);
        tried
    }

    pub fn tried(&mut self, came: bool) {
        self.in_vain = if came { 0 } else { (self.in_vain + 1).min(TRIED_LEAST) };
        self.left_out = (1 << self.in_vain) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_come_soon_are_always_waited_for_and_of_others_one_wait_in_128() {
        let tries = |comes: &dyn Fn(u32) -> bool| {
            let mut soon = Soon::default();
            let one = |wait| {
                let tried = soon.may_be_tried(false);
                if tried {
                    soon.tried(comes(wait));
                }
                u32::from(tried)
            };
            (0..12_800).map(one).sum::<u32>()
        };
        assert_eq!(tries(&|_| true), 12_800);
        assert!((100..=107).contains(&tries(&|_| false)), "{}", tries(&|_| false));
        assert!(tries(&|wait| wait > 6400) > 6200, "a service that becomes quick is noticed");
    }

    #[test]
    fn after_a_wait_in_vain_none_that_a_due_request_cuts_short_is_tried() {
        let mut soon = Soon::default();
        assert!(soon.may_be_tried(true), "answers have come soon so far");
        soon.tried(false);
        let cut_short: Vec<bool> = (0..5).map(|_| soon.may_be_tried(true)).collect();
        assert_eq!((cut_short, soon.may_be_tried(false)), (vec![false; 5], true));
    }
}
