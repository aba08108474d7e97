//! The user's own account: the password, application passwords, and sessions.
//!
//! A new password of either kind requires the current one: access to an open browser is not enough.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use groupware_auth::{AccountsError, Ends, MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES, SessionLine};
use groupware_http::{ApiError, client, session_token};
use groupware_people::{Account, AccountError, MAX_APP_PASSWORDS};
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};

use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::form::Sent;
use crate::front::Pages;
use crate::layout::{self, NavItem};
use crate::notice::Notice;
use crate::takeout;
use crate::visitor::SignedIn;

/// Longest label of an application password.
const LABEL_BYTES: usize = 100;

type Reply = Result<Response, PageError>;

/// The page's contents besides stored data.
#[derive(Default)]
struct Shown {
    wrong: Wrong,
    /// A new application password, which is shown once.
    made: Option<(String, String)>,
}

pub(crate) async fn show(
    State(pages): State<Pages>,
    headers: HeaderMap,
    visitor: SignedIn,
) -> Reply {
    page(&pages, &headers, &visitor, &Shown::default())
}

fn account(pages: &Pages, visitor: &SignedIn) -> Result<Arc<Account>, PageError> {
    let found = pages.service.auth.find(visitor.mailbox())?;
    found.ok_or(PageError::SignedOut)
}

fn page(pages: &Pages, headers: &HeaderMap, visitor: &SignedIn, shown: &Shown) -> Reply {
    let (service, account) = (&pages.service, account(pages, visitor)?);
    let sessions = &service.auth.sessions;
    let sessions = sessions.of(&account, session_token(headers), service.now_s())?;
    let main = html! {
        h1 { "Account" }
        (shown.wrong.summary())
        (just_made(shown))
        (password_form(visitor, shown))
        (app_passwords(visitor, &account, shown))
        (session_list(visitor, &sessions))
        (takeout::form(visitor))
    };
    let status = match shown.wrong.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let here = (NavItem::Settings, status);
    layout::page_with(service, visitor, here, "Account", &main)
}

fn secret(name: &'static str, label: &str, complete: &'static str, wrong: &Wrong) -> Markup {
    let input = Input {
        kind: "password",
        autocomplete: Some(complete),
        required: true,
        ..Input::text(name, label, "")
    };
    input.render(wrong)
}

fn just_made(shown: &Shown) -> Markup {
    html! {
        @if let Some((label, text)) = &shown.made {
            div.notice role="status" {
                p { "The password for " strong { (label) } " is" }
                p { code { (text) } }
                p { "It is shown only now: enter it in the program, together with your user name." }
            }
        }
    }
}

fn password_form(visitor: &SignedIn, shown: &Shown) -> Markup {
    html! {
        h2 { "Password" }
        form.stacked method="post" action="/account/password" {
            (layout::proof(visitor))
            (secret("current", "Your password", "current-password", &shown.wrong))
            (secret("new", "New password", "new-password", &shown.wrong))
            (secret("again", "The same again", "new-password", &shown.wrong))
            p.hint { "All other sessions end. Passwords for programs stay." }
            div.actions { button.primary type="submit" { "Change the password" } }
        }
    }
}

fn app_passwords(visitor: &SignedIn, account: &Account, shown: &Shown) -> Markup {
    let day = |moment: i64| visitor.zone.clock(moment).date().to_string();
    let credentials = account.credentials();
    let name = Input {
        max: LABEL_BYTES,
        required: true,
        hint: Some("Such as “Phone”. One of the same name is replaced."),
        ..Input::text("label", "Program", "")
    };
    html! {
        h2 { "Passwords for programs" }
        p { "A mail program gets a password of its own, which you can take back without changing yours." }
        @for password in &credentials.app_passwords {
            form.line method="post" action="/account/app-passwords/remove" {
                (layout::proof(visitor))
                input type="hidden" name="id" value=(password.id);
                p {
                    strong { (label(&password.label)) } ", made " (day(password.created)) ", "
                    @match password.used.get() {
                        Some(used) => { "last used " (day(used)) }
                        None => { "not used since the server started" }
                    }
                }
                button type="submit" { "Take back" }
            }
        }
        form.stacked method="post" action="/account/app-passwords" {
            (layout::proof(visitor))
            (name.render(&shown.wrong))
            (secret("proof-password", "Your password", "current-password", &shown.wrong))
            div.actions { button type="submit" { "Make a password" } }
        }
    }
}

fn label(text: &str) -> &str {
    match text.is_empty() {
        true => "Without a name",
        false => text,
    }
}

fn session_list(visitor: &SignedIn, sessions: &[SessionLine]) -> Markup {
    let moment = |moment: i64| {
        let clock = visitor.zone.clock(moment);
        clock.strftime("%Y-%m-%d %H:%M").to_string()
    };
    html! {
        h2 { "Sessions" }
        @for session in sessions {
            form.line method="post" action="/account/sessions/end" {
                (layout::proof(visitor))
                input type="hidden" name="id" value=(session.id);
                p {
                    "Begun " (moment(session.started)) ", last used " (moment(session.used))
                    @if session.is_own { " " strong { "this one" } }
                }
                @if !session.is_own { button type="submit" { "End" } }
            }
        }
        @if sessions.len() > 1 {
            form method="post" action="/account/sessions/end" {
                (layout::proof(visitor))
                input type="hidden" name="others" value="1";
                div.actions { button type="submit" { "End all others" } }
            }
        }
    }
}

