//! The groupware in one process: connects its parts, and starts and stops them.
//!
//! The behaviour is in the parts.

mod config;
mod error;
mod first_admin;
mod object_metrics;
mod parts;
mod reload;
mod router;
mod run;
mod server;

pub use config::{Config, Limits, LogSettings};
pub use error::ServeError;
pub use groupware_data::{
    CheckError, Checked, CopyError, Data, DataError, ObjectPlace, Records, check, check_data, copy,
    note_restored,
};
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
pub use groupware_process::LogFormat;
pub use groupware_store::{Stage, TransferError, Transferred};
pub use reload::Reloaded;
pub use run::{ProcessEnvironment, run, run_demo};
pub use server::Server;
