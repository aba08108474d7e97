//! The answer to the invitation that a mail brings.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_calendar::{self as calendar, Action};
use groupware_service::Service;
use groupware_service::calendar::change;

use super::invitation;
use super::message::{find, is_long, take, unid};
use super::text::message_path;
use crate::error::PageError;
use crate::form::Sent;
use crate::layout;
use crate::notice::Notice;

pub(crate) async fn submit(
    State(service): State<Service>,
    Path(id): Path<String>,
    sent: Sent,
) -> Result<Response, PageError> {
    let Sent { visitor, fields } = sent;
    let unid = unid(&id)?;
    let (action, notice) = match fields.get("answer") {
        "accept" => (Action::Accept, Notice::MailAccepted),
        "tentative" => (Action::Tentative, Notice::Tentative),
        "decline" => (Action::Decline, Notice::MailDeclined),
        _ => return Err(PageError::Unreadable),
    };
    let held = find(&service, &visitor, unid)?;
    let bytes = take(&service, &visitor, &held).await?;
    let (owner, now) = (service.auth.people().email(visitor.mailbox()), visitor.now);
    let found = service.work(visitor.owner.caller(), is_long(&held), move || {
        invitation::of(&groupware_mail::parts(&bytes), &owner, now)
    });
    let invitation = found.await.ok_or(PageError::NotFound)?;
    change(&service, &visitor.owner, |context| {
        calendar::answer_mail(context, &invitation, action)
    })
    .await?;
    Ok(layout::done(&message_path(unid), notice))
}
