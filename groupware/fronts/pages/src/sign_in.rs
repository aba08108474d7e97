//! Signing in and out.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use groupware_http::session;
use groupware_runtime::Caller;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use maud::html;
use serde::Deserialize;

use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::form::{Fields, Sent};
use crate::front::Pages;
use crate::layout;
use crate::notice::Notice;
use crate::return_path::{destination, is_ours};
use crate::zone::Zone;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReturnTo {
    #[serde(default)]
    to: String,
}

pub(crate) async fn show(
    State(pages): State<Pages>,
    headers: HeaderMap,
    asked: Result<Query<ReturnTo>, QueryRejection>,
) -> Result<Response, PageError> {
    let Query(ReturnTo { to }) = asked.unwrap_or_default();
    if session(&pages.service, &headers)?.is_some() {
        return Ok(Redirect::to(destination(&to)).into_response());
    }
    let form = Form {
        to: &to,
        username: "",
        trouble: None,
        wrong: Wrong::default(),
    };
    Ok(form.render(StatusCode::OK, Notice::of(&headers)))
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
                // The script sets the browser's zone; without it, times are in UTC at first.
                input type="hidden" name="zone" value="" data-zone="";
                (username.render(&self.wrong))
                (password.render(&self.wrong))
                button.primary type="submit" { "Sign in" }
            }
        };
        layout::card_saying(status, "Sign in", notice, &main)
    }
}

pub(crate) async fn submit(
    State(pages): State<Pages>,
    Extension(caller): Extension<Caller>,
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
    let signed_in = pages
        .cookies
        .sign_in(&pages.service, &caller, &headers, (username, password));
    match signed_in.await {
        Ok((account, cookie)) => {
            let mailbox = account.name.key();
            if let Some(zone) = Zone::parse(fields.get("zone")) {
                zone.suggest(&pages.service, &caller, mailbox).await;
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

pub(crate) async fn leave(
    State(pages): State<Pages>,
    headers: HeaderMap,
    sent: Result<Sent, PageError>,
) -> Result<Response, PageError> {
    match sent {
        // A visitor without a session is signed out already.
        Ok(_) | Err(PageError::SignedOut) => {}
        Err(error) => return Err(error),
    }
    let mut response = layout::done("/sign-in", Notice::SignedOut);
    let gone = pages.cookies.sign_out(&pages.service, &headers).await?;
    response.headers_mut().append(SET_COOKIE, gone);
    Ok(response)
}
