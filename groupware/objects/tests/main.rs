//! Content in a real object store, by the records of a real store. Where none is installed, the tests say so.

#![cfg(feature = "s3")]

mod segments;
mod shelf;
mod support;
mod sweep;
