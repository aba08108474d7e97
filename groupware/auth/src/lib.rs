//! Accounts, passwords, and sessions, as cached by this server and synchronized with the store,
//! which other servers may change too. It knows no protocol.

mod account_cache;
mod accounts;
mod auth;
mod begun;
mod cache;
mod emptying;
mod passwords;
pub mod secret;
mod sessions;
mod sign_in;
mod throttle;

pub use accounts::{Accounts, AccountsError, Ends};
pub use auth::{Auth, Settings};
pub use passwords::{Busy, MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES, Passwords};
pub use sessions::{Lifetime, SessionLine, Sessions};
pub use sign_in::{Proven, SignInError};
