//! Mailboxes over a store: laws, and the stored form. One program, since each would be linked by itself.

mod laws;
mod stored;
mod support;
