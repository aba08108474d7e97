//! Values as bytes and as texts.

use std::borrow::Cow;

use minijinja::Error;
use minijinja::ErrorKind;
use minijinja::value::{Value, ValueKind};

/// Returns a value's bytes: UTF-8 of a text, the digits of a number, the first entry of a capture.
pub(crate) fn of(value: &Value) -> Result<Cow<'_, [u8]>, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => Err(invalid("there is no value, but null".to_owned())),
        ValueKind::Bool if value.is_true() => Ok(Cow::Borrowed(b"true")),
        ValueKind::Bool => Ok(Cow::Borrowed(b"false")),
        _ => Ok(match (value.as_str(), value.as_bytes()) {
            (Some(text), _) => Cow::Borrowed(text.as_bytes()),
            (None, Some(bytes)) => Cow::Borrowed(bytes),
            (None, None) => Cow::Owned(value.to_string().into_bytes()),
        }),
    }
}

/// Returns a value's text; invalid UTF-8 is an error.
pub(crate) fn text(value: &Value) -> Result<Cow<'_, str>, Error> {
    let no_text = |_| invalid("these are bytes, and no text".to_owned());
    match of(value)? {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes)
            .map(Cow::Borrowed)
            .map_err(no_text),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(error) => Err(no_text(error.utf8_error())),
        },
    }
}

/// Converts bytes to a value: a text if they are valid UTF-8.
pub(crate) fn value(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(error) => Value::from_bytes(error.into_bytes()),
    }
}

/// Returns an error with this message.
pub(crate) fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}
