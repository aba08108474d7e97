//! The common work of all fronts: reads and changes, within limits, by the domains' decisions. It knows no protocol.

pub mod calendar;
mod change;
mod deliveries;
pub mod documents;
pub mod mail;
mod meetings_bytes;
mod quotas;
mod record_mutex;
mod service;
mod user;

pub use change::{ChangeError, change, change_aside};
pub use deliveries::{Fingerprint, fingerprint};
pub use service::{Parts, Service, Settings, Usage};
pub use user::User;
