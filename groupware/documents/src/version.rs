//! The version of a document or attachment that a client knows.

use std::fmt;

use crate::mailbox::HeldDocument;
use crate::{DocumentError, Reason};

/// A version of a document. It includes the time because a restored copy of the store continues
/// with older revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    revision: u64,
    /// The time of the document's last change, in seconds.
    pub modified: i64,
}

impl Version {
    pub(crate) fn of(held: &HeldDocument) -> Self {
        Self {
            revision: held.revision,
            modified: held.document.modified,
        }
    }

    /// The entity tag.
    pub fn tag(&self) -> String {
        format!("\"{self}\"")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}-{:x}", self.revision, self.modified)
    }
}

/// The versions that a client knows, by its conditional headers (RFC 9110, 13.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tags one of which must be the current one.
    pub if_match: Option<String>,
    /// Tags none of which may be the current one.
    pub if_none_match: Option<String>,
    /// The time of the last known change, in seconds. Ignored if tags must match.
    pub unmodified_since: Option<i64>,
}

impl Seen {
    /// Returns true if the client has the version of this tag.
    pub fn has(&self, tag: &str) -> bool {
        let tags = self.if_none_match.as_deref();
        // Weak comparison.
        tags.is_some_and(|tags| names(tags, |it| it.strip_prefix("W/").unwrap_or(it) == tag))
    }

    /// Rejects a change if the client doesn't know the current version, by tag and time of change.
    pub(crate) fn check(&self, current: Option<(&str, i64)>) -> Result<(), DocumentError> {
        let is_meant = match (&self.if_match, self.unmodified_since) {
            (Some(tags), _) => current.is_some_and(|(tag, _)| names(tags, |it| it == tag)),
            (None, Some(since)) => current.is_none_or(|(_, modified)| modified <= since),
            (None, None) => true,
        };
        let is_excluded = current.is_some_and(|(tag, _)| self.has(tag));
        match is_meant && !is_excluded {
            true => Ok(()),
            false => Err(DocumentError::refused(
                Reason::Changed,
                "The document was changed meanwhile.",
            )),
        }
    }
}

fn names(tags: &str, is_it: impl Fn(&str) -> bool) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || is_it(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_the_version_that_its_client_saw() {
        let seen = |if_match: &str, if_none_match: &str, unmodified_since| {
            let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Seen {
                if_match: given(if_match),
                if_none_match: given(if_none_match),
                unmodified_since,
            }
        };
        let (here, gone) = (Some(("\"1-a\"", 10)), None);
        for (seen, current, expected) in [
            (seen("", "", None), here, true),
            (seen("", "", None), gone, true),
            (seen("\"1-a\"", "", None), here, true),
            (seen("\"0-a\", \"1-a\"", "", None), here, true),
            (seen("*", "", None), here, true),
            (seen("*", "", None), gone, false),
            (seen("\"0-a\"", "", None), here, false),
            (seen("W/\"1-a\"", "", None), here, false),
            (seen("what", "", None), here, false),
            // Seconds are ignored where a tag counts.
            (seen("\"1-a\"", "", Some(9)), here, true),
            (seen("\"0-a\"", "", Some(10)), here, false),
            (seen("", "", Some(10)), here, true),
            (seen("", "", Some(9)), here, false),
            (seen("", "*", None), here, false),
            (seen("", "*", None), gone, true),
            (seen("", "W/\"1-a\"", None), here, false),
            (seen("", "\"0-a\"", None), here, true),
        ] {
            assert_eq!(
                seen.check(current).is_ok(),
                expected,
                "{seen:?} {current:?}"
            );
        }
    }
}
