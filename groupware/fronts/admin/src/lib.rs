//! The admin interface: registers users, gives them ways to sign in, removes them or their data.
//!
//! Every change runs as a task of its own, so that a caller who hangs up does not leave the
//! store and the directory in memory apart.

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

/// All these routes, behind the gate: nobody but who has the admin token sends any body, and what is
/// answered, such as passwords just made, can't be had again.
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
