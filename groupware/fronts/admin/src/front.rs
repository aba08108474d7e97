//! What the routes of this front use, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_http::Streams;
use groupware_service::Service;

/// What these routes use.
#[derive(Debug, Clone)]
pub struct AdminFront {
    /// Who asks, reading, changing.
    pub service: Service,
    /// Attachments' content.
    pub content: ContentStore,
    /// What streaming takes.
    pub streams: Arc<Streams>,
    /// Bytes of filler that a new user's mailbox gets, unless the registration says otherwise.
    pub mailbox_pad_bytes: u64,
    /// Largest body of a request.
    pub body_bytes: usize,
    /// Longest time that a body may take to arrive, and that the work may take.
    pub within: Duration,
}

impl AsRef<Service> for AdminFront {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
