//! JSON Web Tokens (RFC 7519), signed as in RFC 7515 and RFC 8037.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512,
    RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value};

use crate::hash::{Hash, hmac};
use crate::key::{KeyKind, TO_PKCS8};

/// How the function is called.
pub(crate) const USAGE: &str =
    "jwt({'sub': 'ada', 'exp': now() + 300}, secret('JWT_KEY'), 'HS256'): a signed token";

/// Supported signature algorithms.
const ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "EdDSA",
];

/// Maximum cached parsed keys.
const KEPT: usize = 64;

thread_local! {
    /// By algorithm and text. Parsing an RSA key takes longer than some requests.
    static KEYS: RefCell<HashMap<KeyName, Rc<Key>>> = RefCell::default();
}

/// An algorithm, and the text of a key.
type KeyName = (String, Vec<u8>);

enum Key {
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// Returns a token with these claims. The key is a secret for `HS…`, and a private key as PEM for all others.
///
/// # Errors
/// Claims that are no object, an unknown algorithm, and a key of the wrong kind.
pub(crate) fn jwt(
    claims: &Value,
    key: &[u8],
    algorithm: &str,
    header: Option<Value>,
) -> Result<String, String> {
    if !claims.is_object() {
        return Err(format!("the claims are no object: {USAGE}"));
    }
    let mut fields = match header {
        None => Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            return Err("the header of a token is an object, such as {'kid': 'key-1'}".to_owned());
        }
    };
    fields.insert("alg".to_owned(), algorithm.into());
    fields.entry("typ").or_insert_with(|| "JWT".into());
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&Value::Object(fields)), part(claims));
    let signature = signature(algorithm, key, signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Returns true if signatures with this algorithm have a random part.
#[must_use]
pub fn is_random(algorithm: &str) -> bool {
    matches!(algorithm, "ES256" | "ES384" | "PS256" | "PS384" | "PS512")
}

/// Returns the claims of a token; nothing is verified.
///
/// # Errors
/// A text that is no token.
pub(crate) fn claims(token: &str) -> Result<Value, String> {
    let no_token = || "it is no JSON Web Token".to_owned();
    let claims = token.split('.').nth(1).ok_or_else(no_token)?;
    let bytes = URL_SAFE_NO_PAD
        .decode(claims.trim_end_matches('='))
        .map_err(|_| no_token())?;
    serde_json::from_slice(&bytes).map_err(|_| no_token())
}

/// Signs a text with an algorithm of JSON Web Signatures.
pub(crate) fn signature(algorithm: &str, key: &[u8], signed: &[u8]) -> Result<Vec<u8>, String> {
    match algorithm {
        "HS256" => return tag(Hash::Sha256, key, signed),
        "HS384" => return tag(Hash::Sha384, key, signed),
        "HS512" => return tag(Hash::Sha512, key, signed),
        _ => {}
    }
    let failed = |_| format!("the key can't sign by `{algorithm}`");
    let random = SystemRandom::new();
    match &*key_of(algorithm, key)? {
        Key::Rsa(pair, encoding) => {
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(*encoding, &random, signed, &mut signature)
                .map_err(failed)?;
            Ok(signature)
        }
        Key::Ec(pair) => Ok(pair
            .sign(&random, signed)
            .map_err(failed)?
            .as_ref()
            .to_vec()),
        Key::Ed(pair) => Ok(pair.sign(signed).as_ref().to_vec()),
    }
}

fn tag(hash: Hash, key: &[u8], signed: &[u8]) -> Result<Vec<u8>, String> {
    hmac(hash, key, signed).map(|tag| tag.as_ref().to_vec())
}

fn key_of(algorithm: &str, key: &[u8]) -> Result<Rc<Key>, String> {
    let name = (algorithm.to_owned(), key.to_vec());
    if let Some(kept) = KEYS.with_borrow(|kept| kept.get(&name).cloned()) {
        return Ok(kept);
    }
    let read = Rc::new(read(algorithm, key)?);
    KEYS.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(name, Rc::clone(&read));
    });
    Ok(read)
}

fn read(algorithm: &str, key: &[u8]) -> Result<Key, String> {
    let rsa: Option<&'static dyn RsaEncoding> = match algorithm {
        "RS256" => Some(&RSA_PKCS1_SHA256),
        "RS384" => Some(&RSA_PKCS1_SHA384),
        "RS512" => Some(&RSA_PKCS1_SHA512),
        "PS256" => Some(&RSA_PSS_SHA256),
        "PS384" => Some(&RSA_PSS_SHA384),
        "PS512" => Some(&RSA_PSS_SHA512),
        _ => None,
    };
    if let Some(encoding) = rsa {
        let pair = match private_key(algorithm, key)? {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            _ => return Err(needs(algorithm, KeyKind::Rsa.name())),
        };
        return pair
            .map(|pair| Key::Rsa(pair, encoding))
            .map_err(|_| needs(algorithm, "an RSA key of 2048 bits or more"));
    }
    match algorithm {
        "ES256" => curve(
            algorithm,
            key,
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            KeyKind::P256.name(),
        ),
        "ES384" => curve(
            algorithm,
            key,
            &ECDSA_P384_SHA384_FIXED_SIGNING,
            KeyKind::P384.name(),
        ),
        "EdDSA" => match private_key(algorithm, key)? {
            PrivateKeyDer::Pkcs8(der) => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
                    .map(Key::Ed)
                    .map_err(|_| needs(algorithm, KeyKind::Ed25519.name()))
            }
            _ => Err(needs(algorithm, KeyKind::Ed25519.name())),
        },
        _ => Err(format!(
            "there is no algorithm `{algorithm}` for tokens: it is one of {}",
            ALGORITHMS.join(", ")
        )),
    }
}

fn curve(
    algorithm: &str,
    key: &[u8],
    by: &'static EcdsaSigningAlgorithm,
    wanted: &str,
) -> Result<Key, String> {
    let PrivateKeyDer::Pkcs8(der) = private_key(algorithm, key)? else {
        return Err(format!(
            "{}, in the form PKCS #8: {TO_PKCS8}",
            needs(algorithm, wanted)
        ));
    };
    let pair = EcdsaKeyPair::from_pkcs8(by, der.secret_pkcs8_der(), &SystemRandom::new());
    pair.map(Key::Ec).map_err(|_| needs(algorithm, wanted))
}

fn private_key(algorithm: &str, key: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(key).map_err(|_| needs(algorithm, "a private key as PEM"))
}

fn needs(algorithm: &str, what: &str) -> String {
    format!("`{algorithm}` needs {what}")
}
