//! Content in files, for one process and for several. One program, so that linking happens once.

mod shared;
mod store;
