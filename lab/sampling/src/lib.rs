//! Samples the call stacks of the processes of a system, by the performance events of the Linux kernel.
//!
//! Nothing else in the lab knows `perf_event_open`.
