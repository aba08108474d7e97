//! The user's settings: the zone of the times shown.

use axum::extract::State;
use axum::response::Response;
use groupware_service::Service;
use http::StatusCode;
use maud::html;

use crate::error::PageError;
use crate::field::Wrong;
use crate::form::Sent;
use crate::layout::{self, NavItem};
use crate::notice::Notice;
use crate::visitor::SignedIn;
use crate::zone::{self, Zone};

pub(crate) async fn show(State(service): State<Service>, visitor: SignedIn) -> Reply {
    form(&service, &visitor, &Wrong::default())
}

type Reply = Result<Response, PageError>;

fn form(service: &Service, visitor: &SignedIn, wrong: &Wrong) -> Reply {
    let current = visitor.zone.name();
    let now = zone::time(visitor.zone.clock(visitor.now));
    let main = html! {
        h1 { "Settings" }
        (wrong.summary())
        form.stacked method="post" action="/settings" {
            (layout::proof(visitor))
            div.field {
                label for="zone" { "Time zone" }
                select id="zone" name="zone" aria-describedby="zone-hint" {
                    @for name in Zone::names() {
                        option value=(name) selected[name == current] { (name.replace('_', " ")) }
                    }
                }
                p.hint id="zone-hint" { "It is " (now) " there now. Times on all pages are shown in it." }
            }
            div.actions { button.primary type="submit" { "Save" } }
        }
        p { a href="/account" { "Your password, passwords for programs, sessions, and your data" } }
    };
    let status = match wrong.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    };
    layout::page_with(
        service,
        visitor,
        (NavItem::Settings, status),
        "Settings",
        &main,
    )
}

pub(crate) async fn submit(State(service): State<Service>, sent: Sent) -> Reply {
    let Some(zone) = Zone::parse(sent.fields.get("zone")) else {
        let mut wrong = Wrong::default();
        wrong.add("zone", "Choose a time zone of the list.");
        return form(&service, &sent.visitor, &wrong);
    };
    let owner = &sent.visitor.owner;
    zone.choose(&service, owner.caller(), owner.mailbox())
        .await?;
    Ok(layout::done("/settings", Notice::SettingsSaved))
}
