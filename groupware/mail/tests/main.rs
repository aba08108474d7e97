//! Mailboxes over a store: laws, numbers, originals, and the stored form. One program, since each would be linked by itself.

mod laws;
mod numbering;
mod originals;
mod stored;
mod support;
