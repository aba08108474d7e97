//! Content in a real object store, with the records of a real store. Without a server, the tests report that.

#![cfg(feature = "s3")]

mod segments;
mod shelf;
mod support;
mod sweep;
