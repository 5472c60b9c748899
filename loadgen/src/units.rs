//! Numbers with units: as people type them (`2k`, `1.5s`) and as wrk2 prints them.
//!
//! wrk2 climbs to the next unit at 0.85 of it (850 us print as 0.85ms), stops below the last unit but one of
//! each scale, and pads units shorter than two letters with blanks so that columns stay aligned.

use std::time::Duration;

use crate::long_double::LongDouble;

/// A scale: the factor between units, and their names from the smallest.
struct Scale {
    factor: u32,
    names: &'static [&'static str],
}

const MICROSECONDS: Scale = Scale { factor: 1000, names: &["us", "ms"] };
const SECONDS: Scale = Scale { factor: 60, names: &["s", "m"] };
const METRIC: Scale = Scale { factor: 1000, names: &["", "k", "M", "G", "T"] };
const BINARY: Scale = Scale { factor: 1024, names: &["", "K", "M", "G", "T"] };

fn scaled(amount: LongDouble, scale: &Scale, decimals: usize) -> String {
    let climb_at = f64::from(scale.factor) * 0.85;
    let mut amount = amount;
    let mut unit = 0;
    while unit + 1 < scale.names.len() && amount.to_f64() >= climb_at {
        amount = amount.divided_by(scale.factor);
        unit += 1;
    }
    format!("{}{}", amount.fixed(decimals), scale.names[unit])
}

/// A time in microseconds as wrk2 prints it: `630.00us`, `0.88ms`, `5.32s`, `1.00m`, `-nanus`.
pub fn time_us(us: f64) -> String {
    let amount = LongDouble::from_f64(us);
    if us >= 1e6 {
        scaled(amount.divided_by(1_000_000), &SECONDS, 2)
    } else {
        scaled(amount, &MICROSECONDS, 2)
    }
}

/// Whole seconds as wrk2's banner prints them: `14s`, and `1m` for 51 to 89 seconds.
pub fn banner_duration(seconds: f64) -> String {
    scaled(LongDouble::from_f64(seconds), &SECONDS, 0)
}

/// A rate as wrk2's table prints it: `535.00`, `1.54k`.
pub fn metric(amount: f64) -> String {
    scaled(LongDouble::from_f64(amount), &METRIC, 2)
}

/// A rate as notes tell it: six digits, and no more decimals than it has.
pub fn rate(rate_rps: f64) -> f64 {
    format!("{rate_rps:.5e}").parse().expect("a number was written")
}

/// A size as wrk2 prints it, without the closing `B`: `741.30K`.
pub fn binary(amount: f64) -> String {
    scaled(LongDouble::from_f64(amount), &BINARY, 2)
}

/// `text` right-aligned in `width` columns, in which a unit shorter than two letters leaves blanks behind it.
pub fn aligned(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let blanks = 2 - letters;
    let width = width.saturating_sub(blanks);
    let cut: String = text.chars().take(width).collect();
    format!("{cut:>width$}{:blanks$}", "")
}

/// A count or rate with an optional metric suffix, in either case: `100`, `0.5`, `2k`, `1.5M`.
pub fn parse_rate(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let factor = match text[split..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return None,
    };
    let number: f64 = plain_number(&text[..split])?;
    Some(number * factor)
}

/// A whole number with an optional metric suffix.
pub fn parse_count(text: &str) -> Option<u64> {
    let value = parse_rate(text)?;
    (value.fract() == 0.0 && value < 1e15).then_some(value as u64)
}

/// A time with an optional unit (seconds without one): `10`, `2s`, `500ms`, `1.5m`, `100us`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let seconds = match text[split..].to_ascii_lowercase().as_str() {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(plain_number(&text[..split])? * seconds).ok()
}

/// Digits with at most one point: no sign, exponent, `inf` or blanks.
fn plain_number(text: &str) -> Option<f64> {
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.bytes().any(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_climb_at_85_hundredths_of_the_next_unit() {
        for (us, text) in [
            (43.0, "43.00us"),
            (849.0, "849.00us"),
            (850.0, "0.85ms"),
            (999_990.0, "999.99ms"),
            (1e6, "1.00s"),
            (50.9e6, "50.90s"),
            (51e6, "0.85m"),
            (3600e6, "60.00m"),
        ] {
            assert_eq!(time_us(us), text, "us={us}");
        }
    }

    #[test]
    fn the_banner_loses_digits_as_wrk2_does() {
        for (seconds, text) in
            [(5.0, "5s"), (14.0, "14s"), (50.0, "50s"), (51.0, "1m"), (89.0, "1m"), (91.0, "2m")]
        {
            assert_eq!(banner_duration(seconds), text, "seconds={seconds}");
        }
    }

    #[test]
    fn sizes_and_rates_climb_to_giga_and_beyond() {
        assert_eq!(binary(759_091.0), "741.30K");
        assert_eq!(binary(1024.0 * 1024.0 * 1024.0), "1.00G");
        assert_eq!(metric(535.0), "535.00");
        assert_eq!(metric(1540.0), "1.54k");
    }

    #[test]
    fn rates_in_notes_have_six_digits_at_most() {
        let told =
            [1000.0 / 3.0, 2000.0, 0.1 + 0.2, 1e6 / 7.0, 1_234_567.8, 0.0].map(|rps| rate(rps).to_string());
        assert_eq!(told, ["333.333", "2000", "0.3", "142857", "1234570", "0"]);
    }

    #[test]
    fn short_units_leave_blanks_behind() {
        assert_eq!(aligned("535.00", 8), "535.00  ");
        assert_eq!(aligned("5.33s", 8), "  5.33s ");
        assert_eq!(aligned("633.24us", 8), "633.24us");
        assert_eq!(aligned("-nan", 8), "    -nan");
    }

    #[test]
    fn what_people_type_is_understood_and_nonsense_is_not() {
        assert_eq!(parse_rate("2k"), Some(2000.0));
        assert_eq!(parse_rate("0.5"), Some(0.5));
        assert_eq!(parse_count("1M"), Some(1_000_000));
        assert_eq!(parse_count("1.5"), None);
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2"), Some(Duration::from_secs(2)));
        for nonsense in ["", "s", "-1", "1x", "1e3", "inf", "nan", "1.2.3", " 1", "+1"] {
            assert_eq!(parse_rate(nonsense), None, "{nonsense}");
            assert_eq!(parse_duration(nonsense), None, "{nonsense}");
        }
    }
}
