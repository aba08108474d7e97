//! Parses calendar requests: identifier, query, media type, body. Each unreadable part is rejected
//! in the calendar's own error shape.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request, rejection::BytesRejection},
};
use groupware_calendar::{
    ActionBody, CalendarError, Context, Format, NewEvent, Reason, Version, limits, parse_icalendar,
    parse_json_events, require_seen,
};
use http::{header, request::Parts};

use super::reply::{CalendarFailure, tag};

/// The identifier in the path: a UID or the name of an iTIP message.
pub(crate) struct Resource(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Resource {
    type Rejection = CalendarFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, CalendarFailure> {
        segment(parts, state, "id").await.map(Self)
    }
}

/// The instance of an event that the path names.
pub(crate) struct Recurrence(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Recurrence {
    type Rejection = CalendarFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, CalendarFailure> {
        segment(parts, state, "recurrence").await.map(Self)
    }
}

async fn segment<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    named: &str,
) -> Result<String, CalendarFailure> {
    let unreadable =
        || CalendarError::refused(Reason::BadIdentifier, "The identifier can't be read.");
    let names = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| unreadable())?;
    let found = names.iter().find(|(name, _)| *name == named);
    let (_, found) = found.ok_or_else(unreadable)?;
    Ok(found.to_owned())
}

/// The query's names and values, decoded, in order.
pub(crate) struct CalendarQuery(groupware_http::Query);

impl<S: Send + Sync> FromRequestParts<S> for CalendarQuery {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(groupware_http::Query::of(parts)))
    }
}

impl CalendarQuery {
    /// The pairs, in the form that the calendar parses.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.pairs()
    }

    /// A parameter that is `true` or `false`.
    ///
    /// # Errors
    /// 400 if it has another value.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, CalendarFailure> {
        Ok(self.0.flag(name)?.unwrap_or(default))
    }
}

/// The versions of an entry that the client saw, if given (RFC 9110, 13.1).
pub(crate) struct Seen {
    /// The versions that it permits to change.
    if_match: Option<String>,
    /// The versions of which it needs no copy.
    if_none_match: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Seen {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let all = |name| {
            let values = parts.headers.get_all(name).iter();
            // A value that isn't text matches no version.
            let values = values.map(|value| value.to_str().unwrap_or_default());
            values
                .map(str::to_owned)
                .reduce(|all, one| all + "," + &one)
        };
        Ok(Self {
            if_match: all(header::IF_MATCH),
            if_none_match: all(header::IF_NONE_MATCH),
        })
    }
}

impl Seen {
    /// Returns true if the client has this version in this form.
    pub(crate) fn has(&self, version: Version, format: Format) -> bool {
        let tags = self.if_none_match.as_deref();
        // Weak tags are sufficient here.
        tags.is_some_and(|tags| {
            let tag = tag(version, format);
            let mut tags = tags.split(',').map(str::trim);
            tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
        })
    }

    /// Rejects a change of a version that the client did not see, in any form.
    ///
    /// # Errors
    /// 404; 412 if the entry has another version.
    pub(crate) fn check(&self, context: &Context<'_>, uid: &str) -> Result<(), CalendarError> {
        if self.if_match.is_none() && self.if_none_match.is_none() {
            return Ok(());
        }
        require_seen(context.snapshot, (context.mailbox, uid), |version| {
            let forms = [Format::Json, Format::ICalendar];
            let is_meant = self.if_match.as_deref().is_none_or(|tags| {
                let mut tags = tags.split(',').map(str::trim);
                tags.any(|it| it == "*" || forms.iter().any(|form| tag(version, *form) == it))
            });
            is_meant && !forms.iter().any(|form| self.has(version, *form))
        })
    }
}

/// The media type of the body.
pub(crate) struct MediaType(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for MediaType {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let value = parts.headers.get(header::CONTENT_TYPE);
        Ok(Self(
            value
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
        ))
    }
}

impl MediaType {
    /// Parses the one event in a body, and the form, which the answer has too.
    ///
    /// # Errors
    /// 415 for a type other than JSON and iCalendar; 400 for none or several events.
    pub(crate) fn one_event(&self, body: &[u8]) -> Result<(Format, NewEvent), CalendarError> {
        let essence = self.0.as_deref().unwrap_or_default();
        let essence = essence.split(';').next().unwrap_or_default().trim();
        let (format, mut events) = if essence.eq_ignore_ascii_case("application/json") {
            (Format::Json, parse_json_events(body)?)
        } else if essence.eq_ignore_ascii_case("text/calendar") {
            (Format::ICalendar, parse_icalendar(body)?)
        } else {
            return Err(CalendarError::refused(
                Reason::UnsupportedMediaType,
                "An event is application/json or text/calendar.",
            ));
        };
        match (events.pop(), events.is_empty()) {
            (Some(event), true) => Ok((format, event)),
            (None, _) => Err(CalendarError::bad_request("The body has no event.")),
            (Some(_), false) => Err(CalendarError::bad_request(
                "The body has more than one event.",
            )),
        }
    }

    /// Parses the body of an action.
    ///
    /// # Errors
    /// 415 for a body that is not JSON; 400 for an invalid one.
    pub(crate) fn action(&self, body: &[u8]) -> Result<ActionBody, CalendarError> {
        ActionBody::parse(self.0.as_deref(), body)
    }
}

/// The complete body, within the calendar's limit. The gate has read it already.
pub(crate) struct Body(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = CalendarFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, CalendarFailure> {
        let body =
            Bytes::from_request(request, state)
                .await
                .map_err(|rejection| match rejection {
                    BytesRejection::FailedToBufferBody(ref cause)
                        if cause.status() == http::StatusCode::PAYLOAD_TOO_LARGE =>
                    {
                        CalendarFailure::TooLarge
                    }
                    _ => CalendarError::bad_request("The request body can't be read.").into(),
                })?;
        match body.len() <= limits::BODY_BYTES {
            true => Ok(Self(body)),
            false => Err(CalendarFailure::TooLarge),
        }
    }
}
