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
mod throttle;
mod tls;
mod turn;
mod worker;

pub(crate) use app::AppState;
pub use config::{Config, Data, Limits, TlsFiles};
pub use groupware_lookup::Layout as LookupLayout;
pub use lookup::LookupAccess;
pub(crate) use owner::Owner;
pub use run::{run, run_demo};
pub use server::{ServeError, Server};
pub use tls::TlsError;

/// Parsers of what comes from the network, apart from what hyper and axum parse: for fuzzing.
pub mod parse {
    pub use crate::credentials::{Authorization, authorization, login_form, session_cookie};
}
