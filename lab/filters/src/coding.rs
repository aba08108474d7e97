//! Decodes the content codings of responses (RFC 9110, section 8.4.1). It knows no connection and no clock: callers
//! take the response's time before they decode.

use std::io::{self, Read};

/// The maximum number of codings of one body, as in curl.
const MAX_CODINGS: usize = 5;

/// Values of `Content-Encoding` that name no coding: values of `Content-Transfer-Encoding`, charsets, and the values
/// that S3 stores with an upload. Clients read such a body as it is.
const NONE: [&[u8]; 13] = [
    b"identity",
    b"none",
    b"null",
    b"utf-8",
    b"utf8",
    b"us-ascii",
    b"ascii",
    b"iso-8859-1",
    b"7bit",
    b"8bit",
    b"binary",
    b"text",
    b"aws-chunked",
];

/// One content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950, or RFC 1951 alone, as some servers send it.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

/// The content codings of a body, in the order in which the server applied them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codings {
    applied: [Option<Coding>; MAX_CODINGS],
    unknown: bool,
}

/// The value of `Accept-Encoding` of a request for a compressed response.
pub const ACCEPTED: &str = "gzip, br, zstd";

/// Why a body can't be decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodingError {
    /// The body is damaged, or not in the stated coding.
    #[error("the answer's {coding} can't be decoded: {source}")]
    Broken {
        /// Its coding.
        coding: &'static str,
        /// What is wrong.
        source: io::Error,
    },
    /// The decoded body exceeds the limit.
    #[error("the answer's {coding} decodes to more than {limit} bytes")]
    TooLarge {
        /// Its coding.
        coding: &'static str,
        /// The limit.
        limit: u64,
    },
}

impl Codings {
    /// Returns the codings that one `Content-Encoding` line names.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        let mut codings = Self::default();
        codings.add(value);
        codings
    }

    /// Adds the codings of a further `Content-Encoding` line. Skips empty parts and names that are no coding.
    pub fn add(&mut self, value: &[u8]) {
        for name in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if name.is_empty() || NONE.iter().any(|none| name.eq_ignore_ascii_case(none)) {
                continue;
            }
            let free = self.applied.iter_mut().find(|slot| slot.is_none());
            match (Coding::of(name), free) {
                (Some(coding), Some(slot)) => *slot = Some(coding),
                _ => self.unknown = true,
            }
        }
    }

    /// Returns true if the body needs decoding and can be decoded.
    #[must_use]
    pub fn decodes(&self) -> bool {
        !self.unknown && self.applied[0].is_some()
    }

    /// Returns true if one of the codings is unknown, or there are too many. Such a body is read as received, as
    /// browsers do.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// Returns the names, as headers write them.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.applied.iter().flatten().map(|c| c.name()).collect();
        names.join(", ")
    }

    /// Decodes `body` into `out`, last coding first. `out` is emptied first and takes at most `limit` bytes. The
    /// bytes decoded before an error stay in it.
    ///
    /// # Errors
    /// [`CodingError`].
    pub fn decode(self, body: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<(), CodingError> {
        out.clear();
        let known = self.applied.iter().rev().flatten();
        let mut codings = known.filter(|_| !self.unknown);
        match codings.next() {
            Some(last) => last.decode(body, limit, out)?,
            None => out.extend_from_slice(body),
        }
        for coding in codings {
            let encoded = std::mem::take(out);
            coding.decode(&encoded, limit, out)?;
        }
        Ok(())
    }
}

impl Coding {
    fn of(name: &[u8]) -> Option<Self> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match () {
            () if is(b"gzip") || is(b"x-gzip") => Some(Self::Gzip),
            () if is(b"deflate") => Some(Self::Deflate),
            () if is(b"br") => Some(Self::Brotli),
            () if is(b"zstd") => Some(Self::Zstd),
            () => None,
        }
    }

    /// Returns the name, as headers write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Appends the decoded `body`, at most `limit` bytes and one.
    fn decode(self, body: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<(), CodingError> {
        let coding = self.name();
        let mut bounded = Bounded { out, limit };
        let decoded = match self {
            Self::Gzip => gunzip(body, &mut bounded),
            Self::Deflate if has_zlib_head(body) => {
                bounded.read(&mut flate2::read::ZlibDecoder::new(body))
            }
            Self::Deflate => bounded.read(&mut flate2::read::DeflateDecoder::new(body)),
            Self::Brotli => {
                bounded.read(&mut brotli_decompressor::Decompressor::new(body, 16 << 10))
            }
            Self::Zstd => unzstd(body, &mut bounded),
        };
        decoded.map_err(|source| CodingError::Broken { coding, source })?;
        if bounded.is_full() {
            return Err(CodingError::TooLarge { coding, limit });
        }
        Ok(())
    }
}

/// A buffer that takes one byte more than its limit, to detect that the limit is exceeded.
struct Bounded<'a> {
    out: &'a mut Vec<u8>,
    limit: u64,
}

impl Bounded<'_> {
    fn read(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let most = self.limit.saturating_add(1);
        let space = most.saturating_sub(self.out.len() as u64);
        from.take(space).read_to_end(self.out).map(drop)
    }

    fn is_full(&self) -> bool {
        self.out.len() as u64 > self.limit
    }
}

/// Decodes all members of a gzip body. Zeros behind the last member are padding, as in gzip(1).
fn gunzip(mut body: &[u8], out: &mut Bounded<'_>) -> io::Result<()> {
    loop {
        let mut member = flate2::bufread::GzDecoder::new(body);
        out.read(&mut member)?;
        if out.is_full() {
            return Ok(());
        }
        body = member.into_inner();
        if body.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
    }
}

/// Decodes all frames of a zstd body, without the skippable ones (RFC 8878, section 3.1).
fn unzstd(mut body: &[u8], out: &mut Bounded<'_>) -> io::Result<()> {
    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut decoder = FrameDecoder::new();
    while !body.is_empty() && !out.is_full() {
        match StreamingDecoder::new_with_decoder(&mut body, &mut decoder) {
            Ok(mut frame) => out.read(&mut frame)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let rest = usize::try_from(length)
                    .ok()
                    .and_then(|length| body.get(length..));
                body = rest.ok_or(io::ErrorKind::UnexpectedEof)?;
            }
            Err(error) => return Err(invalid(error)),
        }
    }
    Ok(())
}

/// Returns true if the body has a zlib header: method 8, and a multiple of 31 (RFC 1950, section 2.2).
fn has_zlib_head(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..]
        if method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0)
}

#[cfg(test)]
mod tests;
