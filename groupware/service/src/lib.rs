//! What all fronts do alike: find out who asks, read, change, within limits, by one clock and one
//! source of random bits. It knows the domains' decisions and no protocol.

mod accounts;
mod aside;
mod begun;
mod cache;
pub mod calendar;
mod caller;
mod change;
mod client;
pub mod clock;
pub mod documents;
mod emptying;
mod folders;
mod known;
mod lane;
mod limit;
pub mod mail;
mod meetings_bytes;
mod passwords;
mod quotas;
pub mod random;
pub mod secret;
mod service;
mod sessions;
mod sign_in;
mod throttle;
mod user;

pub use accounts::{Accounts, AccountsError, Ends};
pub use caller::{Caller, Permits, Via};
pub use change::{ChangeError, change, change_aside};
pub use client::Client;
pub use folders::{Folders, GONE_S, Holder, NOTED_EACH_S, OtherFolders};
pub use limit::Limiter;
pub use passwords::{Busy, MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES, Passwords};
pub use service::{Parts, Service, Settings, Usage};
pub use sessions::{Lifetime, SessionLine, Sessions};
pub use sign_in::{Proven, SignInError};
pub use user::User;
