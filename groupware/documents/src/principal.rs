//! The principal of a request, and the owner of the documents.

/// The principal, and the owner of the database. Names are in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Principal<'a> {
    /// The signed-in user.
    pub user: &'a str,
    /// The time of the user's registration, seconds since 1970.
    pub since: i64,
    /// The owner: the name of the partition and in paths.
    pub mailbox: &'a str,
}

impl<'a> Principal<'a> {
    /// The owner, or the server on the owner's behalf.
    pub fn owner(mailbox: &'a str) -> Self {
        Self {
            user: mailbox,
            since: 0,
            mailbox,
        }
    }

    /// Returns true if the database belongs to the user.
    pub fn is_owner(self) -> bool {
        self.user == self.mailbox
    }
}
