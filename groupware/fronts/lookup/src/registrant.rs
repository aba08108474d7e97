//! The sender of a change of registrations.

use groupware_http::{Admin, ApiError, authenticate};
use groupware_lookup::Registrant;
use groupware_proto_http::{Authorization, authorization};
use groupware_runtime::Caller;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::front::Lookup;
use crate::media::check_type;
use crate::reply::LookupFailure;

/// Returns the sender of a change. Only an `Authorization` header counts: a browser would add a
/// cookie to any other site's request.
///
/// # Errors
/// 401 for missing credentials where they are required, and for wrong ones.
pub(crate) async fn registrant(
    lookup: &Lookup,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Registrant, ApiError> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return match lookup.access.is_open() {
            true => Ok(Registrant::Anybody),
            false => Err(ApiError::unauthenticated(
                "Sign in, or send the admin token, to change registrations.",
            )),
        };
    };
    match authorization(header.as_bytes()) {
        Some(Authorization::Bearer(_)) => {
            Admin::check(&lookup.service, headers).map(|_| Registrant::Admin)
        }
        _ => {
            let account = authenticate(&lookup.service, caller, headers).await?;
            Ok(Registrant::User(account.name.key().as_ref().to_owned()))
        }
    }
}

/// Returns the sender of a change whose body must have one of these types.
///
/// # Errors
/// As [`registrant`]; 415 for another type.
pub(crate) async fn changer(
    lookup: &Lookup,
    caller: &Caller,
    headers: &HeaderMap,
    types: &[&'static str],
) -> Result<Registrant, LookupFailure> {
    check_type(headers, types)?;
    Ok(registrant(lookup, caller, headers).await?)
}
