//! Who the users are: their names, what they sign in with, who is signed in, and how all that is kept, as
//! records and decisions over a snapshot and the users in memory. Other domains ask who is a local user through
//! [`Directory`], and see nothing of the accounts.
//!
//! It reads no clock, draws no random bits, and commits nothing: whoever asks does.

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

/// Keys of a user's partition that outlive a reset begin with this: filler that makes the mailbox as
/// large as whoever registered the user wants it. Those of the domain crates never do.
pub const KEPT_PREFIX: &[u8] = b"pad/";
