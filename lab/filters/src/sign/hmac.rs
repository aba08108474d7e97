//! An HMAC over parts of a request.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoding::Encoding;
use crate::hash::{Hash, hmac};

/// A keyed hash in custom headers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HmacSign<T> {
    /// The key, or the name of one of the workload's `keys`.
    pub key: T,
    /// The hash: `sha1`, `sha256`, `sha384`, `sha512`. Default: `sha256`.
    #[serde(default = "usual_hash")]
    pub algorithm: Hash,
    /// The encoding of the signature: `hex`, `base64`, `base64url`. Default: `hex`.
    #[serde(default = "usual_encoding")]
    pub encoding: Encoding,
    /// The text to sign, such as `"{{ method }}\n{{ path }}\n{{ timestamp }}\n{{ body_sha256 }}"`.
    pub over: T,
    /// The headers with the signature: `{ X-Timestamp: "{{ timestamp }}", X-Signature: "{{ signature }}" }`.
    pub headers: BTreeMap<String, T>,
}

/// The default hash.
fn usual_hash() -> Hash {
    Hash::Sha256
}

fn usual_encoding() -> Encoding {
    Encoding::Hex
}

impl<T> HmacSign<T> {
    /// Returns the texts that name parts of the request.
    pub fn parts(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.over).chain(self.headers.values())
    }

    pub(super) fn try_map<'s, U, E>(
        &'s self,
        map: &mut impl FnMut(&'s T) -> Result<U, E>,
    ) -> Result<HmacSign<U>, E> {
        let mut headers = BTreeMap::new();
        for (name, value) in &self.headers {
            headers.insert(name.clone(), map(value)?);
        }
        Ok(HmacSign {
            key: map(&self.key)?,
            algorithm: self.algorithm,
            encoding: self.encoding,
            over: map(&self.over)?,
            headers,
        })
    }

    /// Returns the signature of the rendered text `over` with a rendered key.
    ///
    /// # Errors
    /// MD5.
    pub fn signature(&self, key: &[u8], over: &str) -> Result<String, String> {
        let tag = hmac(self.algorithm, key, over.as_bytes())?;
        Ok(self.encoding.encode(tag.as_ref()))
    }
}
