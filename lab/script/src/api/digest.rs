//! Hashes and keyed hashes of `k6/crypto`. It knows no JavaScript.

/// A hash function, by its name in scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md4,
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Ripemd160,
}

impl Algorithm {
    /// The algorithm of this name, as k6 and as the Web write it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "md4" => Self::Md4,
            "md5" => Self::Md5,
            "sha1" | "SHA-1" => Self::Sha1,
            "sha256" | "SHA-256" => Self::Sha256,
            "sha384" | "SHA-384" => Self::Sha384,
            "sha512" | "SHA-512" => Self::Sha512,
            "sha512_224" => Self::Sha512_224,
            "sha512_256" => Self::Sha512_256,
            "ripemd160" => Self::Ripemd160,
            _ => return None,
        })
    }

    /// The hash of all parts, one after the other.
    pub(crate) fn digest(self, parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Md4 => hashed::<md4::Md4>(parts),
            Self::Md5 => hashed::<md5::Md5>(parts),
            Self::Ripemd160 => hashed::<ripemd::Ripemd160>(parts),
            Self::Sha512_224 => sha512_224(parts),
            Self::Sha1 => by_ring(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, parts),
            Self::Sha256 => by_ring(&ring::digest::SHA256, parts),
            Self::Sha384 => by_ring(&ring::digest::SHA384, parts),
            Self::Sha512 => by_ring(&ring::digest::SHA512, parts),
            Self::Sha512_256 => by_ring(&ring::digest::SHA512_256, parts),
        }
    }

    /// The keyed hash of all parts (RFC 2104).
    pub(crate) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let block = self.block();
        let mut padded = if key.len() > block {
            self.digest(&[key])
        } else {
            key.to_vec()
        };
        padded.resize(block, 0);
        let inner: Vec<u8> = padded.iter().map(|byte| byte ^ 0x36).collect();
        let outer: Vec<u8> = padded.iter().map(|byte| byte ^ 0x5c).collect();
        let mut all: Vec<&[u8]> = vec![&inner];
        all.extend_from_slice(parts);
        let hash = self.digest(&all);
        self.digest(&[&outer, &hash])
    }

    /// The length of a block in bytes (RFC 1320, RFC 1321, FIPS 180-4).
    fn block(self) -> usize {
        match self {
            Self::Md4 | Self::Md5 | Self::Sha1 | Self::Sha256 | Self::Ripemd160 => 64,
            Self::Sha384 | Self::Sha512 | Self::Sha512_224 | Self::Sha512_256 => 128,
        }
    }
}

fn hashed<D: md4::Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut hash = D::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().to_vec()
}

fn sha512_224(parts: &[&[u8]]) -> Vec<u8> {
    use sha2::Digest as _;
    let mut hash = sha2::Sha512_224::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().to_vec()
}

fn by_ring(algorithm: &'static ring::digest::Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    let mut hash = ring::digest::Context::new(algorithm);
    for part in parts {
        hash.update(part);
    }
    hash.finish().as_ref().to_vec()
}
