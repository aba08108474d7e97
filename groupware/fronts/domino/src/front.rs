//! What the routes of this front use, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_http::{Cookies, Streams};
use groupware_service::Service;

use crate::set_aside::SetAside;

/// What these routes use.
#[derive(Debug, Clone)]
pub struct Domino {
    /// Who asks, reading, changing.
    pub service: Service,
    /// How sessions are carried.
    pub cookies: Cookies,
    /// Attachments' content.
    pub content: ContentStore,
    /// What streaming takes.
    pub streams: Arc<Streams>,
    /// What bodies under way set aside of their owners' shares.
    pub set_aside: SetAside,
    /// Largest attachment.
    pub attachment_bytes: u64,
    /// Longest time that 64 KiB of an attachment may take to arrive.
    pub body_within: Duration,
    /// Longest time that a message may take to arrive.
    pub message_within: Duration,
}

impl AsRef<Service> for Domino {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
