//! The text form and the stored form of secrets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The size of a generated secret in bytes: 192 bits.
pub const SECRET_BYTES: usize = 24;
/// The number of random bytes for an application password: its name and its text.
pub const APP_PASSWORD_BITS: usize = 8 + SECRET_BYTES;

/// The random bytes of an application password.
pub type AppPasswordBits = [u8; APP_PASSWORD_BITS];

/// The stored form of a random secret. It has too many bits to be guessed, so a fast hash protects it.
pub type SecretHash = [u8; 32];

/// Encodes a secret as text that is valid in a cookie, a header, and a command line.
pub fn secret_text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Hashes a random secret.
pub fn hash_secret(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}
