//! Tests of profiles: files, sums, formats, and flame graphs.

mod bounds;
mod flame;
mod formats;
mod go;
mod made;
mod sums;
