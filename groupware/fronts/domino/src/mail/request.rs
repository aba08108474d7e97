//! Parses mail requests: identifier, media type, body.

use std::sync::{Mutex, PoisonError};

use axum::extract::FromRequestParts;
use bytes::Bytes;
use groupware_http::{ApiError, media_type, parameter};
use groupware_mail::{
    Context, Folder, MailError, Outgoing, Reason, RoutedMessage, Unid, parse_outgoing,
};
use http::request::Parts;

use crate::failure::DominoFailure;

/// The message that the path names.
pub(crate) struct Message(pub(crate) Unid);

impl<S: Send + Sync> FromRequestParts<S> for Message {
    type Rejection = DominoFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, DominoFailure> {
        let id = parameter(parts, "id").await.map_err(ApiError::from)?;
        let unid = Unid::parse(&id).ok_or_else(|| MailError::not_found("Message", &id));
        Ok(Self(unid?))
    }
}

/// The folder that the path names.
pub(crate) struct InFolder(pub(crate) Folder);

impl InFolder {
    /// The owner's own folder of this name.
    pub(crate) fn own(&self) -> Result<Unid, MailError> {
        match self.0 {
            Folder::Own(unid) => Ok(unid),
            _ => Err(MailError::refused(
                Reason::Conflict,
                "This folder belongs to every mailbox.",
            )),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InFolder {
    type Rejection = DominoFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, DominoFailure> {
        let id = parameter(parts, "id").await.map_err(ApiError::from)?;
        let folder = Folder::parse(&id).ok_or_else(|| MailError::not_found("Folder", &id));
        Ok(Self(folder?))
    }
}

/// The file that the path names.
pub(crate) struct FileName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for FileName {
    type Rejection = DominoFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, DominoFailure> {
        Ok(Self(
            parameter(parts, "file").await.map_err(ApiError::from)?,
        ))
    }
}

/// The media type of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Mime,
    Other,
}

impl<S: Send + Sync> FromRequestParts<S> for MediaType {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let essence = media_type(&parts.headers);
        Ok(if essence.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case("message/rfc822") {
            Self::Mime
        } else {
            Self::Other
        })
    }
}

impl MediaType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Mime => "message/rfc822",
            Self::Other => "",
        }
    }

    /// Parses the message that a body describes or contains.
    ///
    /// # Errors
    /// A refusal of a type other than JSON and MIME, or of an unreadable body.
    pub(crate) fn read(self, body: Bytes) -> Result<Written, MailError> {
        match self {
            Self::Json => Ok(Written::Described(parse_outgoing(&body)?.into())),
            Self::Mime if !body.is_empty() => Ok(Written::Mime(body)),
            Self::Mime => Err(MailError::bad_request("The message is empty.")),
            Self::Other => Err(MailError::refused(
                Reason::UnsupportedMediaType,
                "A message is application/json or message/rfc822.",
            )),
        }
    }
}

/// A message as sent by its author.
pub(crate) enum Written {
    Described(Box<Outgoing>),
    Mime(Bytes),
}

impl Written {
    /// Returns the message in MIME, from the owner of the mailbox.
    fn message(&self, context: &Context<'_>) -> Result<Bytes, MailError> {
        match self {
            Self::Described(message) => Ok(message.build(context)?.into()),
            Self::Mime(message) => Ok(groupware_mail::completed(context, message.clone())),
        }
    }
}

/// A message that is built at the first decision. Another decision would build the same, and the
/// input isn't kept beside the result: both may be large.
pub(crate) struct Making(Mutex<Stage>);

enum Stage {
    Written(Written),
    Made(Bytes),
}

impl From<Written> for Making {
    fn from(written: Written) -> Self {
        Self(Mutex::new(Stage::Written(written)))
    }
}

impl Making {
    /// Returns the message in MIME, from the owner of the mailbox.
    ///
    /// # Errors
    /// A refusal of a message that can't be built.
    pub(crate) fn message(&self, context: &Context<'_>) -> Result<Bytes, MailError> {
        let mut stage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match &*stage {
            Stage::Written(written) => written.message(context)?,
            Stage::Made(message) => return Ok(message.clone()),
        };
        *stage = Stage::Made(made.clone());
        Ok(made)
    }

    /// Returns the message with an envelope of the recipients in its head.
    ///
    /// # Errors
    /// As [`Making::message`]; a refusal of recipients that are no local users.
    pub(crate) fn parcel(&self, context: &Context<'_>) -> Result<RoutedMessage, MailError> {
        let message = self.message(context)?;
        RoutedMessage::from_head(context.directory, context.mailbox, message)
    }
}
