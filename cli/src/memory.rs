//! Limits the freed memory that the C library keeps: SQLite, which is C, allocates there.
//!
//! The library adapts to freed sizes. After a mail of 10 MB, it serves pieces of that size from its heap and keeps
//! them, separately for each thread: that was half of a server's memory for such mails.

/// Pieces from this size on are mapped separately, and unmapped when freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: std::ffi::c_int = 1 << 20;

/// `M_MMAP_THRESHOLD` in malloc.h.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: std::ffi::c_int = -3;

#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "the C library is told by nothing else but its environment; it takes and gives plain numbers"
)]
unsafe extern "C" {
    safe fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
}

/// Returns large pieces to the system when freed; returns true if the setting was accepted.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back_large() -> bool {
    mallopt(MMAP_THRESHOLD, LARGE_BYTES) == 1
}

/// Other C libraries return them anyway.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back_large() -> bool {
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_c_library_is_told() {
        assert!(super::give_back_large());
    }
}
