//! The folders of an account. Each message lies in exactly one.

use std::fmt;

use crate::Unid;

/// A folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    /// Messages from others.
    Inbox,
    /// The owner's copies of sent messages.
    Sent,
    /// Messages that are not sent yet.
    Drafts,
    /// Deleted messages, until they are deleted again.
    Trash,
    /// Messages that were removed from another folder without a new one.
    Archive,
    /// A folder that the owner created.
    Own(Unid),
}

impl Folder {
    /// The folders that every account has.
    pub const BUILT_IN: [Self; 5] = [
        Self::Inbox,
        Self::Sent,
        Self::Drafts,
        Self::Trash,
        Self::Archive,
    ];

    /// Parses the written form: a built-in folder's name, or the id of an own one.
    pub fn parse(text: &str) -> Option<Self> {
        let built_in = Self::BUILT_IN
            .into_iter()
            .find(|folder| folder.to_string().eq_ignore_ascii_case(text));
        built_in.or_else(|| Unid::parse(text).map(Self::Own))
    }

    /// The displayed name of a built-in folder.
    pub fn title(self) -> Option<&'static str> {
        Some(match self {
            Self::Inbox => "Inbox",
            Self::Sent => "Sent",
            Self::Drafts => "Drafts",
            Self::Trash => "Trash",
            Self::Archive => "Archive",
            Self::Own(_) => return None,
        })
    }
}

/// The form in keys and paths.
impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inbox => f.write_str("inbox"),
            Self::Sent => f.write_str("sent"),
            Self::Drafts => f.write_str("drafts"),
            Self::Trash => f.write_str("trash"),
            Self::Archive => f.write_str("archive"),
            Self::Own(unid) => unid.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_back() {
        let own = Folder::Own(Unid::new(5, 6));
        for folder in Folder::BUILT_IN.into_iter().chain([own]) {
            assert_eq!(Folder::parse(&folder.to_string()), Some(folder));
        }
        assert_eq!(Folder::parse("INBOX"), Some(Folder::Inbox));
        assert_eq!(Folder::parse("in"), None);
    }
}
