//! One user, for an administrator, with the administrator's actions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_auth::{Ends, SessionLine};
use groupware_http::session_token;
use groupware_people::Account;
use http::HeaderMap;
use maud::{Markup, html};

use super::administrator::{Administrator, SentByAdministrator};
use super::common::{failed, find, is_self, not_oneself, path, signs_in, status};
use super::password::{self, OWN, OWN_FOR_RIGHTS, hash, made_now, note, prove};
use crate::error::PageError;
use crate::field::Wrong;
use crate::front::Pages;
use crate::layout::{self, NavItem};
use crate::mail::text::size_text;
use crate::notice::Notice;
use crate::visitor::SignedIn;

type Reply = Result<Response, PageError>;

/// The page's contents besides stored data.
#[derive(Default)]
struct Shown {
    wrong: Wrong,
    /// The form that the errors belong to.
    has_new_password: bool,
    /// A new password, which is shown once.
    made: Option<String>,
}

pub(crate) async fn show(
    State(pages): State<Pages>,
    Administrator(visitor): Administrator,
    Path(name): Path<String>,
) -> Reply {
    let account = find(&pages, &name)?;
    page(&pages, &visitor, &account, &Shown::default())
}

fn page(pages: &Pages, visitor: &SignedIn, account: &Account, shown: &Shown) -> Reply {
    let (service, name) = (&pages.service, account.name.spelling());
    let sessions = service.auth.sessions.of(account, None, service.now_s())?;
    let main = html! {
        p.way { a href="/users" { "‹ Users" } }
        h1 { (name) }
        (shown.wrong.summary())
        @if shown.has_new_password {
            div.notice role="status" {
                p { (name) " has a new password, and all sessions have ended." }
                @if let Some(text) = &shown.made { (made_now(text)) }
            }
        }
        (facts(pages, visitor, account)?)
        (password_form(visitor, account, shown))
        (session_list(visitor, account, &sessions))
        @if !is_self(visitor, account) { (rights(visitor, account, shown)) }
    };
    let here = (NavItem::Users, status(&shown.wrong));
    layout::page_with(service, visitor, here, name, &main)
}

fn facts(pages: &Pages, visitor: &SignedIn, account: &Account) -> Result<Markup, PageError> {
    let usage = pages.service.usage(account.name.key())?;
    let credentials = account.credentials();
    Ok(html! {
        dl.facts {
            dt { "Signs in" } dd { (signs_in(account)) }
            dt { "Since" } dd { (visitor.zone.clock(account.created).date()) }
            dt { "Mail" } dd { (size_text(usage.mail_bytes)) }
            dt { "Documents" } dd { (size_text(usage.document_bytes)) }
            dt { "Programs" } dd {
                @match credentials.app_passwords.len() {
                    0 => { "no passwords for programs" }
                    1 => { "1 password for a program" }
                    count => { (count) " passwords for programs" }
                }
            }
            dt { "Role" } dd { @if credentials.admin { "manages users" } @else { "user" } }
        }
    })
}

fn password_form(visitor: &SignedIn, account: &Account, shown: &Shown) -> Markup {
    html! {
        h2 { "Password" }
        form.stacked method="post" action={ (path(account.name.key())) "/password" } {
            (layout::proof(visitor))
            (password::field("password", "New password", &shown.wrong))
            (password::own_field(OWN, &shown.wrong))
            p.hint { "All sessions of the user end. Passwords for programs stay." }
            div.actions { button.primary type="submit" { "Set the password" } }
        }
    }
}

fn session_list(visitor: &SignedIn, account: &Account, sessions: &[SessionLine]) -> Markup {
    let action = format!("{}/sessions/end", path(account.name.key()));
    let moment = |moment: i64| {
        let clock = visitor.zone.clock(moment);
        clock.strftime("%Y-%m-%d %H:%M").to_string()
    };
    html! {
        h2 { "Sessions" }
        @if sessions.is_empty() { p.hint { "None." } }
        @for session in sessions {
            form.line method="post" action=(action) {
                (layout::proof(visitor))
                input type="hidden" name="id" value=(session.id);
                p { "Begun " (moment(session.started)) ", last used " (moment(session.used)) }
                button type="submit" { "End" }
            }
        }
        @if sessions.len() > 1 {
            form method="post" action=(action) {
                (layout::proof(visitor))
                div.actions { button type="submit" { "End all" } }
            }
        }
    }
}

