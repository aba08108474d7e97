//! Workloads from recordings and from descriptions of services. One program, since each would be linked separately.

mod har;
mod openapi;
