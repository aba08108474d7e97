//! The owner's own folders: made, renamed, deleted.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_mail::folders::{self, OwnFolder};
use groupware_mail::{Folder, MailError, Unid};
use http::StatusCode;
use maud::html;

use super::path;
use crate::AppState;
use crate::mail::decide::{Failure, change as commit, read};
use crate::pages::failure::PageError;
use crate::pages::field::{Input, Wrong};
use crate::pages::form::Sent;
use crate::pages::layout::{self, Here};
use crate::pages::notice::Notice;
use crate::pages::visitor::Visitor;

type Reply = Result<Response, PageError>;

fn own(state: &AppState, visitor: &Visitor) -> Result<Vec<OwnFolder>, MailError> {
    read(state, |snapshot| folders::own(snapshot, visitor.mailbox()))
}

fn status(wrong: &Wrong) -> StatusCode {
    match wrong.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

pub(in crate::pages) async fn show(State(state): State<AppState>, visitor: Visitor) -> Reply {
    render(&state, &visitor, "", &Wrong::default())
}

fn render(state: &AppState, visitor: &Visitor, typed: &str, wrong: &Wrong) -> Reply {
    let mut folders = own(state, visitor)?;
    folders.sort_by_key(|folder| folder.name.to_lowercase());
    let main = html! {
        h1 { "Own folders" }
        (wrong.summary())
        @if folders.is_empty() {
            p.hint { "You have none yet. Mails can be moved into folders of your own." }
        } @else {
            ul.own-folders {
                @for folder in &folders {
                    li {
                        a href=(path(Folder::Own(folder.unid))) { (folder.name) }
                        a.button href={ "/folders/" (folder.unid) } { "Change" span.unseen { " " (folder.name) } }
                    }
                }
            }
        }
        form.stacked method="post" action="/folders" {
            (layout::proof(visitor))
            (Input::text("name", "New folder", typed).render(wrong))
            div.actions { button.primary type="submit" { "Make" } }
        }
    };
    let here = Here::Mail(None);
    layout::page_with(state, visitor, (here, status(wrong)), "Own folders", &main)
}

/// A name that is refused is said beside the field.
fn name_wrong(failure: Failure) -> Result<Wrong, PageError> {
    match failure {
        Failure::Mail(MailError::Refused { message, .. }) => {
            let mut wrong = Wrong::default();
            wrong.add("name", message);
            Ok(wrong)
        }
        failure => Err(failure.into()),
    }
}

pub(in crate::pages) async fn create(State(state): State<AppState>, sent: Sent) -> Reply {
    let (visitor, name) = (&sent.visitor, sent.fields.trimmed("name"));
    let made = commit(&state, visitor.mailbox(), |context| {
        folders::create(context, name)
    })
    .await;
    match made {
        Ok(_) => Ok(layout::done("/folders", Notice::FolderMade)),
        Err(failure) => render(&state, visitor, name, &name_wrong(failure)?),
    }
}

fn one(state: &AppState, visitor: &Visitor, id: &str) -> Result<OwnFolder, PageError> {
    let unid = Unid::parse(id).ok_or(PageError::NotFound)?;
    let mut folders = own(state, visitor)?.into_iter();
    folders
        .find(|folder| folder.unid == unid)
        .ok_or(PageError::NotFound)
}

pub(in crate::pages) async fn show_one(
    State(state): State<AppState>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Reply {
    let folder = one(&state, &visitor, &id)?;
    render_one(&state, &visitor, &folder, &folder.name, &Wrong::default())
}

fn render_one(
    state: &AppState,
    visitor: &Visitor,
    folder: &OwnFolder,
    typed: &str,
    wrong: &Wrong,
) -> Reply {
    let action = format!("/folders/{}", folder.unid);
    let main = html! {
        p.way { a href="/folders" { "‹ Own folders" } }
        h1 { (folder.name) }
        (wrong.summary())
        form.stacked method="post" action=(action) {
            (layout::proof(visitor))
            (Input::text("name", "Name", typed).render(wrong))
            div.actions { button.primary type="submit" name="do" value="rename" { "Rename" } }
        }
        form method="post" action=(action) {
            (layout::proof(visitor))
            p.hint { "When the folder is deleted, what is in it goes to the archive." }
            div.actions { button.danger type="submit" name="do" value="delete" { "Delete the folder" } }
        }
    };
    let here = Here::Mail(Some(Folder::Own(folder.unid)));
    layout::page_with(state, visitor, (here, status(wrong)), &folder.name, &main)
}

pub(in crate::pages) async fn change(
    State(state): State<AppState>,
    Path(id): Path<String>,
    sent: Sent,
) -> Reply {
    let (visitor, fields) = (&sent.visitor, &sent.fields);
    let folder = one(&state, visitor, &id)?;
    let name = fields.trimmed("name");
    match fields.get("do") {
        "delete" => {
            commit(&state, visitor.mailbox(), |context| {
                folders::delete(context, folder.unid)
            })
            .await?;
            Ok(layout::done("/folders", Notice::FolderDeleted))
        }
        "rename" => {
            let renamed = commit(&state, visitor.mailbox(), |context| {
                folders::rename(context, folder.unid, name)
            })
            .await;
            match renamed {
                Ok(_) => Ok(layout::done("/folders", Notice::FolderRenamed)),
                Err(failure) => render_one(&state, visitor, &folder, name, &name_wrong(failure)?),
            }
        }
        _ => Err(PageError::Unreadable),
    }
}
