//! Bodies in chunks: `size[;extension] CRLF data CRLF … 0 CRLF [trailer CRLF …] CRLF`.

use super::HttpError;

/// Extensions and trailers are passed over; longer ones are no answer any more.
const LINE_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Default)]
enum Part {
    #[default]
    SizeStart,
    Size,
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
    /// Bytes of the current extension, or of all trailers.
    passed_over: usize,
    /// The current trailer line is blank so far.
    blank: bool,
}

impl Chunked {
    /// Uses bytes up to the end of the body; gives data to `keep`. Returns how many were used, and whether the body is whole.
    pub fn feed(&mut self, input: &[u8], mut keep: impl FnMut(&[u8])) -> Result<(usize, bool), HttpError> {
        let mut used = 0;
        while used < input.len() {
            if let Part::Data = self.part {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - used);
                keep(&input[used..used + taken]);
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
    fn step(&mut self, byte: u8) -> Result<bool, HttpError> {
        match (&self.part, byte) {
            (Part::SizeStart | Part::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                let larger = self.left.checked_mul(16).and_then(|left| left.checked_add(digit));
                self.left = larger.ok_or_else(|| HttpError("chunk size too large".to_owned()))?;
                self.part = Part::Size;
            }
            (Part::Size, b';' | b' ' | b'\t' | b'\r') => self.pass_over(Part::Extension)?,
            (Part::Size | Part::Extension, b'\n') => {
                self.part = if self.left == 0 { Part::Trailer } else { Part::Data };
                (self.passed_over, self.blank) = (0, true);
            }
            (Part::Extension, _) => self.pass_over(Part::Extension)?,
            (Part::DataEnd, b'\r') => {}
            (Part::DataEnd, b'\n') => (self.part, self.left) = (Part::SizeStart, 0),
            (Part::Trailer, b'\n') if self.blank => return Ok(true),
            (Part::Trailer, b'\n') => self.blank = true,
            (Part::Trailer, b'\r') => {}
            (Part::Trailer, _) => {
                self.blank = false;
                self.pass_over(Part::Trailer)?;
            }
            (Part::SizeStart | Part::Size, _) => return Err(HttpError(format!("bad chunk size: byte 0x{byte:02x}"))),
            (Part::DataEnd, _) => return Err(HttpError("chunk longer than its size".to_owned())),
            (Part::Data, _) => unreachable!("data is taken in bulk"),
        }
        Ok(false)
    }

    fn pass_over(&mut self, part: Part) -> Result<(), HttpError> {
        self.part = part;
        self.passed_over += 1;
        if self.passed_over > LINE_BYTES_MAX {
            return Err(HttpError(format!("chunk extension or trailers larger than {LINE_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}
