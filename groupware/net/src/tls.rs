//! Sets up TLS from certificate files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The files that TLS needs, both PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, followed by its intermediates.
    pub cert: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file could not be read, or has no such item in PEM form.
    #[error("cannot read a {what} from {}", file.display())]
    File {
        /// `certificate` or `private key`.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// Certificate and key don't fit each other, or can't be used.
    #[error("cannot use the certificate and its key")]
    Pair(#[from] rustls::Error),
}

/// Sets up TLS with these files. `protocol` is what clients can
/// ask for in the handshake (ALPN), if there is a name for it.
///
/// # Errors
/// When the files can't be read or used.
pub fn acceptor(files: &TlsFiles, protocol: Option<&[u8]>) -> Result<TlsAcceptor, TlsError> {
    let chain = certificates(&files.cert).map_err(|source| TlsError::File {
        what: "certificate",
        file: files.cert.clone(),
        source,
    })?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| TlsError::File {
        what: "private key",
        file: files.key.clone(),
        source,
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)?.collect::<Result<_, _>>()?;
    if chain.is_empty() {
        Err(pem::Error::NoItemsFound)
    } else {
        Ok(chain)
    }
}