/// The actions that administrators can't apply to themselves.
fn rights(visitor: &SignedIn, account: &Account, shown: &Shown) -> Markup {
    let (path, credentials) = (path(account.name.key()), account.credentials());
    html! {
        h2 { "Rights" }
        form.line method="post" action={ (path) "/disabled" } {
            (layout::proof(visitor))
            input type="hidden" name="to" value=(u8::from(!credentials.disabled));
            @if credentials.disabled {
                p { "The user can't sign in. Mail still comes in." }
                button type="submit" { "Enable" }
            } @else {
                p { "Who is disabled can't sign in, and has no session any more. Mail still comes in." }
                button type="submit" { "Disable" }
            }
        }
        form.stacked method="post" action={ (path) "/admin" } {
            (layout::proof(visitor))
            input type="hidden" name="to" value=(u8::from(!credentials.admin));
            @if credentials.admin {
                p { "The user manages users, as you do." }
            } @else {
                p { "The user sees nothing but what is the user's own." }
            }
            (password::own_field(OWN_FOR_RIGHTS, &shown.wrong))
            div.actions {
                button type="submit" {
                    @if credentials.admin { "Take the right back" } @else { "Let the user manage users" }
                }
            }
        }
        div.actions.last { a.button.danger href={ (path) "/remove" } { "Remove …" } }
    }
}

pub(crate) async fn set_password(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    headers: HeaderMap,
    SentByAdministrator(sent): SentByAdministrator,
) -> Reply {
    let (visitor, account) = (&sent.visitor, find(&pages, &name)?);
    let mut shown = Shown::default();
    let password = password::chosen(sent.fields.get("password"), &mut shown.wrong);
    if shown.wrong.is_empty() {
        prove(&pages, (&sent, OWN), &mut shown.wrong).await?;
    }
    if !shown.wrong.is_empty() {
        return page(&pages, visitor, &account, &shown);
    }
    let hash = hash(&pages, visitor, &password.text).await?;
    let (service, key) = (&pages.service, account.name.key());
    let own = session_token(&headers).filter(|_| is_self(visitor, &account));
    let accounts = &service.auth.accounts;
    let changed = accounts.change_password(key, hash, Ends::but(own)).await;
    changed.map_err(failed)?;
    note(visitor, key, "password set");
    shown.has_new_password = true;
    shown.made = password.made();
    page(&pages, visitor, &account, &shown)
}

pub(crate) async fn set_disabled(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    SentByAdministrator(sent): SentByAdministrator,
) -> Reply {
    let account = find(&pages, &name)?;
    not_oneself(&sent.visitor, &account)?;
    let to = is_to_be(sent.fields.get("to"))?;
    let (service, key) = (&pages.service, account.name.key());
    let changed = service.auth.accounts.set_disabled(key, to).await;
    changed.map_err(failed)?;
    let (notice, done) = match to {
        true => (Notice::UserDisabled, "user disabled"),
        false => (Notice::UserEnabled, "user enabled"),
    };
    note(&sent.visitor, key, done);
    Ok(layout::done(&path(key), notice))
}

pub(crate) async fn set_admin(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    SentByAdministrator(sent): SentByAdministrator,
) -> Reply {
    let (visitor, account) = (&sent.visitor, find(&pages, &name)?);
    not_oneself(visitor, &account)?;
    let to = is_to_be(sent.fields.get("to"))?;
    let mut shown = Shown::default();
    prove(&pages, (&sent, OWN_FOR_RIGHTS), &mut shown.wrong).await?;
    if !shown.wrong.is_empty() {
        return page(&pages, visitor, &account, &shown);
    }
    let key: &Arc<str> = account.name.key();
    let changed = pages.service.auth.accounts.set_admin(key, to).await;
    changed.map_err(failed)?;
    let (notice, done) = match to {
        true => (Notice::UserIsAdmin, "right to manage users given"),
        false => (Notice::UserIsNoAdmin, "right to manage users taken back"),
    };
    note(visitor, key, done);
    Ok(layout::done(&path(key), notice))
}

fn is_to_be(text: &str) -> Result<bool, PageError> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(PageError::Unreadable),
    }
}

pub(crate) async fn end_sessions(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    SentByAdministrator(sent): SentByAdministrator,
) -> Reply {
    let account = find(&pages, &name)?;
    let (service, key) = (&pages.service, account.name.key());
    match sent.fields.has("id") {
        true => {
            let id = sent.fields.get("id");
            // A session that has ended meanwhile is no error.
            let _was_there = service.auth.sessions.end_one(&account, id).await?;
        }
        false => {
            let ended = service.auth.accounts.end_sessions(key, Ends::All).await;
            ended.map_err(failed)?;
        }
    }
    note(&sent.visitor, key, "sessions ended");
    Ok(layout::done(&path(key), Notice::SessionsEnded))
}
