//! Mailboxes over a store: laws, numbers, originals, what is put back, and the stored form. One program, since each would
//! be linked by itself.

mod far;
mod laws;
mod numbering;
mod originals;
mod restored;
mod stored;
mod support;
