//! Mails: lists, reading, writing, folders.

mod answer;
mod clean;
mod data;
mod draft;
mod folders;
mod itip;
mod list;
mod message;
mod origin;
mod prose;
mod shape;
pub(crate) mod text;
mod write;

pub use clean::clean_html;
pub use prose::text_of as html_text;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use groupware_http::Gate;
use groupware_mail::limits;

use crate::front::Pages;
use crate::limits::FORM_BYTES;

pub(crate) fn routes() -> Router<Pages> {
    Router::new()
        .route("/box/{folder}", get(list::show).post(list::change))
        .route("/message/{id}", get(message::show).post(message::change))
        .route("/message/{id}/invitation", post(answer::submit))
        .route("/message/{id}/source", get(message::source))
        .route("/message/{id}/file/{name}", get(message::file))
        .route("/folders", get(folders::show).post(folders::create))
        .route(
            "/folders/{id}",
            get(folders::show_one).post(folders::change),
        )
        .route("/trash/empty", post(list::empty_trash))
        .layer(DefaultBodyLimit::max(FORM_BYTES))
}

/// The routes that receive written mails with their files.
pub(crate) fn writing(pages: &Pages, gate: &Gate) -> Router<Pages> {
    Router::new()
        .route(text::WRITE, get(write::show).post(write::submit))
        .layer(DefaultBodyLimit::max(limits::BODY_BYTES))
        .layer(gate.large(limits::BODY_BYTES, pages.message_within))
}
