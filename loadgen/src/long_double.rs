//! The one thing of C's 80-bit `long double` that shows in wrk2's text: which way 1265/1000 rounds when two
//! decimals are kept.
//!
//! A double and a long double lie on different sides of such ties, so the text would differ in a last digit.
//! Values are kept as `mantissa × 2^exponent` with a 64-bit mantissa, divided with round-to-nearest-even, and
//! printed exactly.

#[derive(Clone, Copy, Debug)]
pub enum LongDouble {
    /// Printed as `-nan`, as C prints 0/0 on x86.
    NotANumber,
    /// `mantissa` has its top bit set unless the value is zero.
    Finite { mantissa: u64, exponent: i32 },
}

impl LongDouble {
    /// Exact; negative numbers do not occur in latencies, rates and sizes and become zero.
    pub fn from_f64(value: f64) -> Self {
        if !value.is_finite() {
            return Self::NotANumber;
        }
        if value <= 0.0 {
            return Self::Finite { mantissa: 0, exponent: 0 };
        }
        let bits = value.to_bits();
        let biased = (bits >> 52) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) =
            if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        let shift = mantissa.leading_zeros();
        Self::Finite { mantissa: mantissa << shift, exponent: exponent - shift as i32 }
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Self::NotANumber => f64::NAN,
            Self::Finite { mantissa, exponent } => mantissa as f64 * 2f64.powi(exponent),
        }
    }

    /// The quotient, rounded to 64 bits, ties to even.
    pub fn divided_by(self, divisor: u32) -> Self {
        let Self::Finite { mantissa, exponent } = self else { return self };
        if mantissa == 0 {
            return self;
        }
        let divisor = u128::from(divisor);
        let shifted = u128::from(mantissa) << 64;
        let (quotient, rest) = (shifted / divisor, shifted % divisor);
        // The quotient has 65 to 128 bits; keep 64 and round by what is dropped.
        let extra = 64 - quotient.leading_zeros() as i32;
        let dropped = quotient & ((1 << extra) - 1);
        let half = 1u128 << (extra - 1);
        let mut kept = (quotient >> extra) as u64;
        let mut exponent = exponent - 64 + extra;
        let above_half = dropped > half || (dropped == half && rest > 0);
        if above_half || (dropped == half && kept & 1 == 1) {
            kept = kept.wrapping_add(1);
            if kept == 0 {
                kept = 1 << 63;
                exponent += 1;
            }
        }
        Self::Finite { mantissa: kept, exponent }
    }

    /// As C's `%.*Lf`: the exact value rounded to `decimals`, ties to even.
    pub fn fixed(self, decimals: usize) -> String {
        let Self::Finite { mantissa, exponent } = self else { return "-nan".to_owned() };
        let power = 10u128.pow(decimals as u32);
        let scaled = u128::from(mantissa) * power; // below 2^64 × 10^3 for the decimals in use
        let digits = if exponent >= 0 {
            scaled << exponent.min(50) // values of 2^114 and more do not occur
        } else if exponent <= -127 {
            0
        } else {
            let shift = -exponent as u32;
            let (whole, rest, half) = (scaled >> shift, scaled & ((1 << shift) - 1), 1u128 << (shift - 1));
            if rest > half || (rest == half && whole & 1 == 1) { whole + 1 } else { whole }
        };
        if decimals == 0 {
            return digits.to_string();
        }
        format!("{}.{:0decimals$}", digits / power, digits % power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotient(value: f64, divisor: u32) -> String {
        LongDouble::from_f64(value).divided_by(divisor).fixed(2)
    }

    #[test]
    fn ties_fall_where_an_x86_long_double_puts_them() {
        // Computed with gcc 12: printf("%.2Lf", (long double) n / 1000).
        for (n, text) in [
            (1265.0, "1.26"),
            (2175.0, "2.17"),
            (3845.0, "3.85"),
            (1005.0, "1.00"),
            (865.0, "0.87"),
            (875.0, "0.88"),
        ] {
            assert_eq!(quotient(n, 1000), text, "n={n}");
        }
    }

    #[test]
    fn whole_halves_go_to_the_even_digit() {
        assert_eq!(LongDouble::from_f64(0.125).fixed(2), "0.12");
        assert_eq!(LongDouble::from_f64(0.375).fixed(2), "0.38");
        assert_eq!(LongDouble::from_f64(2.5).fixed(0), "2");
    }

    #[test]
    fn what_is_no_number_prints_as_c_prints_it() {
        assert_eq!(LongDouble::from_f64(f64::NAN).divided_by(60).fixed(2), "-nan");
        assert_eq!(LongDouble::from_f64(0.0).divided_by(1000).fixed(2), "0.00");
    }
}
