//! The pages: the groupware for people with a browser, with or without JavaScript.
//!
//! A page is a function from data to markup (`maud`): its types are checked where it is called, and
//! users' texts are escaped unless explicitly marked as safe, which only the cleaner of HTML mails
//! does. Permissions and effects are decided in the same place as for the API.

mod account;
mod agenda;
mod assets;
mod calendar_path;
mod edit;
mod error;
mod failure;
mod field;
mod forgery;
mod form;
mod front;
mod grid;
mod invitations;
mod layout;
mod limits;
mod links;
mod mail;
mod meeting;
mod month;
mod notice;
mod others;
mod people;
mod return_path;
mod settings;
mod sign_in;
mod takeout;
mod users;
mod visitor;
mod week;
mod zone;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::Redirect;
use axum::routing::{get, post};
use groupware_http::Gate;

pub use failure::{are_asked_for, dressed};
pub use front::Pages;
pub use mail::{clean_html, html_text};

use limits::FORM_BYTES;

/// All pages, behind the gate.
pub fn routes(pages: &Pages, gate: &Gate) -> Router {
    Router::new()
        .route("/", get(async || Redirect::to("/box/inbox")))
        .route("/assets/{name}", get(assets::serve))
        .route("/sign-in", get(sign_in::show).post(sign_in::submit))
        .route("/sign-out", post(sign_in::leave))
        .route("/settings", get(settings::show).post(settings::submit))
        .route("/people", get(people::complete))
        .merge(account_routes())
        .merge(users::routes())
        .merge(calendar_routes())
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .merge(mail::routes())
        .layer(gate.usual())
        .merge(mail::writing(pages, gate))
        .with_state(pages.clone())
}

fn account_routes() -> Router<Pages> {
    Router::new()
        .route("/account", get(account::show))
        .route("/account/password", post(account::change_password))
        .route("/account/app-passwords", post(account::add_app_password))
        .route(
            "/account/app-passwords/remove",
            post(account::remove_app_password),
        )
        .route("/account/sessions/end", post(account::end_sessions))
        .route("/account/takeout", post(takeout::send))
}

fn calendar_routes() -> Router<Pages> {
    Router::new()
        .route("/calendar", get(month::current))
        .route("/calendar/month/{month}", get(month::show))
        .route("/calendar/week", get(week::current))
        .route("/calendar/week/{day}", get(week::show))
        .route("/calendar/new", get(edit::show_new).post(edit::create))
        .route(calendar_path::OTHERS, get(others::list))
        .route("/calendar/event/{uid}", get(meeting::show))
        .route(
            "/calendar/event/{uid}/edit",
            get(edit::show_old).post(edit::update),
        )
        .route(
            "/calendar/event/{uid}/delete",
            get(meeting::confirm_delete).post(meeting::delete),
        )
        .route("/calendar/event/{uid}/answer", post(meeting::answer))
        .route("/invitations", get(invitations::list))
        .route("/invitations/{notice}", get(invitations::show))
        .route("/invitations/{notice}/answer", post(invitations::answer))
}
