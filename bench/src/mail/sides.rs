//! The interface of both sides of the comparison, and the sizes.

use crate::common::Error;

/// Messages of an opened inbox, and the number of them that are listed.
pub(crate) const MESSAGES: u32 = 100;
pub(crate) const LISTED: u32 = 50;
pub(crate) const MESSAGE_BYTES: usize = 10_000;

/// A user on a connection of its own.
pub(crate) trait User: Send {
    /// Lists the newest [`LISTED`] messages of the inbox.
    fn list(&mut self) -> Result<(), Error>;
    /// Sends a message to this user; it is durable when this returns.
    fn send(&mut self, message: &str) -> Result<(), Error>;
    /// Returns the names of all messages in the inbox, as [`User::delete`] takes them.
    fn all(&mut self) -> Result<Vec<String>, Error>;
    /// Deletes a message permanently.
    fn delete(&mut self, name: &str) -> Result<(), Error>;
}

/// A server that creates its users on demand.
pub(crate) trait Server {
    /// Connects users of these names, each with [`MESSAGES`] messages in the inbox.
    fn users(&self, names: &[String]) -> Result<Vec<Box<dyn User>>, Error>;
}

/// The text of sent messages.
pub(crate) fn message() -> String {
    let line = "All work and no play makes a dull mailbox, whoever reads it and why.\r\n";
    line.repeat(MESSAGE_BYTES / line.len())
}
