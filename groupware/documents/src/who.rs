//! Who asks, and whose documents are asked for.

/// Who asks, and whose database is asked for. Names are in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// The signed-in user.
    pub user: &'a str,
    /// When the user was registered, seconds since 1970.
    pub since: i64,
    /// The owner: the name of the partition and in paths.
    pub mailbox: &'a str,
}

impl<'a> Who<'a> {
    /// The owner, or the server on the owner's behalf.
    pub fn owner(mailbox: &'a str) -> Self {
        Self {
            user: mailbox,
            since: 0,
            mailbox,
        }
    }

    /// Whether the database is the user's own.
    pub fn is_owner(self) -> bool {
        self.user == self.mailbox
    }
}
