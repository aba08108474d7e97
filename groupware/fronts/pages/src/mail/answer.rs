//! The recipient's answer to the invitation, the cancellation, or the reply in a mail.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_calendar::{self as calendar, Action, CancelledCopy, MailMessage};
use groupware_service::Service;
use groupware_service::calendar::change;

use super::itip;
use super::message::{find, is_long, take, unid};
use super::text::message_path;
use crate::error::PageError;
use crate::form::Sent;
use crate::layout;
use crate::notice::Notice;
use crate::visitor::SignedIn;

pub(crate) async fn submit(
    State(service): State<Service>,
    Path(id): Path<String>,
    sent: Sent,
) -> Result<Response, PageError> {
    let Sent { visitor, fields } = sent;
    let unid = unid(&id)?;
    let held = find(&service, &visitor, unid)?;
    let bytes = take(&service, &visitor, &held).await?;
    let (owner, now) = (service.auth.people().email(visitor.mailbox()), visitor.now);
    let found = service.work(visitor.owner.caller(), is_long(&held), move || {
        itip::of(&groupware_mail::parts(&bytes), &owner, now)
    });
    let message = found.await.ok_or(PageError::NotFound)?;
    let notice = act(&service, &visitor, &message, fields.get("answer")).await?;
    Ok(layout::done(&message_path(unid), notice))
}

/// Performs the action of a message's button.
async fn act(
    service: &Service,
    visitor: &SignedIn,
    message: &MailMessage,
    button: &str,
) -> Result<Notice, PageError> {
    let owner = &visitor.owner;
    match message {
        MailMessage::Invitation(invitation) => {
            let (action, notice) = match button {
                "accept" => (Action::Accept, Notice::MailAccepted),
                "tentative" => (Action::Tentative, Notice::Tentative),
                "decline" => (Action::Decline, Notice::MailDeclined),
                _ => return Err(PageError::Unreadable),
            };
            change(service, owner, |context| {
                calendar::answer_mail(context, invitation, action)
            })
            .await?;
            Ok(notice)
        }
        MailMessage::Cancellation(cancellation) => {
            let (copy, notice) = match button {
                "mark" => (CancelledCopy::Mark, Notice::EventMarkedCancelled),
                "remove" => (CancelledCopy::Remove, Notice::EventRemoved),
                _ => return Err(PageError::Unreadable),
            };
            change(service, owner, |context| {
                calendar::apply_cancellation(context, cancellation, copy)
            })
            .await?;
            Ok(notice)
        }
        MailMessage::Reply(reply) if button == "record" => {
            change(service, owner, |context| {
                calendar::record_reply(context, reply)
            })
            .await?;
            Ok(Notice::AnswerRecorded)
        }
        MailMessage::Reply(_) => Err(PageError::Unreadable),
    }
}
