//! Errors other than wrong measurements.

/// Errors other than wrong measurements.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the driver failed: {0}")]
    Driver(#[from] lab_driver::DriverError),
    #[error("{0}")]
    Other(String),
}

impl From<nix::Error> for Error {
    fn from(error: nix::Error) -> Self {
        Self::Io(error.into())
    }
}
