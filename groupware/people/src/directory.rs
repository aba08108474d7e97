//! The view of the users that other domains have. It contains no credentials.

use groupware_store::StoreError;

/// The directory of the local users.
pub trait Directory {
    /// Returns the local user of an address (`ann@localhost`) or a bare name (`ann`), in the spelling that names the
    /// account; `None` for any other address.
    ///
    /// # Errors
    /// The store's, if the directory lies in one.
    fn user(&self, address: &str) -> Result<Option<String>, StoreError>;

    /// Returns a local user's registration time (seconds since 1970). Older data is of an earlier account of that name.
    ///
    /// # Errors
    /// The store's, if the directory lies in one.
    fn registered(&self, user: &str) -> Result<Option<i64>, StoreError>;

    /// Returns the address to show for a local user.
    fn email(&self, user: &str) -> String;

    /// The domain of the local users' addresses, in lower case.
    fn domain(&self) -> &str;
}
