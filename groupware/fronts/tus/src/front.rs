//! The dependencies of this front's routes.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_http::{Disk, Streams};
use groupware_service::Service;

use crate::open::OpenUploads;

/// The dependencies of these routes.
#[derive(Debug, Clone)]
pub struct Tus {
    /// Accounts, and reads and changes of mailboxes.
    pub service: Service,
    /// Attachments' content.
    pub content: ContentStore,
    /// The resources of streaming.
    pub streams: Arc<Streams>,
    /// The open uploads.
    pub uploads: Arc<OpenUploads>,
    /// Largest attachment.
    pub attachment_bytes: u64,
    /// Longest time until 64 KiB of a chunk are received.
    pub body_within: Duration,
    /// Time without a chunk after which an upload expires.
    pub lifetime_s: i64,
}

impl Tus {
    /// Content, and the blocking pool for its disk work.
    pub(crate) fn disk(&self) -> (&ContentStore, &Disk) {
        (&self.content, &self.streams.disk)
    }
}

impl AsRef<Service> for Tus {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
