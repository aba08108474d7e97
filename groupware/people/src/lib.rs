//! The users, their names, credentials, and sessions, and how they are stored: as records and decisions over a snapshot
//! and the users in memory. Other domains look up local users through [`Directory`] and have no access to the accounts.
//!
//! It reads no clock, draws no random bits, and commits nothing: its callers do.

mod account;
mod decide;
mod directory;
mod name;
mod news;
mod preferences;
mod secret;
mod session;
mod users;

pub use account::{Account, AppPassword, Credentials, LastUsed, MAX_APP_PASSWORDS, stamp};
pub use decide::{
    AccountError, Change, NewUser, Registered, add, add_app_password, change_password, clear,
    delete, departure, end_sessions, leaving, left, load, publish, ranges_of_reset, register,
    remove_app_password, set_admin, set_disabled, set_password,
};
pub use directory::Directory;
pub use name::{UserName, without_nsf};
pub use news::{Missed, News, Position};
pub use preferences::{choose_zone, zone};
pub use secret::{
    APP_PASSWORD_BITS, AppPasswordBits, SECRET_BYTES, SecretHash, hash_secret, secret_text,
};
pub use session::{HeldSession, Session};
pub use users::Users;

/// The prefix of keys of a user's partition that outlive a reset: filler, with the size given at registration. Keys of
/// the domain crates never have this prefix.
pub const KEPT_PREFIX: &[u8] = b"pad/";
