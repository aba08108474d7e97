//! Random bits from the system.

use std::cell::RefCell;

use groupware_people::{SECRET_BYTES, secret_text};

/// Fills an array with random bytes.
///
/// # Panics
/// When the system has no source of randomness; then no work here may continue.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has a source of random bits");
    bytes
}

/// Returns bits for an identifier. They are read from the system in batches and stay in memory for a while, so no
/// secret may be made of them.
pub fn bits() -> u128 {
    const AT_ONCE: usize = 32;
    thread_local! {
        static SPARE: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
    }
    SPARE.with_borrow_mut(|spare| {
        if spare.is_empty() {
            let many = bytes::<{ 16 * AT_ONCE }>();
            spare.extend_from_slice(many.as_chunks().0);
        }
        let bits = spare
            .pop()
            .expect("there are some, or there were none and many came");
        u128::from_le_bytes(bits)
    })
}

/// Returns a new secret as text that is valid in a cookie, a header, and a command line.
pub fn secret() -> String {
    secret_text(&bytes::<SECRET_BYTES>())
}

/// Returns a new password for a person: 80 random bits in unambiguous letters and digits.
pub fn password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letters = bytes::<16>().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    let groups: Vec<String> = letters
        .chunks(4)
        .map(|group| group.iter().collect())
        .collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_new() {
        let bits: std::collections::BTreeSet<_> = (0..1000).map(|_| bits()).collect();
        assert_eq!(bits.len(), 1000);
        assert!(bits.iter().all(|bits| bits.count_ones() > 20));
    }

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
