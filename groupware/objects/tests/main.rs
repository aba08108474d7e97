//! Content in a real object store, with the records of a real store. Without a server, the tests report that.

#![cfg(feature = "s3")]

mod segments;
mod storage;
mod support;
mod sweep;
