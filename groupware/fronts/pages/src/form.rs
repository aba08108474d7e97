//! A form that a signed-in user sends from a page of this server.

use axum::extract::multipart::MultipartError;
use axum::extract::{Form, FromRequest, FromRequestParts, Multipart, Request};
use axum::response::IntoResponse;
use groupware_mail::Attached;
use groupware_mail::limits::FILE_NAME_BYTES;

use crate::error::PageError;
use crate::forgery;
use crate::front::Pages;
use crate::visitor::SignedIn;

/// Most fields of a form: a page of mails to select, and a few others.
const MAX_FIELDS: usize = 512;

/// The fields of a form, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// Returns a field's text; empty if missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// Returns a field's text without surrounding blanks.
    pub(crate) fn trimmed(&self, name: &str) -> &str {
        self.get(name).trim()
    }

    /// Returns true if a box was ticked, or a button pressed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns all texts of fields of this name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, text)| text.as_str())
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = PageError;

    async fn from_request(request: Request, state: &S) -> Result<Self, PageError> {
        if !forgery::comes_from_here(request.headers()) {
            return Err(PageError::Forged);
        }
        let Form(fields) = Form::<Vec<(String, String)>>::from_request(request, state)
            .await
            .map_err(|rejection| PageError::unreadable(rejection.into_response().status()))?;
        if fields.len() > MAX_FIELDS {
            return Err(PageError::Unreadable);
        }
        Ok(Self(fields))
    }
}

/// A form of a signed-in user.
pub(crate) struct Sent {
    pub(crate) visitor: SignedIn,
    pub(crate) fields: Fields,
}

impl FromRequest<Pages> for Sent {
    type Rejection = PageError;

    async fn from_request(request: Request, pages: &Pages) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        if !forgery::comes_from_here(&parts.headers) {
            return Err(PageError::Forged);
        }
        let visitor = SignedIn::from_request_parts(&mut parts, pages).await?;
        let fields = Fields::from_request(Request::from_parts(parts, body), pages).await?;
        match forgery::is_genuine(&visitor.proof, fields.get(forgery::FIELD)) {
            true => Ok(Self { visitor, fields }),
            false => Err(PageError::Forged),
        }
    }
}

/// A form with files.
pub(crate) struct SentFiles {
    pub(crate) visitor: SignedIn,
    pub(crate) fields: Fields,
    pub(crate) files: Vec<Attached>,
}

impl FromRequest<Pages> for SentFiles {
    type Rejection = PageError;

    async fn from_request(request: Request, pages: &Pages) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        if !forgery::comes_from_here(&parts.headers) {
            return Err(PageError::Forged);
        }
        let visitor = SignedIn::from_request_parts(&mut parts, pages).await?;
        let request = Request::from_parts(parts, body);
        let mut form = Multipart::from_request(request, pages)
            .await
            .map_err(|_| PageError::Unreadable)?;
        let (mut fields, mut files) = (Fields::default(), Vec::new());
        while let Some(field) = form.next_field().await.map_err(unreadable)? {
            if fields.0.len() + files.len() >= MAX_FIELDS {
                return Err(PageError::Unreadable);
            }
            let name = field.name().unwrap_or_default().to_owned();
            match field.file_name().map(str::to_owned) {
                None => fields
                    .0
                    .push((name, field.text().await.map_err(unreadable)?)),
                Some(file_name) => {
                    let kind = field.content_type().unwrap_or_default().to_owned();
                    let data = field.bytes().await.map_err(unreadable)?;
                    // A file field without a choice is sent too.
                    if !file_name.is_empty() || !data.is_empty() {
                        files.push(attached(&file_name, &kind, data.to_vec()));
                    }
                }
            }
        }
        match forgery::is_genuine(&visitor.proof, fields.get(forgery::FIELD)) {
            true => Ok(Self {
                visitor,
                fields,
                files,
            }),
            false => Err(PageError::Forged),
        }
    }
}

fn unreadable(error: MultipartError) -> PageError {
    PageError::unreadable(error.status())
}

/// A file for a mail, with a name without a path, and a valid media type.
fn attached(name: &str, kind: &str, data: Vec<u8>) -> Attached {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = String::new();
    for letter in last.chars().filter(|letter| !letter.is_control()) {
        if name.len() + letter.len_utf8() > FILE_NAME_BYTES {
            break;
        }
        name.push(letter);
    }
    if name.is_empty() {
        name.push_str("file");
    }
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/!#$&^_.+-".contains(&byte);
    // Readers of the mail would split a type with parts of its own.
    let is_file = kind.matches('/').count() == 1
        && kind.bytes().all(plain)
        && !kind.starts_with('/')
        && !kind.ends_with('/')
        && !kind.starts_with("multipart/")
        && !kind.starts_with("message/")
        && kind.len() <= 100;
    let kind = match is_file {
        true => kind,
        false => "application/octet-stream".to_owned(),
    };
    Attached {
        name,
        kind,
        id: None,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_and_types_that_are_such() {
        let check = |name: &str, kind: &str, expected: (&str, &str)| {
            let file = attached(name, kind, Vec::new());
            assert_eq!((file.name.as_str(), file.kind.as_str()), expected);
        };
        check("a.png", "Image/PNG; x=y", ("a.png", "image/png"));
        let other = "application/octet-stream";
        check("../../etc/pass\r\nwd", "", ("passwd", other));
        check("C:\\x\\", "text/html\r\nx: y", ("file", other));
        check("a", "multipart/mixed", ("a", other));
        check("a", "message/rfc822", ("a", other));
        check("a", "/png", ("a", other));
        let long = "ä".repeat(500);
        assert_eq!(attached(&long, "", Vec::new()).name.len(), FILE_NAME_BYTES);
    }
}
