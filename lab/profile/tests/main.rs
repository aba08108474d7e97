//! Profiles as files, and what sums of them come to.

mod bounds;
mod formats;
mod go;
mod made;
mod sums;
