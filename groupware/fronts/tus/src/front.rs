//! What the routes of this front use, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_http::{Disk, Streams};
use groupware_service::Service;

use crate::open::OpenUploads;

/// What these routes use.
#[derive(Debug, Clone)]
pub struct Tus {
    /// Who asks, reading, changing.
    pub service: Service,
    /// Attachments' content.
    pub content: ContentStore,
    /// What streaming takes.
    pub streams: Arc<Streams>,
    /// The uploads that are at hand.
    pub uploads: Arc<OpenUploads>,
    /// Largest attachment.
    pub attachment_bytes: u64,
    /// Longest time that 64 KiB of a chunk may take to arrive.
    pub body_within: Duration,
    /// Time without a chunk after which an upload is given up.
    pub lifetime_s: i64,
}

impl Tus {
    /// Content, and the way to threads that may wait for it.
    pub(crate) fn disk(&self) -> (&ContentStore, &Disk) {
        (&self.content, &self.streams.disk)
    }
}

impl AsRef<Service> for Tus {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
