//! Tests of profiles: files, sums, formats, flame graphs, and waits.

mod bounds;
mod flame;
mod formats;
mod go;
mod made;
mod sums;
mod waiting;
mod waits;
