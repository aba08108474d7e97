//! The XML protocol of the older lookup services, decided: what its messages do to registrations.
//! How they are written is for [`groupware_proto_lookup`].
//!
//! A service with N interfaces is one registration of N blocks of metadata. Which of the two
//! protocols made a registration does not matter to the other: a record says the same.

mod decide;

pub use decide::{Reach, decide, size};
pub use groupware_proto_lookup::{Kind, Message, XmlError, fault};

use crate::LookupError;

/// The answer to a message that could not be decided: a SOAP fault.
pub fn failure(error: &LookupError) -> Vec<u8> {
    let refusal = error.reason().map(|_| error.to_string());
    groupware_proto_lookup::failure(refusal.as_deref())
}
