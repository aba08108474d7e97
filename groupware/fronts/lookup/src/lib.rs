//! The lookup service's routes, in two protocols: parse the request, let `groupware-lookup` decide,
//! answer. Knows no rule of registrations.

mod access;
mod front;
mod media;
mod registrant;
mod reply;
mod routes;

pub use access::{Access, LookupAccess};
pub use front::Lookup;
pub use routes::routes;
