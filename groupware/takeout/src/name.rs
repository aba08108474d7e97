//! File names from user-defined names, valid on every system.

/// The maximum length in bytes: file systems allow 255, and a suffix may follow.
const MOST_BYTES: usize = 200;
/// Device names on Windows.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Percent-encodes misleading characters and those that some system rejects. Different names stay different, and none
/// leads to another folder. A name above the maximum length ends with its hash.
pub(crate) fn safe(name: &str) -> String {
    let refused = |letter: char| {
        letter.is_control()
            || matches!(
                letter,
                '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '%'
            )
    };
    let last = name.chars().count().saturating_sub(1);
    let is_device = DEVICES.iter().any(|device| {
        let stem = name.split('.').next().unwrap_or_default();
        stem.eq_ignore_ascii_case(device)
    });
    let mut safe = String::with_capacity(name.len());
    for (at, letter) in name.chars().enumerate() {
        let at_an_end = (at == 0 || at == last) && matches!(letter, '.' | ' ');
        if refused(letter) || at_an_end || (at == 0 && is_device) {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                safe += &format!("%{byte:02X}");
            }
        } else {
            safe.push(letter);
        }
    }
    match safe.len() <= MOST_BYTES && !safe.is_empty() {
        true => safe,
        false => shortened(&safe),
    }
}

fn shortened(name: &str) -> String {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
    let end = name.floor_char_boundary(MOST_BYTES - 17);
    format!("{}%{hash:016X}", &name[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay_and_others_lead_nowhere() {
        for (name, expected) in [
            ("Archive 2020", "Archive 2020"),
            ("Über uns.pdf", "Über uns.pdf"),
            ("..", "%2E%2E"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            ("C:\\x", "C%3A\\x".replace('\\', "%5C").as_str()),
            ("aux.txt", "%61ux.txt"),
            ("100 %", "100 %25"),
            ("x.", "x%2E"),
        ] {
            assert_eq!(safe(name), expected);
        }
    }

    proptest! {
        #[test]
        fn different_names_stay_different(a in ".{0,80}", b in ".{0,80}") {
            prop_assert_eq!(a == b, safe(&a) == safe(&b));
            let safe = safe(&a);
            prop_assert!(!safe.is_empty() && safe.len() <= MOST_BYTES);
            prop_assert!(!safe.contains(['/', '\\', ':']) && !safe.starts_with('.'));
        }
    }
}
