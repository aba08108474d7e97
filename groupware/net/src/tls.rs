//! Sets up TLS from certificate files, which can be reloaded while the server runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The files that TLS needs, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        /// The cause.
        source: pem::Error,
    },
    /// Certificate and key don't match, or can't be used.
    #[error("cannot use the certificate and its key")]
    Pair(#[from] rustls::Error),
}

/// The current certificate with its key. Clones are handles of the same certificate.
#[derive(Debug, Clone)]
pub struct Certificate(Arc<Current>);

#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl Certificate {
    /// Reads certificate and key from files.
    ///
    /// # Errors
    /// When the files can't be read or used.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let key = Arc::new(read(files)?);
        Ok(Self(Arc::new(Current(RwLock::new(key)))))
    }

    /// Reads certificate and key again, for new connections; returns true if the certificate
    /// changed. On failure, the old one stays.
    ///
    /// # Errors
    /// When the files can't be read or used.
    pub fn reload(&self, files: &TlsFiles) -> Result<bool, TlsError> {
        let next = Arc::new(read(files)?);
        let mut current = self.0.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.cert != next.cert;
        *current = next;
        Ok(is_new)
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

/// Sets up TLS with a certificate. `protocol` is the protocol name that clients can negotiate in
/// the handshake (ALPN), if there is one.
///
/// # Errors
/// When no version of TLS is supported.
pub fn acceptor(
    certificate: &Certificate,
    protocol: Option<&[u8]>,
) -> Result<TlsAcceptor, TlsError> {
    let resolver: Arc<Current> = Arc::clone(&certificate.0);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Reads a certificate and the key that matches it.
fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
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
    Ok(CertifiedKey::from_der(
        chain,
        key,
        &ring::default_provider(),
    )?)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)?.collect::<Result<_, _>>()?;
    if chain.is_empty() {
        Err(pem::Error::NoItemsFound)
    } else {
        Ok(chain)
    }
}
