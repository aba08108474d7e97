//! The text that secrets take, and the form in which they are kept.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Bytes in a secret that is handed out: 192 bits.
pub const SECRET_BYTES: usize = 24;
/// Random bytes that an application password takes: its name and its text.
pub const APP_PASSWORD_BITS: usize = 8 + SECRET_BYTES;

/// What an application password is made from.
pub type AppPasswordBits = [u8; APP_PASSWORD_BITS];

/// The form in which a random secret is kept: it has too many bits to be guessed, so that a fast
/// hash protects it.
pub type SecretHash = [u8; 32];

/// A secret as text that fits a cookie, a header, and a command line.
pub fn secret_text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Hashes a random secret.
pub fn hash_secret(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}
