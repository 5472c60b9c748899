//! One part of a load that several generators make together (`--part 2/3`), each on a host of its own.
//!
//! All are given the whole load's rate, connections and seed. Connections and threads are numbered over all
//! parts: number k of a part is number `k × parts + (part − 1)` of the whole. Due times, random numbers and
//! the lines of a list depend on these numbers alone, so that the parts together send exactly what one
//! generator with all the connections would.

use crate::error::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub number: usize,
    pub of: usize,
}

impl Part {
    /// One generator alone.
    pub const WHOLE: Self = Self { number: 1, of: 1 };
    pub const MOST: usize = 1024;

    /// `2/3`
    pub fn parse(text: &str) -> Result<Self, Error> {
        let part = text
            .split_once('/')
            .and_then(|(number, of)| Some(Self { number: number.parse().ok()?, of: of.parse().ok()? }));
        part.filter(|part| part.number >= 1 && part.number <= part.of && part.of <= Self::MOST).ok_or_else(
            || Error::Failed(format!("not a part: --part {text:?}; example: --part 1/3, the first of three")),
        )
    }

    /// Number among all parts of what is number `own` of this part.
    pub fn place(self, own: usize) -> usize {
        own * self.of + self.number - 1
    }

    /// How many of `all` are this part's.
    pub fn share(self, all: usize) -> usize {
        (all + self.of - self.number) / self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_belongs_to_exactly_one_part() {
        for (all, of) in [(1, 1), (10, 3), (7, 7), (2, 3), (64, 5)] {
            let mut places: Vec<usize> = (1..=of)
                .map(|number| Part { number, of })
                .flat_map(|part| (0..part.share(all)).map(move |own| part.place(own)))
                .collect();
            places.sort_unstable();
            assert_eq!(places, (0..all).collect::<Vec<_>>(), "all={all} of={of}");
        }
    }

    #[test]
    fn a_part_is_one_of_at_least_one() {
        assert_eq!(Part::parse("2/3").unwrap(), Part { number: 2, of: 3 });
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/3", "1/9999", ""] {
            assert!(Part::parse(wrong).is_err(), "{wrong}");
        }
    }
}
