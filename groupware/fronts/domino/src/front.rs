//! The dependencies of this front's routes.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_http::{Cookies, Streams};
use groupware_service::Service;

use crate::reservations::Reservations;

/// The dependencies of these routes.
#[derive(Debug, Clone)]
pub struct Domino {
    /// Accounts, and reads and changes of mailboxes.
    pub service: Service,
    /// The cookies that carry sessions.
    pub cookies: Cookies,
    /// Attachments' content.
    pub content: ContentStore,
    /// The resources of streaming.
    pub streams: Arc<Streams>,
    /// The space that bodies under way reserve of their owners' shares.
    pub set_aside: Reservations,
    /// Largest attachment.
    pub attachment_bytes: u64,
    /// Longest time until 64 KiB of an attachment are received.
    pub body_within: Duration,
    /// Longest time until a message is received.
    pub message_within: Duration,
}

impl AsRef<Service> for Domino {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
