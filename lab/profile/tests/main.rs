//! Profiles as files, and what sums of them come to.

mod bounds;
mod go;
mod made;
mod sums;
