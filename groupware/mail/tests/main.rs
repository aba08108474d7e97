//! Mailboxes over a store: laws, numbers, originals, what is put back, room, and the stored form. One program, since
//! each would be linked by itself.

mod far;
mod laws;
mod numbering;
mod originals;
mod restored;
mod room;
mod stored;
mod support;
