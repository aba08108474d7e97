//! Filters from bytes to bytes, as data: one form for minijinja and for templates compiled without it.
//!
//! A filter stores its constant arguments. The key of an HMAC is a value, passed with the input.

use std::borrow::Cow;

use crate::encoding::Encoding;
use crate::escape::push_url;
use crate::hash::{Hash, digest, hmac};

/// The largest input of a hash.
const MAX_BYTES: usize = 16 << 20;

/// A filter with its constant arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// A hash.
    Hash(Hash, Output),
    /// A keyed hash (RFC 2104).
    Hmac(Hash, Output),
    /// Bytes as text.
    Encode(Encoding),
    /// Percent-encoding, as one value of a query.
    UrlEncode,
    /// Decodes base64.
    Unbase64,
    /// Decodes hexadecimal digits.
    Unhex,
    /// Decodes percent-encoding.
    UrlDecode,
}

/// Output of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A text in this encoding.
    Text(Encoding),
    /// Bytes.
    Raw,
}

impl Filter {
    /// Returns the filter with this name, and these texts as constant arguments after its key, if it has one; `None` if
    /// no filter has the name.
    #[must_use]
    pub fn named(name: &str, arguments: &[&str]) -> Option<Self> {
        let hash = Hash::named(name);
        let encoding = Encoding::named(name);
        Some(match (name, hash, encoding, arguments) {
            (_, Some(hash), _, []) => Self::Hash(hash, Output::default()),
            (_, Some(hash), _, [output]) => Self::Hash(hash, Output::named(output).ok()?),
            (_, _, Some(encoding), []) => Self::Encode(encoding),
            ("hmac", _, _, hash) if hash.len() <= 2 => {
                Self::hmac(hash.first().copied(), hash.get(1).copied()).ok()?
            }
            ("urlencode", _, _, []) => Self::UrlEncode,
            ("unbase64", _, _, []) => Self::Unbase64,
            ("unhex", _, _, []) => Self::Unhex,
            ("urldecode", _, _, []) => Self::UrlDecode,
            _ => return None,
        })
    }

    /// Returns an HMAC with this hash and encoding.
    ///
    /// # Errors
    /// Unknown names, and MD5.
    pub(crate) fn hmac(hash: Option<&str>, output: Option<&str>) -> Result<Self, String> {
        let hash = hash.unwrap_or("sha256");
        let hash =
            Hash::named(hash).ok_or_else(|| unknown("hash", hash, &Hash::ALL.map(Hash::name)))?;
        hash.keyed()?;
        let output = output.map_or(Ok(Output::default()), Output::named)?;
        Ok(Self::Hmac(hash, output))
    }

    /// Returns true if its output is a text for every input.
    #[must_use]
    pub fn gives_text(self) -> bool {
        match self {
            Self::Hash(_, output) | Self::Hmac(_, output) => output != Output::Raw,
            Self::Encode(_) | Self::UrlEncode => true,
            Self::Unbase64 | Self::Unhex | Self::UrlDecode => false,
        }
    }

    /// Returns true if its output is bytes, even if they are valid text.
    pub fn gives_bytes(self) -> bool {
        matches!(
            self,
            Self::Hash(_, Output::Raw) | Self::Hmac(_, Output::Raw)
        )
    }

    /// Appends the output for an input. `key` is for filters that need one.
    ///
    /// # Errors
    /// An input that is too large, or that can't be decoded.
    pub fn apply(self, input: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Hash(hash, output) => {
                digest(hash, hashed(input)?, |sum| output.push(sum, out));
            }
            Self::Hmac(hash, output) => {
                let sum = hmac(hash, key, hashed(input)?)?;
                output.push(sum.as_ref(), out);
            }
            Self::Encode(encoding) => encoding.push(input, out),
            Self::UrlEncode => {
                let text = std::str::from_utf8(input).map_err(|_| {
                    "these are bytes, and no text: encode them by `base64` or `hex`".to_owned()
                })?;
                let mut encoded = String::with_capacity(text.len() * 2);
                push_url(text, &mut encoded);
                out.extend(encoded.as_bytes());
            }
            Self::Unbase64 => out.extend(Encoding::Base64.decode(input)?),
            Self::Unhex => out.extend(Encoding::Hex.decode(input)?),
            Self::UrlDecode => {
                let decoded: Cow<'_, [u8]> = percent_encoding::percent_decode(input).into();
                out.extend_from_slice(&decoded);
            }
        }
        Ok(())
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::Text(Encoding::Hex)
    }
}

impl Output {
    /// Returns the output with this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        match (Encoding::named(name), name) {
            (Some(encoding), _) => Ok(Self::Text(encoding)),
            (None, "raw") => Ok(Self::Raw),
            _ => Err(unknown(
                "encoding",
                name,
                &["hex", "base64", "base64url", "raw"],
            )),
        }
    }

    fn push(self, sum: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Text(encoding) => encoding.push(sum, out),
            Self::Raw => out.extend_from_slice(sum),
        }
    }
}

/// Checks the size of a hash's input.
fn hashed(input: &[u8]) -> Result<&[u8], String> {
    match input.len() {
        ..=MAX_BYTES => Ok(input),
        n => Err(format!(
            "{n} bytes are more than the {MAX_BYTES} that a hash may be of"
        )),
    }
}

pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!(
        "there is no {what} `{name}`: it is one of {}",
        known.join(", ")
    )
}
