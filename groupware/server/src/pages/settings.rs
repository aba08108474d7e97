//! What a user can choose: the zone of the times shown.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use maud::html;

use super::failure::PageError;
use super::field::Wrong;
use super::form::Sent;
use super::layout::{self, Here};
use super::notice::Notice;
use super::visitor::Visitor;
use super::zone::{self, Zone};
use crate::AppState;

pub(super) async fn show(State(state): State<AppState>, visitor: Visitor) -> Reply {
    form(&state, &visitor, &Wrong::default())
}

type Reply = Result<Response, PageError>;

fn form(state: &AppState, visitor: &Visitor, wrong: &Wrong) -> Reply {
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
    };
    let status = match wrong.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    };
    layout::page_with(state, visitor, (Here::Settings, status), "Settings", &main)
}

pub(super) async fn submit(State(state): State<AppState>, sent: Sent) -> Reply {
    let Some(zone) = Zone::parse(sent.fields.get("zone")) else {
        let mut wrong = Wrong::default();
        wrong.add("zone", "Choose a time zone of the list.");
        return form(&state, &sent.visitor, &wrong);
    };
    zone.choose(state.store(), sent.visitor.mailbox()).await?;
    Ok(layout::done("/settings", Notice::SettingsSaved))
}
