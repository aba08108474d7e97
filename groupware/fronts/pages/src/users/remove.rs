//! Removes a user with all data, after confirmation, since this can't be undone.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_people::Account;
use maud::html;

use super::administrator::{Administrator, SentByAdministrator};
use super::common::{failed, find, not_oneself, path, status};
use super::password::{OWN, note, own_field, prove};
use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::front::Pages;
use crate::layout::{self, NavItem};
use crate::mail::text::size_text;
use crate::notice::Notice;
use crate::visitor::SignedIn;

type Reply = Result<Response, PageError>;

pub(crate) async fn confirm(
    State(pages): State<Pages>,
    Administrator(visitor): Administrator,
    Path(name): Path<String>,
) -> Reply {
    let account = find(&pages, &name)?;
    not_oneself(&visitor, &account)?;
    page(&pages, &visitor, &account, &Wrong::default())
}

fn page(pages: &Pages, visitor: &SignedIn, account: &Account, wrong: &Wrong) -> Reply {
    let (name, key) = (account.name.spelling(), account.name.key());
    let usage = pages.service.usage(key)?;
    let again = Input {
        max: 64,
        required: true,
        ..Input::text("again", "The user's name again", "")
    };
    let main = html! {
        p.way { a href=(path(key)) { "‹ " (name) } }
        h1 { "Remove " (name) "?" }
        (wrong.summary())
        p.lead {
            "All of it goes for good: " (size_text(usage.mail_bytes)) " of mail, "
            (size_text(usage.document_bytes)) " of documents, and the calendar. \
             To keep it, have the user download it first, or disable the user instead."
        }
        form.stacked method="post" action={ (path(key)) "/remove" } {
            (layout::proof(visitor))
            (again.render(wrong))
            (own_field(OWN, wrong))
            div.actions {
                button.danger type="submit" { "Remove for good" }
                a.button href=(path(key)) { "Keep" }
            }
        }
    };
    let here = (NavItem::Users, status(wrong));
    layout::page_with(&pages.service, visitor, here, "Remove a user", &main)
}

/// Continues to its end if the browser disconnects; after a stop of the server, the next start completes it.
pub(crate) async fn remove(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    SentByAdministrator(sent): SentByAdministrator,
) -> Reply {
    let (visitor, account) = (&sent.visitor, find(&pages, &name)?);
    not_oneself(visitor, &account)?;
    let mut wrong = Wrong::default();
    let again = sent.fields.trimmed("again");
    if !again.eq_ignore_ascii_case(account.name.key()) {
        wrong.add("again", "This is not the user's name.");
    } else {
        prove(&pages, (&sent, OWN), &mut wrong).await?;
    }
    if !wrong.is_empty() {
        return page(&pages, visitor, &account, &wrong);
    }
    let (service, key) = (pages.service.clone(), Arc::clone(account.name.key()));
    let of = Arc::clone(&key);
    let removal = async move { service.auth.accounts.delete(&of).await };
    let removed = visitor.owner.caller().to_the_end(removal).await;
    let stopping = || PageError::Refused(503, "The server is stopping.".to_owned());
    removed.ok_or_else(stopping)?.map_err(failed)?;
    note(visitor, &key, "user removed");
    Ok(layout::done("/users", Notice::UserRemoved))
}
