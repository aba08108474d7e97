//! Workloads from recordings and from descriptions of services.
//! One program, since each would be linked by itself.

mod har;
mod openapi;
