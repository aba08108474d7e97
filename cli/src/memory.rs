//! What the C library keeps of memory that was freed: SQLite, which is C, has it from there.
//!
//! It learns from what is freed. Once a mail of 10 MB has gone through, it takes pieces of that size from what it keeps, and
//! keeps them, for each thread its own: that was half of what a server took for such mails.

/// Pieces from this size on are the system's own, and go back to it when they are freed.
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

/// Has large pieces go back when they are freed; whether it could be told.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back_large() -> bool {
    mallopt(MMAP_THRESHOLD, LARGE_BYTES) == 1
}

/// Other C libraries give them back anyway.
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
