//! Why nothing can be found out.

/// Why there is nobody to ask.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// The system doesn't say whom it asks.
    #[cfg(feature = "dns")]
    #[error(
        "cannot find out which resolvers this system uses (/etc/resolv.conf): {0}; --resolver names others"
    )]
    System(String),
    /// The program was built without it.
    #[cfg(not(feature = "dns"))]
    #[error(
        "this program was built without what finds out where mail comes from (the feature mail-auth, which is \
         on by default)"
    )]
    Absent,
}
