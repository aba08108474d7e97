//! Accounts over a store: laws, numbers, originals, restored data, room, and the stored form. One
//! program, so that linking happens once.

mod laws;
mod numbering;
mod originals;
mod remote;
mod restored;
mod room;
mod stored;
mod support;
