//! Valid names of users.

use std::sync::Arc;

/// The maximum length of a user name in bytes.
const MAX_BYTES: usize = 64;

/// A user's name: 1 to 64 letters, digits, `.`, `_`, `-`, not starting with a dot and not ending
/// with `.nsf`, which addresses the same mailbox. Spellings that differ in case name one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName {
    /// The spelling at registration.
    spelling: Arc<str>,
    /// The name in lower case; also the name of the partition that holds the account.
    key: Arc<str>,
}

impl UserName {
    /// Parses a name; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        if !is_valid(text) {
            return None;
        }
        let spelling: Arc<str> = text.into();
        let key = match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => text.to_ascii_lowercase().into(),
            false => Arc::clone(&spelling),
        };
        Some(Self { spelling, key })
    }

    /// Returns the spelling at registration.
    pub fn spelling(&self) -> &Arc<str> {
        &self.spelling
    }

    /// Returns the name in lower case; also the name of the partition that holds the account.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }
}

fn is_valid(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len())
        && !text.starts_with('.')
        && without_nsf(text) == text
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Removes the suffix of Domino's files from an account's name.
pub fn without_nsf(text: &str) -> &str {
    match text
        .len()
        .checked_sub(4)
        .and_then(|at| text.split_at_checked(at))
    {
        Some((name, suffix)) if suffix.eq_ignore_ascii_case(".nsf") => name,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_checked() {
        for good in [
            "a",
            "Ada.Lovelace",
            "user00001",
            "x_y-z",
            "-",
            "nsf",
            &"a".repeat(64),
        ] {
            assert!(UserName::parse(good).is_some(), "{good}");
        }
        for bad in [
            "", ".", "..", ".a", "a b", "a/b", "a@b", "ä", "a.nsf", "A.NSF", "a\0",
        ] {
            assert!(UserName::parse(bad).is_none(), "{bad}");
        }
        assert!(UserName::parse(&"a".repeat(65)).is_none());
    }

    proptest! {
        #[test]
        fn names_never_panic_and_keys_are_lower_case(text in "\\PC{0,80}|[A-Za-z0-9._-]{0,66}") {
            let _ = without_nsf(&text);
            if let Some(name) = UserName::parse(&text) {
                prop_assert_eq!(&**name.spelling(), &*text);
                let key = text.to_ascii_lowercase();
                prop_assert_eq!(&**name.key(), &*key);
                let suffixed = format!("{text}.NsF");
                prop_assert_eq!(without_nsf(&suffixed), &*text);
            }
        }
    }
}
