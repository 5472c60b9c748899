//! Bodies in chunks: `size[;extension] CRLF data CRLF … 0 CRLF [trailer CRLF …] CRLF`.

use super::AnswerError;

/// Extensions and trailers are passed over; longer ones are no answer any more.
const LINE_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Default)]
enum Part {
    #[default]
    SizeStart,
    Size,
    /// Blanks behind the size.
    Padding,
    /// All else up to the end of its line.
    Extension,
    Data,
    DataEnd,
    Trailer,
}

#[derive(Debug, Default)]
pub struct Chunked {
    part: Part,
    /// Bytes of data still to come in this chunk.
    left: u64,
    /// Bytes of the current size and its extension, or of all trailers.
    passed_over: usize,
    /// The current trailer line is blank so far.
    blank: bool,
}

impl Chunked {
    /// Uses bytes up to the end of the body; gives data to `keep`. Returns how many were used, and whether
    /// the body is whole.
    pub fn feed(
        &mut self,
        input: &[u8],
        mut keep: impl FnMut(&[u8]) -> Result<(), AnswerError>,
    ) -> Result<(usize, bool), AnswerError> {
        let mut used = 0;
        while used < input.len() {
            if let Part::Data = self.part {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - used);
                keep(&input[used..used + taken])?;
                used += taken;
                self.left -= taken as u64;
                if self.left == 0 {
                    self.part = Part::DataEnd;
                }
                continue;
            }
            let byte = input[used];
            used += 1;
            if self.step(byte)? {
                return Ok((used, true));
            }
        }
        Ok((used, false))
    }

    /// One byte outside data; true at the end of the body.
    fn step(&mut self, byte: u8) -> Result<bool, AnswerError> {
        match (&self.part, byte) {
            (Part::SizeStart | Part::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                let larger = self.left.checked_mul(16).and_then(|left| left.checked_add(digit));
                self.left = larger.ok_or(AnswerError::new("chunk size over 2^64"))?;
                self.pass_over(Part::Size)?; // zeros in front do not make it larger
            }
            (Part::Size | Part::Padding, b' ' | b'\t') => self.pass_over(Part::Padding)?,
            (Part::Size | Part::Padding, b';' | b'\r') => self.pass_over(Part::Extension)?,
            (Part::Size | Part::Padding | Part::Extension, b'\n') => {
                self.part = if self.left == 0 { Part::Trailer } else { Part::Data };
                (self.passed_over, self.blank) = (0, true);
            }
            (Part::Extension, _) => self.pass_over(Part::Extension)?,
            (Part::DataEnd, b'\r') => {}
            (Part::DataEnd, b'\n') => (self.part, self.left) = (Part::SizeStart, 0),
            (Part::Trailer, b'\n') if self.blank => return Ok(true),
            (Part::Trailer, b'\n') => self.blank = true,
            (Part::Trailer, b'\r') => self.pass_over(Part::Trailer)?,
            (Part::Trailer, _) => {
                self.blank = false;
                self.pass_over(Part::Trailer)?;
            }
            (Part::SizeStart | Part::Size | Part::Padding, _) => {
                return Err(AnswerError::seen("bad chunk size", &[byte]));
            }
            (Part::DataEnd, _) => return Err(AnswerError::new("chunk longer than its size")),
            (Part::Data, _) => unreachable!("data is taken in bulk"),
        }
        Ok(false)
    }

    fn pass_over(&mut self, part: Part) -> Result<(), AnswerError> {
        self.part = part;
        self.passed_over += 1;
        if self.passed_over > LINE_BYTES_MAX {
            return Err(AnswerError::new("chunk extension or trailers larger than 64 KiB"));
        }
        Ok(())
    }
}
