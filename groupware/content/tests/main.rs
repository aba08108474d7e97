//! Content in files, by one process and by several. One program, since each would be linked by itself.

mod shared;
mod store;
