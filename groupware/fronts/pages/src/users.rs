//! User management for administrators: lists users with their use, and adds users.
//!
//! Each request checks the visitor's right again: a revoked right takes effect at once. A change of
//! others' credentials requires the administrator's own password again.

mod administrator;
mod common;
mod one;
mod password;
mod remove;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use groupware_auth::AccountsError;
use groupware_people::{Account, AccountError, UserName};
use groupware_service::Usage;
use groupware_store::StoreError;
use maud::{Markup, html};
use serde::Deserialize;

use self::administrator::{Administrator, SentByAdministrator};
use self::common::{failed, path, signs_in, status};
use self::password::{OWN, hash, made_now, prove};
use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::front::Pages;
use crate::layout::{self, NavItem};
use crate::mail::text::size_text;
use crate::visitor::SignedIn;

type Reply = Result<Response, PageError>;

/// Users of one page.
const SHOWN: usize = 50;
/// Beyond this number of users, a search through their names takes so long that it must not delay other requests.
const MANY: usize = 10_000;
const TITLE: &str = "Users";

pub(crate) fn routes() -> Router<Pages> {
    let at = |rest: &str| format!("/users/{{name}}{rest}");
    Router::new()
        .route("/users", get(show).post(add))
        .route(&at(""), get(one::show))
        .route(&at("/password"), post(one::set_password))
        .route(&at("/disabled"), post(one::set_disabled))
        .route(&at("/admin"), post(one::set_admin))
        .route(&at("/sessions/end"), post(one::end_sessions))
        .route(&at("/remove"), get(remove::confirm).post(remove::remove))
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    after: String,
    #[serde(default)]
    find: String,
}

/// A user in the list.
struct Line {
    account: Arc<Account>,
    usage: Usage,
    sessions: usize,
}

/// The page's contents besides stored data.
#[derive(Default)]
struct Shown {
    asked: ListQuery,
    typed: String,
    wrong: Wrong,
    /// The added user, and a generated password, which is shown once.
    added: Option<(Arc<str>, Option<String>)>,
}

async fn show(
    State(pages): State<Pages>,
    Administrator(visitor): Administrator,
    asked: Result<Query<ListQuery>, QueryRejection>,
) -> Reply {
    let Query(asked) = asked.unwrap_or_default();
    let shown = Shown {
        asked,
        ..Shown::default()
    };
    page(&pages, &visitor, &shown).await
}

/// Returns the next users, and whether there are more.
async fn lines(
    pages: &Pages,
    visitor: &SignedIn,
    asked: &ListQuery,
) -> Result<Vec<Line>, StoreError> {
    let service = pages.service.clone();
    let is_long = service.auth.directory().len() > MANY;
    let (after, find) = (
        asked.after.to_ascii_lowercase(),
        asked.find.trim().to_owned(),
    );
    let work = move || {
        service.auth.keep_up()?;
        let users = service.auth.directory();
        let found = match find.is_empty() {
            true => users.after(&after, SHOWN + 1),
            false => {
                let names = users.beginning_with(&find, SHOWN);
                names.iter().filter_map(|name| users.find(name)).collect()
            }
        };
        let line = |account: Arc<Account>| {
            Ok(Line {
                usage: service.usage(account.name.key())?,
                sessions: service
                    .auth
                    .sessions
                    .of(&account, None, service.now_s())?
                    .len(),
                account,
            })
        };
        found.into_iter().map(line).collect()
    };
    pages
        .service
        .work(visitor.owner.caller(), is_long, work)
        .await
}

async fn page(pages: &Pages, visitor: &SignedIn, shown: &Shown) -> Reply {
    let mut lines = lines(pages, visitor, &shown.asked).await?;
    let has_more = lines.len() > SHOWN;
    lines.truncate(SHOWN);
    let main = html! {
        div.head {
            h1 { (TITLE) }
            (search(&shown.asked))
        }
        (shown.wrong.summary())
        @if let Some((name, password)) = &shown.added {
            div.notice role="status" {
                p { a href=(path(name)) { (name) } " can sign in." }
                @if let Some(text) = password { (made_now(text)) }
            }
        }
        @if lines.is_empty() {
            p.empty { "There is nobody here. " a href="/users" { "Show all" } }
        } @else {
            (table(visitor, &lines))
        }
        (further(shown, &lines, has_more))
        (add_form(visitor, shown))
    };
    let here = (NavItem::Users, status(&shown.wrong));
    layout::page_with(&pages.service, visitor, here, TITLE, &main)
}

