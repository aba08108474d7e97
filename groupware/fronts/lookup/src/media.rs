//! The required media types of bodies.

use groupware_http::media_type;
use http::HeaderMap;

use crate::reply::LookupFailure;

/// Media types of bodies.
pub(crate) const JSON: &[&str] = &["application/json"];
pub(crate) const XML: &[&str] = &["text/xml", "application/xml", "application/soap+xml"];

/// Checks that the body has one of these types. A browser asks before it sends one of them for a
/// page of another site: without this check, any page could register services here.
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
