//! What bodies must call themselves.

use groupware_http::media_type;
use http::HeaderMap;

use crate::reply::LookupFailure;

/// Media types of bodies.
pub(crate) const JSON: &[&str] = &["application/json"];
pub(crate) const XML: &[&str] = &["text/xml", "application/xml", "application/soap+xml"];

/// Whether the body has one of these types. A browser asks before it lets a page of another site
/// send one of them: without it, any page could register here whoever it likes.
pub(crate) fn check_type(headers: &HeaderMap, types: &[&'static str]) -> Result<(), LookupFailure> {
    let essence = media_type(headers);
    match types
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
    {
        true => Ok(()),
        false => Err(LookupFailure::MediaType(types[0])),
    }
}
