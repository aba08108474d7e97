//! The decisions of the older lookup services' XML protocol: the effects of its messages on
//! registrations. [`groupware_proto_lookup`] has the format.
//!
//! A service with N interfaces is one registration of N blocks of metadata. Both protocols see all
//! registrations: a record has the same information.

mod decide;

pub use decide::{ScanBudget, decide, size};
pub use groupware_proto_lookup::{Kind, Message, XmlError, fault};

use crate::LookupError;

/// The response to a message that could not be decided: a SOAP fault.
pub fn failure(error: &LookupError) -> Vec<u8> {
    let refusal = error.reason().map(|_| error.to_string());
    groupware_proto_lookup::failure(refusal.as_deref())
}