fn search(asked: &ListQuery) -> Markup {
    html! {
        form.search method="get" action="/users" role="search" {
            label.unseen for="find" { "Find users whose name begins like this" }
            input #find type="search" name="find" value=(asked.find) placeholder="Name begins with"
                maxlength="64" autocomplete="off";
            button type="submit" { "Find" }
        }
    }
}

fn table(visitor: &SignedIn, lines: &[Line]) -> Markup {
    html! {
        div.users {
            table {
                thead { tr {
                    th scope="col" { "User" } th scope="col" { "Signs in" } th scope="col" { "Since" }
                    th.number scope="col" { "Mail" } th.number scope="col" { "Documents" }
                    th.number scope="col" { "Sessions" }
                } }
                tbody {
                    @for line in lines {
                        @let account = &line.account;
                        tr {
                            td.name {
                                a href=(path(account.name.key())) { (account.name.spelling()) }
                                @if account.credentials().admin { " " span.stand { "admin" } }
                            }
                            td data-label="Signs in" { (signs_in(account)) }
                            td data-label="Since" { (visitor.zone.clock(account.created).date()) }
                            td.number data-label="Mail" { (size_text(line.usage.mail_bytes)) }
                            td.number data-label="Documents" { (size_text(line.usage.document_bytes)) }
                            td.number data-label="Sessions" { (line.sessions) }
                        }
                    }
                }
            }
        }
    }
}

fn further(shown: &Shown, lines: &[Line], has_more: bool) -> Markup {
    let last = lines.last().filter(|_| has_more);
    html! {
        @if last.is_some() || !shown.asked.after.is_empty() {
            p.pages {
                @if !shown.asked.after.is_empty() { a.button href="/users" { "From the first on" } }
                @if let Some(last) = last {
                    a.button href={ "/users?after=" (last.account.name.key()) } { "Next" }
                }
            }
        }
    }
}

fn add_form(visitor: &SignedIn, shown: &Shown) -> Markup {
    let name = Input {
        max: 64,
        required: true,
        ..Input::text("name", "User name", &shown.typed)
    };
    html! {
        h2 #add { "Add a user" }
        form.stacked method="post" action="/users" {
            (layout::proof(visitor))
            (name.render(&shown.wrong))
            (password::field("password", "Password", &shown.wrong))
            div.tick {
                input #admin type="checkbox" name="admin" value="1";
                label for="admin" { "May manage users, too" }
            }
            (password::own_field(OWN, &shown.wrong))
            div.actions { button.primary type="submit" { "Add" } }
        }
    }
}

async fn add(State(pages): State<Pages>, SentByAdministrator(sent): SentByAdministrator) -> Reply {
    let (visitor, fields) = (&sent.visitor, &sent.fields);
    let typed = fields.trimmed("name");
    let mut shown = Shown {
        typed: typed.to_owned(),
        ..Shown::default()
    };
    let name = UserName::parse(typed);
    if name.is_none() {
        let text = "A user name has 1 to 64 letters, digits, “.”, “_”, or “-”, and does not begin with a dot.";
        shown.wrong.add("name", text);
    } else if pages.service.auth.find(typed)?.is_some() {
        shown.wrong.add("name", TAKEN);
    }
    let password = password::chosen(fields.get("password"), &mut shown.wrong);
    if shown.wrong.is_empty() {
        prove(&pages, (&sent, OWN), &mut shown.wrong).await?;
    }
    let (Some(name), true) = (name, shown.wrong.is_empty()) else {
        return page(&pages, visitor, &shown).await;
    };
    let hash = hash(&pages, visitor, &password.text).await?;
    let (accounts, is_admin) = (&pages.service.auth.accounts, fields.has("admin"));
    match accounts.add(name, hash, is_admin, visitor.now).await {
        Ok(account) => {
            let name = Arc::clone(account.name.spelling());
            password::note(visitor, &name, "user added");
            shown = Shown {
                added: Some((name, password.made())),
                ..Shown::default()
            };
        }
        Err(AccountsError::Decided(AccountError::Taken(_))) => shown.wrong.add("name", TAKEN),
        Err(error) => return Err(failed(error)),
    }
    page(&pages, visitor, &shown).await
}

const TAKEN: &str = "There is a user of this name already.";
