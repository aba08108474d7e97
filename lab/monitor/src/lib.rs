//! Samples counters of the host and of processes from /proc. Judges nothing.
