//! What other domains may ask about the users. It says nothing of how they sign in.

use groupware_store::StoreError;

/// Who the local users are.
pub trait Directory {
    /// The local user behind an address (`ann@localhost`) or a bare name (`ann`), in the spelling
    /// that names the mailbox; `None` for everybody else.
    ///
    /// # Errors
    /// The store's, if the directory lies in one.
    fn user(&self, address: &str) -> Result<Option<String>, StoreError>;

    /// When a local user was registered, in seconds since 1970. Anything older belongs to an earlier account of that name.
    ///
    /// # Errors
    /// The store's, if the directory lies in one.
    fn registered(&self, user: &str) -> Result<Option<i64>, StoreError>;

    /// The address that is shown for a local user.
    fn email(&self, user: &str) -> String;

    /// The domain of the local users' addresses, in lower case.
    fn domain(&self) -> &str;
}
