//! Hashes and keyed hashes.

use md5::{Digest, Md5};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};
use ring::hmac::{
    Algorithm, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512, Key, Tag, sign,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoding::Encoding;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// MD5 (RFC 1321), for servers that require it.
    Md5,
    /// SHA-1 (FIPS 180-4, as the others).
    Sha1,
    /// SHA-2 with 256 bits.
    Sha256,
    /// SHA-2 with 384 bits.
    Sha384,
    /// SHA-2 with 512 bits.
    Sha512,
}

impl Hash {
    /// All hashes.
    pub(crate) const ALL: [Self; 5] = [
        Self::Md5,
        Self::Sha1,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
    ];

    /// Returns its name in templates.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Returns the hash with this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the algorithm of its HMAC.
    ///
    /// # Errors
    /// MD5 is not supported here.
    pub(crate) fn keyed(self) -> Result<Algorithm, String> {
        Ok(match self {
            Self::Md5 => {
                return Err("HMAC by MD5 is not supported: use `sha1` or `sha256`".to_owned());
            }
            Self::Sha1 => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => HMAC_SHA256,
            Self::Sha384 => HMAC_SHA384,
            Self::Sha512 => HMAC_SHA512,
        })
    }
}

/// Passes the hash of these bytes to `take`.
pub(crate) fn digest<T>(hash: Hash, bytes: &[u8], take: impl FnOnce(&[u8]) -> T) -> T {
    let algorithm = match hash {
        Hash::Md5 => return take(&Md5::digest(bytes)),
        Hash::Sha1 => &SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha256 => &SHA256,
        Hash::Sha384 => &SHA384,
        Hash::Sha512 => &SHA512,
    };
    take(ring::digest::digest(algorithm, bytes).as_ref())
}

/// Returns the SHA-256 of these bytes, in hex.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    digest(Hash::Sha256, bytes, |sum| Encoding::Hex.encode(sum))
}

/// Returns the HMAC (RFC 2104) of these bytes with a key.
///
/// # Errors
/// MD5 is not supported here.
pub(crate) fn hmac(hash: Hash, key: &[u8], bytes: &[u8]) -> Result<Tag, String> {
    Ok(sign(&Key::new(hash.keyed()?, key), bytes))
}
