//! All data of the visitor, as one archive.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use groupware_takeout::{Source, file_name, write};
use maud::{Markup, html};

use crate::error::PageError;
use crate::form::Sent;
use crate::front::Pages;
use crate::layout;
use crate::visitor::SignedIn;

/// The form that requests it: a form, so that no other site can make a browser request it.
pub(crate) fn form(visitor: &SignedIn) -> Markup {
    html! {
        h2 { "Your data" }
        p { "All of your mail, calendar, and documents in one zip archive, in formats that other programs read." }
        form method="post" action="/account/takeout" {
            (layout::proof(visitor))
            div.actions { button type="submit" { "Download everything" } }
        }
    }
}

pub(crate) async fn send(State(pages): State<Pages>, sent: Sent) -> Result<Response, PageError> {
    let owner = &sent.visitor.owner;
    let mailbox: Arc<str> = owner.mailbox().into();
    let (store, content) = (pages.service.store().clone(), pages.content.clone());
    let now_s = sent.visitor.now;
    let name = file_name(&mailbox, now_s);
    let written = pages
        .streams
        .written(owner.caller(), owner.mailbox(), move |to| {
            let source = Source {
                store: &store,
                content: &content,
                mailbox: &mailbox,
                now_s,
            };
            Ok(write(source, to)?)
        });
    Ok(written.await?.into_file(&name, "application/zip"))
}
