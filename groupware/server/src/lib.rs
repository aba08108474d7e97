//! The groupware in one process: its parts put together, started, and stopped.
//!
//! What the parts do is known to them.

mod admin_token;
mod check;
mod config;
mod copy;
mod error;
mod first_admin;
mod folder_id;
mod log;
mod notify;
mod objects;
mod parts;
mod reload;
mod router;
mod run;
mod server;
mod stored;

pub use check::{CheckError, Checked, check, check_data};
pub use config::{Config, Data, Limits, LogSettings, Reached};
pub use copy::{CopyError, Records, copy, note_restored};
pub use error::ServeError;
pub use groupware_front_lookup::LookupAccess;
pub use groupware_front_smtp::{Role as SmtpRole, SmtpLimits};
pub use groupware_jobs::Retention;
pub use groupware_lookup::Layout as LookupLayout;
pub use groupware_net::{Network, Networks, TlsError, TlsFiles};
pub use groupware_objects::{
    Address as ObjectAddress, AddressError as ObjectAddressError, Credentials as ObjectCredentials,
    CredentialsError as ObjectCredentialsError, OpenError as ObjectsError,
};
pub use groupware_postgres::{
    AddressError, Database, OpenError as DatabaseError, without_password,
};
pub use groupware_store::{Stage, TransferError, Transferred};
pub use log::LogFormat;
pub use objects::ObjectPlace;
pub use reload::Reloaded;
pub use run::{Surroundings, run, run_demo};
pub use server::Server;
