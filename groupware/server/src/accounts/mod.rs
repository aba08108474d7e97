//! Who the users are: their names, what they sign in with, and how both are kept.

mod account;
mod book;
mod directory;
mod name;
mod password;

pub(crate) use account::{Account, Credentials};
pub(crate) use book::{AccountError, Accounts, NewUser};
pub(crate) use directory::Directory;
pub(crate) use name::{UserName, without_nsf};
pub(crate) use password::{MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES, Passwords, Verdict};
