//! Keys of signatures: the kind of key in a text, and its algorithm. Nothing here shows a key.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

/// The start of a PEM section (RFC 7468).
const BEGIN: &str = "-----BEGIN ";
/// The object identifier of the algorithm is within this many bytes of a key's start.
const HEAD: usize = 64;

/// The kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Any bytes: the key of a keyed hash.
    Secret,
    /// A private key of RSA.
    Rsa,
    /// A private key on the curve P-256.
    P256,
    /// A private key on the curve P-384.
    P384,
    /// A private key of Ed25519.
    Ed25519,
}

impl KeyKind {
    /// Returns its description.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secret => "a secret",
            Self::Rsa => "an RSA key",
            Self::P256 => "an EC key on P-256",
            Self::P384 => "an EC key on P-384",
            Self::Ed25519 => "an Ed25519 key",
        }
    }

    /// Returns the kind that a JSON Web Token algorithm requires; `None` for an unknown algorithm.
    #[must_use]
    pub fn of_token(algorithm: &str) -> Option<Self> {
        Some(match algorithm {
            "HS256" | "HS384" | "HS512" => Self::Secret,
            "RS256" | "RS384" | "RS512" | "PS256" | "PS384" | "PS512" => Self::Rsa,
            "ES256" => Self::P256,
            "ES384" => Self::P384,
            "EdDSA" => Self::Ed25519,
            _ => return None,
        })
    }

    /// Returns the kind of key in a text: a private key as PEM, or else a secret.
    ///
    /// # Errors
    /// Phrased to follow a file name: PEM without a private key, or with one that can't sign.
    pub fn of(text: &str) -> Result<Self, String> {
        let Some((_, label)) = text.split_once(BEGIN) else {
            return Ok(Self::Secret);
        };
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
        match key {
            Ok(PrivateKeyDer::Pkcs1(der)) => RsaKeyPair::from_der(der.secret_pkcs1_der())
                .map(|_| Self::Rsa)
                .map_err(|_| SHORT_RSA.to_owned()),
            Ok(PrivateKeyDer::Pkcs8(der)) => of_pkcs8(der.secret_pkcs8_der()),
            Ok(_) => Err(format!(
                "holds an EC key in a form that is not PKCS #8: {TO_PKCS8}"
            )),
            Err(_) => Err(no_key(label)),
        }
    }
}

/// The command that converts a key to PKCS #8.
pub(crate) const TO_PKCS8: &str = "openssl pkcs8 -topk8 -nocrypt -in key.pem";
const SHORT_RSA: &str = "holds no RSA key of 2048 bits or more that is whole";

/// Describes PEM without a private key, by the label of its first section.
fn no_key(label: &str) -> String {
    let label = label.split("-----").next().unwrap_or_default();
    match label {
        "ENCRYPTED PRIVATE KEY" => {
            "holds an encrypted key: openssl pkey -in key.pem -out plain.pem".to_owned()
        }
        "PUBLIC KEY" | "RSA PUBLIC KEY" => {
            "holds a public key, and a private one is what signs".to_owned()
        }
        "CERTIFICATE" => "holds a certificate, and its private key is what signs".to_owned(),
        _ => "holds no private key as PEM".to_owned(),
    }
}

fn of_pkcs8(der: &[u8]) -> Result<KeyKind, String> {
    let random = SystemRandom::new();
    let is_of = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der, &random).is_ok();
    if RsaKeyPair::from_pkcs8(der).is_ok() {
        return Ok(KeyKind::Rsa);
    }
    if is_of(&ECDSA_P256_SHA256_FIXED_SIGNING) {
        return Ok(KeyKind::P256);
    }
    if is_of(&ECDSA_P384_SHA384_FIXED_SIGNING) {
        return Ok(KeyKind::P384);
    }
    if Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).is_ok() {
        return Ok(KeyKind::Ed25519);
    }
    let head = &der[..der.len().min(HEAD)];
    let has = |id: &[u8]| head.windows(id.len()).any(|part| part == id);
    let other = OTHERS.iter().find(|(id, _)| has(id));
    Err(other.map_or_else(
        || "holds a private key of a kind that signs nothing here".to_owned(),
        |(_, told)| (*told).to_owned(),
    ))
}

/// Object identifiers of unsupported keys, and their descriptions.
const OTHERS: &[(&[u8], &str)] = &[
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01],
        SHORT_RSA,
    ),
    (
        &[0x2b, 0x81, 0x04, 0x00, 0x23],
        "holds an EC key on P-521: use P-256 or P-384",
    ),
    (
        &[0x2b, 0x81, 0x04, 0x00, 0x0a],
        "holds an EC key on secp256k1: use P-256 or P-384",
    ),
    (
        &[0x2b, 0x65, 0x71],
        "holds an Ed448 key: use one of Ed25519",
    ),
    (
        &[0x2b, 0x65, 0x6e],
        "holds an X25519 key, which can't sign: use one of Ed25519",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_key_is_read_from_its_text() {
        let rsa = include_str!("tests/rsa.pem");
        for (text, kind) in [
            (rsa, KeyKind::Rsa),
            (include_str!("tests/p256.pem"), KeyKind::P256),
            (include_str!("tests/p384.pem"), KeyKind::P384),
            (include_str!("tests/ed25519.pem"), KeyKind::Ed25519),
            ("correct horse", KeyKind::Secret),
            ("", KeyKind::Secret),
            // Text around the section is not part of the key.
            (&format!("Bag Attributes\n{rsa}\n"), KeyKind::Rsa),
        ] {
            assert_eq!(KeyKind::of(text), Ok(kind));
        }
        for algorithm in ["none", "ES512", "ES256K", "hs256", ""] {
            assert_eq!(KeyKind::of_token(algorithm), None, "{algorithm}");
        }
    }

    #[test]
    fn text_without_a_key_that_signs_is_refused_with_a_cure() {
        for (text, told) in [
            (include_str!("tests/sec1.pem"), "not PKCS #8: openssl"),
            (include_str!("tests/encrypted.pem"), "encrypted key"),
            (include_str!("tests/public.pem"), "a public key"),
            (include_str!("tests/p521.pem"), "P-521"),
            (include_str!("tests/x25519.pem"), "X25519"),
            (include_str!("tests/rsa1024.pem"), "2048 bits"),
            ("-----BEGIN PRIVATE KEY-----\n", "no private key"),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "of a kind",
            ),
        ] {
            let error = KeyKind::of(text).expect_err(told);
            assert!(error.contains(told), "{told}: {error}");
        }
    }

    #[test]
    fn cut_key_is_refused() {
        let rsa = include_str!("tests/rsa.pem");
        for cut in (30..rsa.len() - 30).step_by(7) {
            let broken = format!("{}{}", &rsa[..cut], &rsa[cut + 5..]);
            let kind = KeyKind::of(&broken);
            assert!(kind.is_err(), "without five bytes at {cut}: {kind:?}");
        }
    }
}