/// Checks the user's password: the chosen one, if there is one.
pub(crate) async fn prove(
    pages: &Pages,
    visitor: &SignedIn,
    password: &str,
) -> Result<Option<String>, PageError> {
    let (service, caller) = (&pages.service, visitor.owner.caller());
    let client = client(caller);
    let proven = service
        .auth
        .verify(caller, client, visitor.mailbox(), password)
        .await;
    match proven {
        Ok(proven) => {
            let has_own = proven.account.credentials().password.is_some();
            let is_right = proven.is_by_own_password() || !has_own;
            Ok((!is_right).then(|| "This is a program's password, not yours.".to_owned()))
        }
        Err(groupware_auth::SignInError::Wrong) => {
            Ok(Some("This is not your password.".to_owned()))
        }
        Err(error) => {
            let error = ApiError::from(error);
            let status = error.status().as_u16();
            Err(PageError::Refused(status, error.message().to_owned()))
        }
    }
}

pub(crate) async fn change_password(
    State(pages): State<Pages>,
    headers: HeaderMap,
    sent: Sent,
) -> Reply {
    let (visitor, fields) = (&sent.visitor, &sent.fields);
    let mut shown = Shown::default();
    let new = fields.get("new");
    if !(MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&new.len()) {
        let text = format!("A password has at least {MIN_PASSWORD_BYTES} letters.");
        shown.wrong.add("new", text);
    } else if new != fields.get("again") {
        shown
            .wrong
            .add("again", "These are two different passwords.");
    }
    if shown.wrong.is_empty()
        && let Some(wrong) = prove(&pages, visitor, fields.get("current")).await?
    {
        shown.wrong.add("current", wrong);
    }
    if !shown.wrong.is_empty() {
        return page(&pages, &headers, visitor, &shown);
    }
    let (service, caller) = (&pages.service, visitor.owner.caller());
    let hash = service.auth.passwords.hash(caller, new.to_owned()).await;
    let busy = "Too many passwords are set at once. Try again in a moment.";
    let hash = hash.map_err(|_| PageError::Refused(503, busy.to_owned()))?;
    let ends = Ends::but(session_token(&headers));
    let accounts = &service.auth.accounts;
    let changed = accounts.change_password(visitor.mailbox(), hash, ends);
    changed.await.map_err(refused)?;
    Ok(layout::done("/account", Notice::PasswordChanged))
}

#[track_caller]
fn refused(error: AccountsError) -> PageError {
    match error {
        AccountsError::Decided(AccountError::Unknown(_)) => PageError::SignedOut,
        AccountsError::Decided(AccountError::UnknownAppPassword(_)) => PageError::NotFound,
        AccountsError::Decided(AccountError::TooManyAppPasswords) => PageError::Refused(
            409,
            format!("There are {MAX_APP_PASSWORDS} passwords for programs: take one back first."),
        ),
        AccountsError::Decided(AccountError::Store(error)) => error.into(),
        AccountsError::Commit(error) => error.into(),
        error => PageError::Broken(groupware_http::Fault::of(&error)),
    }
}

pub(crate) async fn add_app_password(
    State(pages): State<Pages>,
    headers: HeaderMap,
    sent: Sent,
) -> Reply {
    let (visitor, fields) = (&sent.visitor, &sent.fields);
    let (mut shown, label) = (Shown::default(), fields.trimmed("label"));
    if label.is_empty() || label.len() > LABEL_BYTES || label.contains(char::is_control) {
        shown.wrong.add("label", "Give the program a name.");
    } else if let Some(wrong) = prove(&pages, visitor, fields.get("proof-password")).await? {
        shown.wrong.add("proof-password", wrong);
    }
    if shown.wrong.is_empty() {
        let accounts = &pages.service.auth.accounts;
        let made = accounts
            .add_app_password(visitor.mailbox(), label, visitor.now)
            .await;
        let (_, text) = made.map_err(refused)?;
        shown.made = Some((label.to_owned(), text));
    }
    page(&pages, &headers, visitor, &shown)
}

/// Removes an application password. Its sessions can't be distinguished from others: all but the current one end.
pub(crate) async fn remove_app_password(
    State(pages): State<Pages>,
    headers: HeaderMap,
    sent: Sent,
) -> Reply {
    let (accounts, mailbox) = (&pages.service.auth.accounts, sent.visitor.mailbox());
    let ends = Ends::but(session_token(&headers));
    let removed = accounts.remove_app_password(mailbox, sent.fields.get("id"), ends);
    removed.await.map_err(refused)?;
    Ok(layout::done("/account", Notice::AppPasswordRemoved))
}

pub(crate) async fn end_sessions(
    State(pages): State<Pages>,
    headers: HeaderMap,
    sent: Sent,
) -> Reply {
    let account = account(&pages, &sent.visitor)?;
    let service = &pages.service;
    match (sent.fields.has("others"), session_token(&headers)) {
        (true, Some(own)) => {
            let (key, ends) = (account.name.key(), Ends::AllBut(own));
            let ended = service.auth.accounts.end_sessions(key, ends);
            ended.await.map_err(refused)?;
        }
        _ => {
            let id = sent.fields.get("id");
            // A session that has ended meanwhile is no error.
            let _was_there = service.auth.sessions.end_one(&account, id).await?;
        }
    }
    Ok(layout::done("/account", Notice::SessionsEnded))
}
