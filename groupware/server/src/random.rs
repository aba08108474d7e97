//! Random bits from the system, and the text that secrets take.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Bytes in a secret that is handed out: 192 bits.
pub(crate) const SECRET_BYTES: usize = 24;

/// Fills an array with random bytes.
///
/// # Panics
/// When the system has no source of randomness, in which case nothing here may go on.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has a source of random bits");
    bytes
}

/// A new secret, as text that fits a cookie, a header, and a command line.
pub(crate) fn secret() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<SECRET_BYTES>())
}

/// The form in which a random secret is kept: it has too many bits to be guessed, so that a fast
/// hash protects it.
pub(crate) type SecretHash = [u8; 32];

/// Hashes a random secret.
pub(crate) fn hash(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_new() {
        let secrets: std::collections::BTreeSet<_> = (0..1000).map(|_| secret()).collect();
        assert_eq!(secrets.len(), 1000);
        assert!(
            secrets
                .iter()
                .all(|secret| secret.len() == SECRET_BYTES * 4 / 3)
        );
    }
}
