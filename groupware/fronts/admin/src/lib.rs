//! The admin interface: registers users, manages their credentials, removes them or their data.
//!
//! Every change runs as a task of its own, so that a disconnected caller does not leave the store
//! and the directory in memory inconsistent.

mod calendar;
mod failure;
mod fill;
mod front;
mod mail;
mod people;
mod request;
mod takeout;
mod users;

use axum::Router;
use groupware_http::{AdminOnly, Body, Gate, Rules};

pub use front::AdminFront;

/// All these routes, behind the gate: only requests with the admin token may send a body, and large
/// answers are never refused, since an answer, such as a new password, can't be repeated.
pub fn routes(front: &AdminFront, gate: &Gate) -> Router {
    let rules = Rules {
        body: Body::Whole {
            most: front.body_bytes,
            within: front.within,
        },
        work_within: Some(front.within),
        refuses_large_answers: false,
    };
    Router::new()
        .merge(users::routes())
        .merge(people::routes())
        .merge(mail::routes())
        .merge(calendar::routes())
        .merge(fill::routes())
        .merge(takeout::routes())
        .layer(gate.layer(rules, AdminOnly(front.service.clone())))
        .with_state(front.clone())
}
