//! Any text as a key: a signing key, a secret, or an error that shows nothing of it.

use lab_workload::{Key, KeyKind, KeySource};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let of_file = Key::unknown("k", KeySource::File("k.pem".to_owned()), None).with_text(text);
    match (KeyKind::of(text), of_file) {
        (Ok(KeyKind::Secret), Err(_)) | (Err(_), Err(_)) => {}
        (Ok(kind), Ok(key)) => {
            assert_ne!(kind, KeyKind::Secret);
            assert_eq!(key.mismatch(kind, "x"), None);
            assert!(key.mismatch(KeyKind::Secret, "x").is_some());
            assert_eq!(key.file_sha256().map(|sum| sum.len()), Some(64));
        }
        (kind, key) => panic!("{kind:?}, but as a file {key:?}"),
    }
}
