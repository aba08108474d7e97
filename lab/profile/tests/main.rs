//! Profiles as files, and what sums of them come to.

mod bounds;
mod flame;
mod formats;
mod go;
mod made;
mod sums;
