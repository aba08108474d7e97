//! What the pages use, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use groupware_content::ContentStore;
use groupware_http::{Cookies, Streams};
use groupware_service::Service;

/// What these routes use.
#[derive(Debug, Clone)]
pub struct Pages {
    /// Who asks, reading, changing.
    pub service: Service,
    /// Attachments' content.
    pub content: ContentStore,
    /// What streaming takes.
    pub streams: Arc<Streams>,
    /// How sessions are carried.
    pub cookies: Cookies,
    /// Proves that a form comes from a page of this server.
    pub form_key: [u8; 32],
    /// Longest time that a mail with its files may take to arrive.
    pub message_within: Duration,
}

impl FromRef<Pages> for Service {
    fn from_ref(pages: &Pages) -> Self {
        pages.service.clone()
    }
}
