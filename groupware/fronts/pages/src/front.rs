//! The dependencies of the pages.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use groupware_content::ContentStore;
use groupware_http::{Cookies, Streams};
use groupware_service::Service;

/// The dependencies of these routes.
#[derive(Debug, Clone)]
pub struct Pages {
    /// Accounts, and reads and changes of mailboxes.
    pub service: Service,
    /// Attachments' content.
    pub content: ContentStore,
    /// The resources of streaming.
    pub streams: Arc<Streams>,
    /// The cookies that carry sessions.
    pub cookies: Cookies,
    /// The key of the tokens that prove a form's origin.
    pub form_key: [u8; 32],
    /// Longest time until a mail with its files is received.
    pub message_within: Duration,
}

impl FromRef<Pages> for Service {
    fn from_ref(pages: &Pages) -> Self {
        pages.service.clone()
    }
}
