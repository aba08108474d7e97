//! Errors of creating the checks.

/// Why no resolver is available.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// The system's resolver configuration can't be read.
    #[cfg(feature = "dns")]
    #[error(
        "cannot find out which resolvers this system uses (/etc/resolv.conf): {0}; --resolver names others"
    )]
    System(String),
    /// The program was built without the checks.
    #[cfg(not(feature = "dns"))]
    #[error(
        "this program was built without what finds out where mail comes from (the feature mail-auth, which is \
         on by default)"
    )]
    Absent,
}
