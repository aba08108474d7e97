//! Mailboxes over a store: laws, originals, and the stored form. One program, since each would be linked by itself.

mod laws;
mod originals;
mod stored;
mod support;
