//! The owner's own folders: creation, renaming, deletion.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_mail::folders::{self, OwnFolder};
use groupware_mail::{Context, Folder, MailError, Unid};
use groupware_service::ChangeError;
use groupware_service::Service;
use groupware_service::mail::{change as commit, change_in_slices, read};
use http::StatusCode;
use maud::html;

use super::text::path;
use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::form::Sent;
use crate::layout::{self, NavItem};
use crate::notice::Notice;
use crate::visitor::SignedIn;

type Reply = Result<Response, PageError>;

fn own(service: &Service, visitor: &SignedIn) -> Result<Vec<OwnFolder>, MailError> {
    read(service, |snapshot| {
        folders::own(snapshot, visitor.mailbox())
    })
}

fn status(wrong: &Wrong) -> StatusCode {
    match wrong.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

pub(crate) async fn show(State(service): State<Service>, visitor: SignedIn) -> Reply {
    render(&service, &visitor, "", &Wrong::default())
}

fn render(service: &Service, visitor: &SignedIn, typed: &str, wrong: &Wrong) -> Reply {
    let mut folders = own(service, visitor)?;
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
    let here = NavItem::Mail(None);
    layout::page_with(
        service,
        visitor,
        (here, status(wrong)),
        "Own folders",
        &main,
    )
}

/// An error for the name's field, if the name was refused.
fn name_wrong(failure: ChangeError<MailError>) -> Result<Wrong, PageError> {
    match failure {
        ChangeError::Decided(MailError::Refused { message, .. }) => {
            let mut wrong = Wrong::default();
            wrong.add("name", message);
            Ok(wrong)
        }
        failure => Err(failure.into()),
    }
}

pub(crate) async fn create(State(service): State<Service>, sent: Sent) -> Reply {
    let (visitor, name) = (&sent.visitor, sent.fields.trimmed("name"));
    let made = commit(&service, &visitor.owner, |context| {
        folders::create(context, name)
    })
    .await;
    match made {
        Ok(_) => Ok(layout::done("/folders", Notice::FolderMade)),
        Err(failure) => render(&service, visitor, name, &name_wrong(failure)?),
    }
}

fn one(service: &Service, visitor: &SignedIn, id: &str) -> Result<OwnFolder, PageError> {
    let unid = Unid::parse(id).ok_or(PageError::NotFound)?;
    let mut folders = own(service, visitor)?.into_iter();
    folders
        .find(|folder| folder.unid == unid)
        .ok_or(PageError::NotFound)
}

pub(crate) async fn show_one(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(id): Path<String>,
) -> Reply {
    let folder = one(&service, &visitor, &id)?;
    render_one(&service, &visitor, &folder, &folder.name, &Wrong::default())
}

fn render_one(
    service: &Service,
    visitor: &SignedIn,
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
    let here = NavItem::Mail(Some(Folder::Own(folder.unid)));
    layout::page_with(service, visitor, (here, status(wrong)), &folder.name, &main)
}

pub(crate) async fn change(
    State(service): State<Service>,
    Path(id): Path<String>,
    sent: Sent,
) -> Reply {
    let (visitor, fields) = (&sent.visitor, &sent.fields);
    let folder = one(&service, visitor, &id)?;
    let name = fields.trimmed("name");
    match fields.get("do") {
        "delete" => {
            let unid = folder.unid;
            let delete = move |context: &Context<'_>| folders::delete(context, unid);
            change_in_slices(&service, &visitor.owner, delete).await?;
            Ok(layout::done("/folders", Notice::FolderDeleted))
        }
        "rename" => {
            let renamed = commit(&service, &visitor.owner, |context| {
                folders::rename(context, folder.unid, name)
            })
            .await;
            match renamed {
                Ok(_) => Ok(layout::done("/folders", Notice::FolderRenamed)),
                Err(failure) => render_one(&service, visitor, &folder, name, &name_wrong(failure)?),
            }
        }
        _ => Err(PageError::Unreadable),
    }
}
