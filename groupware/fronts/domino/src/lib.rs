//! Calendar, mail, and documents for programs, in the shape of Domino's services, with their
//! sign-in: parse the request, let the domains decide, answer. Knows no rule of theirs.

mod calendar;
mod documents;
mod failure;
mod front;
mod mail;
mod reservations;
mod sign_in;

use axum::Router;
use groupware_http::Gate;

pub use front::Domino;
pub use reservations::Reservations;

/// All these routes, behind the gate.
pub fn routes(domino: &Domino, gate: &Gate) -> Router {
    Router::new()
        .merge(sign_in::routes(domino, gate))
        .merge(calendar::routes(domino, gate))
        .merge(mail::routes(domino, gate))
        .merge(documents::routes(domino, gate))
}
