//! Signing in and out.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode, Uri};
use maud::html;
use serde::Deserialize;

use super::failure::PageError;
use super::field::{Input, Wrong};
use super::form::{Fields, Sent};
use super::layout;
use super::notice::Notice;
use super::zone::Zone;
use crate::AppState;
use crate::sign_in;

const START: &str = "/";
/// Longest path that is gone back to.
const MAX_PATH: usize = 1000;

/// The sign-in page that goes on to what was asked for.
pub(super) fn return_path(asked: &Uri) -> String {
    let path = asked.path_and_query().map_or(START, |path| path.as_str());
    if path == START || !is_ours(path) {
        return "/sign-in".to_owned();
    }
    let mut to = String::with_capacity(path.len() + 16);
    to.push_str("/sign-in?to=");
    groupware_text::push_encoded(&mut to, path, b"/");
    to
}

/// Whether it is a path of this server's pages, rather than a way to another server: browsers
/// take `//host`, and `\` for `/`, and drop control characters.
fn is_ours(path: &str) -> bool {
    let rest = path.strip_prefix('/');
    rest.is_some_and(|rest| !rest.starts_with('/'))
        && path.len() <= MAX_PATH
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && !path.starts_with("/sign-")
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    to: String,
}

pub(super) async fn show(
    State(state): State<AppState>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let Query(Asked { to }) = asked.unwrap_or_default();
    let signed_in = sign_in::session_token(&headers)
        .is_some_and(|token| state.sessions.find(token, state.clock.now()).is_some());
    if signed_in {
        return Redirect::to(destination(&to)).into_response();
    }
    let form = Form {
        to: &to,
        username: "",
        trouble: None,
        wrong: Wrong::default(),
    };
    form.render(StatusCode::OK, Notice::of(&headers))
}

fn destination(to: &str) -> &str {
    if is_ours(to) { to } else { START }
}

struct Form<'a> {
    to: &'a str,
    username: &'a str,
    trouble: Option<&'a str>,
    wrong: Wrong,
}

impl Form<'_> {
    fn render(&self, status: StatusCode, notice: Option<Notice>) -> Response {
        let username = Input {
            autocomplete: Some("username"),
            autofocus: self.username.is_empty(),
            ..Input::text("username", "User name", self.username)
        };
        let password = Input {
            kind: "password",
            autocomplete: Some("current-password"),
            autofocus: !self.username.is_empty(),
            ..Input::text("password", "Password", "")
        };
        let main = html! {
            h1 { "Sign in" }
            @if let Some(trouble) = self.trouble { p.wrong-summary role="alert" { (trouble) } }
            form.stacked method="post" action="/sign-in" {
                @if is_ours(self.to) { input type="hidden" name="to" value=(self.to); }
                // The script says where the browser is; without it, times are in UTC at first.
                input type="hidden" name="zone" value="" data-zone="";
                (username.render(&self.wrong))
                (password.render(&self.wrong))
                button.primary type="submit" { "Sign in" }
            }
        };
        layout::card_saying(status, "Sign in", notice, &main)
    }
}

pub(super) async fn submit(
    State(state): State<AppState>,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, PageError> {
    let (username, password) = (fields.trimmed("username"), fields.get("password"));
    let mut form = Form {
        to: fields.get("to"),
        username,
        trouble: None,
        wrong: Wrong::default(),
    };
    if username.is_empty() {
        form.wrong.add("username", "Enter your user name.");
    }
    if password.is_empty() {
        form.wrong.add("password", "Enter your password.");
    }
    if !form.wrong.is_empty() {
        return Ok(form.render(StatusCode::UNPROCESSABLE_ENTITY, None));
    }
    match sign_in::sign_in(&state, &headers, username, password).await {
        Ok((account, cookie)) => {
            let mailbox = account.name.key();
            let zone = Zone::parse(fields.get("zone"));
            if let Some(zone) = zone
                && Zone::chosen_by(state.store(), mailbox)?.is_none()
            {
                zone.choose(state.store(), mailbox).await?;
            }
            let mut response = Redirect::to(destination(form.to)).into_response();
            response.headers_mut().append(SET_COOKIE, cookie);
            Ok(response)
        }
        Err(error) => {
            form.trouble = Some(error.message());
            Ok(form.render(error.status(), None))
        }
    }
}

pub(super) async fn leave(
    State(state): State<AppState>,
    headers: HeaderMap,
    sent: Result<Sent, PageError>,
) -> Result<Response, PageError> {
    match sent {
        // Who has no session has left already.
        Ok(_) | Err(PageError::SignedOut) => {}
        Err(error) => return Err(error),
    }
    let mut response = layout::done("/sign-in", Notice::SignedOut);
    let gone = sign_in::sign_out(&state, &headers)?;
    response.headers_mut().append(SET_COOKIE, gone);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_gone_back_to() {
        for good in ["/calendar", "/calendar/week/2026-11-21?x=/y", "/a%0d%0ab"] {
            assert_eq!(destination(good), good);
        }
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "evil",
            "/\t/evil.example",
            "/\r\nset-cookie: a",
            "/sign-out",
            "/sign-in",
            "/ä",
            "\\\\evil",
        ] {
            assert_eq!(destination(bad), "/", "{bad:?}");
        }
        let uri: Uri = "/calendar/new?day=2026-11-21&x=%26".parse().unwrap();
        let path = "/sign-in?to=/calendar/new%3Fday%3D2026-11-21%26x%3D%2526";
        assert_eq!(return_path(&uri), path);
        assert_eq!(return_path(&"/".parse().unwrap()), "/sign-in");
        assert_eq!(return_path(&"//evil/x".parse().unwrap()), "/sign-in");
    }
}
