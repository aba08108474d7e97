//! The HTTP front of the groupware: sign-in, limits, TLS, metrics, routes.
//!
//! It knows who may do what and how much of it at once; what events or invitations are is known
//! to the domain crates, whose routes are mounted here.

mod access_log;
mod accounts;
mod admin;
mod admin_token;
mod app;
mod calendar;
mod change;
mod client;
mod clock;
mod config;
mod credentials;
mod demo;
mod documents;
mod error;
mod lane;
mod lookup;
mod mail;
mod metrics;
mod owner;
mod padding;
mod pages;
mod random;
mod room;
mod router;
mod run;
mod serve;
mod server;
mod sessions;
mod sign_in;
mod smtp;
mod stream;
mod throttle;
mod tls;
mod turn;
mod tus;
mod worker;

pub(crate) use app::AppState;
pub use config::{Config, Data, Limits, SmtpLimits, TlsFiles};
pub use documents::{CheckError, Checked};
pub use groupware_lookup::Layout as LookupLayout;
pub use lookup::LookupAccess;
pub(crate) use owner::Owner;
pub use run::{run, run_demo};
pub use server::{ServeError, Server};
pub use tls::TlsError;

/// Looks through the data in a folder: do the records fit each other, and is the content of every
/// attachment right to the last byte. No server may be using it. Removes nothing.
///
/// # Errors
/// When it can't be looked through; what is wrong in it is found, and no error.
pub fn check(folder: &std::path::Path) -> Result<Checked, CheckError> {
    documents::check(folder)
}

/// Parsers of what comes from the network, apart from what hyper and axum parse: for fuzzing.
pub mod parse {
    pub use crate::credentials::{Authorization, authorization, login_form, session_cookie};
    pub use crate::pages::clean_html;
    pub use crate::smtp::command::{Command, Mechanism, command as smtp_command};
    pub use crate::smtp::data::{Flaw, Text};
}
