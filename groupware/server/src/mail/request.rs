//! What a mail request carries: identifier, query, media type, body.

use axum::extract::{FromRequestParts, RawPathParams};
use bytes::Bytes;
use groupware_mail::{Context, Folder, MailError, Outgoing, Parcel, Reason, Unid, parse_outgoing};
use http::header::CONTENT_TYPE;
use http::request::Parts;

use crate::error::ApiError;

/// A parameter of the path, decoded.
async fn parameter<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    wanted: &str,
) -> Result<String, ApiError> {
    let unreadable = || ApiError::bad_request("The path can't be read.");
    let names = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| unreadable())?;
    let found = names.iter().find(|(name, _)| *name == wanted);
    found
        .map(|(_, value)| value.to_owned())
        .ok_or_else(unreadable)
}

/// The message that the path names.
pub(crate) struct Message(pub(crate) Unid);

impl<S: Send + Sync> FromRequestParts<S> for Message {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = parameter(parts, state, "id").await?;
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
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = parameter(parts, state, "id").await?;
        let folder = Folder::parse(&id).ok_or_else(|| MailError::not_found("Folder", &id));
        Ok(Self(folder?))
    }
}

/// The file that the path names.
pub(crate) struct FileName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for FileName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        parameter(parts, state, "file").await.map(Self)
    }
}

/// The query's names and values, decoded, in their order.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(pairs)| Self(pairs))
            .map_err(|_| ApiError::bad_request("The query can't be read."))
    }
}

impl Query {
    /// The pairs as the parsers read them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The last value of a parameter.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let values = self.pairs().filter(|(known, _)| *known == name);
        values.last().map(|(_, value)| value)
    }

    /// A parameter that is `true` or `false`.
    ///
    /// # Errors
    /// A refusal if it is something else.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, MailError> {
        match self.value(name) {
            None => Ok(None),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(_) => Err(MailError::bad_request(format!(
                "The parameter {name} is true or false."
            ))),
        }
    }
}

/// What the body calls itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Mime,
    Other,
}

impl<S: Send + Sync> FromRequestParts<S> for MediaType {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let value = parts.headers.get(CONTENT_TYPE);
        let value = value.and_then(|value| value.to_str().ok());
        let essence = value.unwrap_or_default().split(';').next();
        let essence = essence.unwrap_or_default().trim();
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
    /// What a body describes or is.
    ///
    /// # Errors
    /// A refusal of another type than JSON and MIME, or of what can't be read.
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

/// A message as its author has it.
pub(crate) enum Written {
    Described(Box<Outgoing>),
    Mime(Bytes),
}

impl Written {
    /// The message in MIME, from the owner of the mailbox.
    ///
    /// # Errors
    /// A refusal of what can't be built.
    pub(crate) fn message(&self, context: &Context<'_>) -> Result<Bytes, MailError> {
        match self {
            Self::Described(message) => Ok(message.build(context)?.into()),
            Self::Mime(message) => Ok(groupware_mail::completed(context, message.clone())),
        }
    }

    /// The same for those whom its head names.
    ///
    /// # Errors
    /// As [`Written::message`]; a refusal of recipients who are no local users.
    pub(crate) fn parcel(&self, context: &Context<'_>) -> Result<Parcel, MailError> {
        let message = self.message(context)?;
        Parcel::from_head(context.directory, context.mailbox, message)
    }
}
