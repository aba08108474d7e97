//! The XML protocol of the older lookup services: SOAP 1.1 with messages of NM-WG.
//!
//! A service with N interfaces is one registration of N blocks of metadata. Which of the two
//! protocols made a registration does not matter to the other: a record says the same.

mod canonical;
mod decide;
mod message;
mod names;
mod reader;
mod reply;
mod xquery;

pub use decide::decide;
pub use message::{Kind, Message};
pub use reader::XmlError;

use crate::LookupError;
use reader::{Raw, Walk};

impl Message {
    /// Reads a body: a message alone, or in an envelope.
    ///
    /// # Errors
    /// When it is no message, or holds what is refused from strangers: a document type, entities
    /// of its own, elements too deep.
    pub fn parse(body: &[u8]) -> Result<Self, XmlError> {
        message::parse(body)
    }

    /// Whether it may change something.
    pub fn is_change(&self) -> bool {
        matches!(
            self.kind,
            Kind::Register | Kind::Deregister | Kind::Keepalive
        )
    }
}

/// The answer to a body that is no message: a SOAP fault.
pub fn fault(error: &XmlError) -> Vec<u8> {
    reply::fault(error)
}

/// The answer to a message that could not be decided: a SOAP fault.
pub fn failure(error: &LookupError) -> Vec<u8> {
    reply::failure(error)
}

/// A kept block, read again.
fn reread(block: &str) -> Option<Raw> {
    let mut walk = Walk::new(block.as_bytes()).ok()?;
    let root = walk.root().ok()?;
    walk.raw(&root).ok()
}
