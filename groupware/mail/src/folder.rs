//! The folders of a mailbox. Each message lies in exactly one.

use std::fmt;

use crate::Unid;

/// A folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    /// What others have sent.
    Inbox,
    /// The owner's copies of what the owner has sent.
    Sent,
    /// What is not sent yet.
    Drafts,
    /// What was deleted, until it is deleted again.
    Trash,
    /// What was taken out of another folder and put into none.
    Archive,
    /// One of the owner's own making.
    Own(Unid),
}

impl Folder {
    /// The folders that every mailbox has.
    pub const BUILT_IN: [Self; 5] = [
        Self::Inbox,
        Self::Sent,
        Self::Drafts,
        Self::Trash,
        Self::Archive,
    ];

    /// Reads the written form: a built-in folder's name, or the UNID of an own one.
    pub fn parse(text: &str) -> Option<Self> {
        let built_in = Self::BUILT_IN
            .into_iter()
            .find(|folder| folder.to_string().eq_ignore_ascii_case(text));
        built_in.or_else(|| Unid::parse(text).map(Self::Own))
    }

    /// The name that people see of a built-in folder.
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

/// As it stands in keys and paths.
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
