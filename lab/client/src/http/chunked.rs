//! The chunked transfer coding (RFC 9112, section 7.1), byte by byte, without a buffer.

use super::head::Fault;

/// The maximum length of a chunk's size line with its extensions.
const MAX_SIZE_LINE: usize = 4096;

/// Removes the chunk framing from a body.
#[derive(Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes of the current line, or of the trailer section, so far.
    line: usize,
    max_trailer: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size {
        value: u64,
        digits: u8,
    },
    Extension(u64),
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// In the trailer section; `empty`: the current line has no bytes so far.
    Trailer {
        empty: bool,
    },
    TrailerLf {
        empty: bool,
    },
    Done,
}

/// The result for the beginning of an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// Input bytes consumed.
    pub(crate) used: usize,
    /// Bytes of the body.
    pub(crate) data: &'a [u8],
    /// Whether the body is whole.
    pub(crate) done: bool,
}

const START: State = State::Size {
    value: 0,
    digits: 0,
};

impl Chunked {
    pub(crate) fn new(max_trailer: usize) -> Self {
        Self {
            state: START,
            line: 0,
            max_trailer,
        }
    }

    /// Reads until there is data, the body is whole, or the input is used up.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, Fault> {
        let mut used = 0;
        while used < input.len() && self.state != State::Done {
            if let State::Data(left) = self.state {
                let rest = &input[used..];
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let left = left - length as u64;
                self.state = if left == 0 {
                    State::DataCr
                } else {
                    State::Data(left)
                };
                return Ok(Piece {
                    used: used + length,
                    data: &rest[..length],
                    done: false,
                });
            }
            self.state = self.step(input[used])?;
            used += 1;
        }
        Ok(Piece {
            used,
            data: &[],
            done: self.state == State::Done,
        })
    }

    /// Returns the state after a byte of the framing.
    fn step(&mut self, byte: u8) -> Result<State, Fault> {
        Ok(match (self.state, byte) {
            (State::Size { value, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                let value = value.checked_mul(16).ok_or(Fault::Chunk)? + u64::from(digit);
                State::Size {
                    value,
                    digits: digits.saturating_add(1),
                }
            }
            (State::Size { value, digits: 1.. }, b'\r') => State::SizeEnd(value),
            (State::Size { value, digits: 1.. }, b';' | b' ' | b'\t') => State::Extension(value),
            (State::Extension(value), b'\r') => State::SizeEnd(value),
            (State::Extension(_), b'\n') => return Err(Fault::Chunk),
            (State::Extension(value), _) => {
                self.line += 1;
                if self.line > MAX_SIZE_LINE {
                    return Err(Fault::Chunk);
                }
                State::Extension(value)
            }
            (State::SizeEnd(value), b'\n') => {
                self.line = 0;
                if value == 0 {
                    State::Trailer { empty: true }
                } else {
                    State::Data(value)
                }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => START,
            (State::Trailer { empty }, b'\r') => State::TrailerLf { empty },
            (State::Trailer { .. }, b'\n') => return Err(Fault::Chunk),
            (State::Trailer { .. }, _) => {
                self.line += 1;
                if self.line > self.max_trailer {
                    return Err(Fault::HeadTooLarge);
                }
                State::Trailer { empty: false }
            }
            (State::TrailerLf { empty: true }, b'\n') => State::Done,
            (State::TrailerLf { empty: false }, b'\n') => State::Trailer { empty: true },
            _ => return Err(Fault::Chunk),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Fault> {
        let mut chunked = Chunked::new(64);
        let (mut body, mut used, mut done) = (Vec::new(), 0, false);
        while used < text.len() && !done {
            let end = (used + piece).min(text.len());
            let found = chunked.next(&text[used..end])?;
            body.extend_from_slice(found.data);
            used += found.used;
            done = found.done;
        }
        Ok((body, used, done))
    }

    #[test]
    fn any_split_gives_the_same_body() {
        let text = b"5;name=\"x\"\r\nhello\r\n1 \r\n!\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nrest";
        for piece in 1..=text.len() {
            let (body, used, done) = decode(text, piece).unwrap();
            assert_eq!(
                (&body[..], used, done),
                (&b"hello!"[..], text.len() - 4, true),
                "{piece}"
            );
        }
    }

    #[test]
    fn broken_frames_are_faults() {
        for text in [
            &b"x\r\n"[..],
            b"\r\n",
            b";\r\n",
            b"5\nhello",
            b"5\r\nhelloX",
            b"5\r\nhello\rX",
            b"10000000000000000\r\n",
            b"0\r\nA: b\n",
            b"5;ext\nhello",
            b"0\r\n\rX",
        ] {
            assert_eq!(
                decode(text, 3),
                Err(Fault::Chunk),
                "{:?}",
                text.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn trailers_and_extensions_are_limited() {
        let trailer = format!("0\r\nA: {}\r\n\r\n", "x".repeat(100));
        assert_eq!(decode(trailer.as_bytes(), 7), Err(Fault::HeadTooLarge));
        let extension = format!("5;{}\r\n", "x".repeat(MAX_SIZE_LINE + 1));
        assert_eq!(decode(extension.as_bytes(), 7), Err(Fault::Chunk));
    }
}
