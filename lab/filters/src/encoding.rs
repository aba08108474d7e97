//! Bytes as text and back.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An encoding of bytes as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Two lower-case digits per byte.
    Hex,
    /// Base64 (RFC 4648, section 4), padded.
    Base64,
    /// Base64 for URLs (RFC 4648, section 5), without padding.
    Base64Url,
}

/// Reads with or without padding, since tokens have none and mails have some.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const FROM_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const FROM_URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

impl Encoding {
    /// Returns its name in templates.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Base64 => "base64",
            Self::Base64Url => "base64url",
        }
    }

    /// Returns the encoding with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Hex, Self::Base64, Self::Base64Url]
            .into_iter()
            .find(|one| one.name() == name)
    }

    /// Encodes bytes as text.
    #[must_use]
    pub fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => {
                let mut out = String::with_capacity(bytes.len() * 2);
                push_hex(bytes, &mut out);
                out
            }
            Self::Base64 => STANDARD.encode(bytes),
            Self::Base64Url => URL_SAFE_NO_PAD.encode(bytes),
        }
    }

    /// Decodes a text; base64 of either alphabet, padded or not.
    ///
    /// # Errors
    /// Describes a text that is not in this encoding.
    pub fn decode(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Hex => {
                hex::decode(text).map_err(|error| format!("it is not hexadecimal: {error}"))
            }
            Self::Base64 | Self::Base64Url => from_base64(text),
        }
    }

    /// Appends the same text, without a buffer of its own for a hash or most keys.
    pub(crate) fn push(self, bytes: &[u8], out: &mut Vec<u8>) {
        const SHORT: usize = 64;
        let mut room = [0; SHORT * 2];
        let engine = match self {
            Self::Hex => {
                for chunk in bytes.chunks(SHORT) {
                    let digits = &mut room[..chunk.len() * 2];
                    hex::encode_to_slice(chunk, digits).expect("two digits a byte");
                    out.extend_from_slice(digits);
                }
                return;
            }
            Self::Base64 => &STANDARD,
            Self::Base64Url => &URL_SAFE_NO_PAD,
        };
        match bytes.len() <= SHORT {
            true => {
                let written = engine.encode_slice(bytes, &mut room).unwrap_or_default();
                out.extend_from_slice(&room[..written]);
            }
            false => out.extend_from_slice(engine.encode(bytes).as_bytes()),
        }
    }
}

/// Appends bytes as lower-case hexadecimal digits; several times as fast as collecting characters.
pub(crate) fn push_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
}

/// Decodes base64 of either alphabet; line breaks are skipped.
fn from_base64(text: &[u8]) -> Result<Vec<u8>, String> {
    let kept: Vec<u8> = text
        .iter()
        .copied()
        .filter(|b| !b.is_ascii_whitespace())
        .collect();
    let engine = match kept.iter().any(|b| matches!(b, b'-' | b'_')) {
        true => FROM_URL_SAFE,
        false => FROM_STANDARD,
    };
    engine
        .decode(kept)
        .map_err(|error| format!("it is not base64: {error}"))
}
