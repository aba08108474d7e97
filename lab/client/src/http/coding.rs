//! Content codings of answers, undone (RFC 9110, section 8.4.1). It knows no connection and no clock:
//! whoever calls it has taken the answer's time before.

use std::io::{self, Read};

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// Not at all.
    #[default]
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 1950, or RFC 1951 alone, as some servers send it.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// One that is not known here, or several.
    Other,
}

/// What a request says that takes all of them that are worth it.
pub(crate) const ACCEPTED: &str = "gzip, br, zstd";

/// Why a body can't be decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodingError {
    /// It is damaged, or not what it says.
    #[error("the answer's {coding} can't be decoded: {source}")]
    Broken {
        /// Its coding.
        coding: &'static str,
        /// What is wrong.
        source: io::Error,
    },
    /// More than may be.
    #[error("the answer's {coding} decodes to more than {limit} bytes")]
    TooLarge {
        /// Its coding.
        coding: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A coding that is not known here.
    #[error("the answer's content-encoding is not known here; gzip, deflate, br, and zstd are")]
    Unknown,
}

impl Coding {
    /// From the value of a `Content-Encoding`.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        let value = value.trim_ascii();
        let is = |name: &str| value.eq_ignore_ascii_case(name.as_bytes());
        match () {
            () if value.is_empty() || is("identity") => Self::Identity,
            () if is("gzip") || is("x-gzip") => Self::Gzip,
            () if is("deflate") => Self::Deflate,
            () if is("br") => Self::Brotli,
            () if is("zstd") => Self::Zstd,
            () => Self::Other,
        }
    }

    /// As headers write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Other => "content-encoding",
        }
    }

    /// Decodes `body` into `out`, which is emptied first and takes at most `limit` bytes. What was
    /// decoded before an error stays in it.
    ///
    /// # Errors
    /// [`CodingError`].
    pub fn decode(self, body: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<(), CodingError> {
        out.clear();
        let mut read = |from: &mut dyn Read| {
            let mut bounded = from.take(limit.saturating_add(1));
            bounded.read_to_end(out).map(drop)
        };
        let coding = self.name();
        let decoded = match self {
            Self::Identity => read(&mut &*body),
            Self::Gzip => read(&mut flate2::read::MultiGzDecoder::new(body)),
            Self::Deflate if has_zlib_head(body) => read(&mut flate2::read::ZlibDecoder::new(body)),
            Self::Deflate => read(&mut flate2::read::DeflateDecoder::new(body)),
            Self::Brotli => read(&mut brotli_decompressor::Decompressor::new(body, 16 << 10)),
            Self::Zstd => {
                let opened = ruzstd::decoding::StreamingDecoder::new(body);
                opened
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
                    .and_then(|mut decoder| read(&mut decoder))
            }
            Self::Other => return Err(CodingError::Unknown),
        };
        decoded.map_err(|source| CodingError::Broken { coding, source })?;
        if out.len() as u64 > limit {
            return Err(CodingError::TooLarge { coding, limit });
        }
        Ok(())
    }
}

/// A header of zlib: method 8, and a check sum of 31 (RFC 1950, section 2.2).
fn has_zlib_head(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..]
        if method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0)
}
