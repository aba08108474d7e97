//! Mails: lists, one to be read, one to be written, folders.

mod clean;
mod draft;
mod folders;
mod list;
mod message;
mod shape;
mod write;

pub use clean::clean_html;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use groupware_mail::{Folder, Person, Unid, limits};
use groupware_text::push_encoded;
use jiff::civil::Date;

use super::FORM_BYTES;
use super::zone::{self, Zone};
use crate::AppState;

/// Where mails are written, and come with their files.
pub(super) const WRITE: &str = "/write";

pub(super) fn routes() -> Router<AppState> {
    let writing = Router::new()
        .route(WRITE, get(write::show).post(write::submit))
        .layer(DefaultBodyLimit::max(limits::BODY_BYTES));
    Router::new()
        .route("/box/{folder}", get(list::show).post(list::change))
        .route("/message/{id}", get(message::show).post(message::change))
        .route("/message/{id}/source", get(message::source))
        .route("/message/{id}/file/{name}", get(message::file))
        .route("/folders", get(folders::show).post(folders::create))
        .route(
            "/folders/{id}",
            get(folders::show_one).post(folders::change),
        )
        .route("/trash/empty", post(list::empty_trash))
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .merge(writing)
}

/// The path of a folder's list.
pub(super) fn path(folder: Folder) -> String {
    format!("/box/{folder}")
}

fn message_path(unid: Unid) -> String {
    format!("/message/{unid}")
}

fn file_path(unid: Unid, name: &str) -> String {
    let mut path = format!("/message/{unid}/file/");
    push_encoded(&mut path, name, b"");
    path
}

/// `1.2 MB`, as people read sizes.
pub(super) fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 3] = ["kB", "MB", "GB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    // 999.95 of a unit are shown as one of the next.
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    match tenths < 100 {
        true => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        false => format!("{} {}", tenths / 10, UNITS[unit]),
    }
}

/// Today's time, or the day.
fn when(zone: &Zone, today: Date, second: i64) -> String {
    let clock = zone.clock(second);
    match clock.date() == today {
        true => zone::time(clock),
        false => zone::short_day(clock.date(), today),
    }
}

/// A person as one types them into a field.
fn written(person: &Person) -> String {
    let name = person.name.trim();
    match name.is_empty() || name.contains([',', ';', '<', '>', '"']) {
        true => person.email.clone(),
        false => format!("{name} <{}>", person.email),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1250, "1.2 kB"),
            (99_999, "99 kB"),
            (1_500_000, "1.5 MB"),
            (16 << 20, "16 MB"),
            (5_000_000_000, "5.0 GB"),
            (u64::MAX, "18446744073 GB"),
        ] {
            assert_eq!(size_text(bytes), text, "{bytes}");
        }
    }
}
