//! The dependencies of this front's routes.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_http::Streams;
use groupware_service::Service;

/// The dependencies of these routes.
#[derive(Debug, Clone)]
pub struct AdminFront {
    /// Accounts, and reads and changes of mailboxes.
    pub service: Service,
    /// Attachments' content.
    pub content: ContentStore,
    /// The resources of streaming.
    pub streams: Arc<Streams>,
    /// Bytes of filler in a new user's mailbox, unless the registration sets them.
    pub mailbox_pad_bytes: u64,
    /// Largest body of a request.
    pub body_bytes: usize,
    /// Longest time until a body is received, and for the work.
    pub within: Duration,
}

impl AsRef<Service> for AdminFront {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
