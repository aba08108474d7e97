//! Accounts over a store: laws, numbers, originals, restored data, room, and the stored form. One
//! program, so that linking happens once.

mod far;
mod laws;
mod numbering;
mod originals;
mod restored;
mod room;
mod stored;
mod support;
