//! TLS to servers: whom a user trusts, and who it says that it is.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore};
use rustls::{Error as RustlsError, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use serde::{Deserialize, Serialize};

use crate::url::BaseUrl;
use crate::version::Offer;

/// How an `https` server is trusted, and what it is shown: by the system's authorities (those that
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name, where they are set; the web's usual ones where the system
/// has none), and by these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// Further authorities. A server's own certificate does, too, signed by whomever.
    pub authorities: Vec<PemFile>,
    /// What is shown to a server that asks who its client is.
    pub identity: Option<Identity>,
    /// The name that the drive's server is asked for and must prove to have; that of its URL unless
    /// said.
    pub server_name: Option<String>,
    /// Takes any certificate. For test systems only.
    pub insecure: bool,
}

/// A file of certificates or keys, with its name for who has to mend it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PemFile {
    /// As the study writes it.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A client's certificate, and the key to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The chain, its own certificate first.
    pub certificates: PemFile,
    /// The private key.
    pub key: PemFile,
}

/// A key is nobody's business.
impl fmt::Debug for PemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PemFile({:?})", self.name)
    }
}

/// Why TLS can't be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file of authorities, or of a client, without a certificate.
    #[error(
        "{0} holds no certificate: a PEM file is needed, with a line -----BEGIN CERTIFICATE-----"
    )]
    NoCertificate(String),
    /// A file that is damaged, or holds what can't be used.
    #[error("{file} can't be used: {detail}")]
    Unusable {
        /// Its name.
        file: String,
        /// Why.
        detail: String,
    },
    /// A file without a private key.
    #[error(
        "{0} holds no private key: a PEM file is needed, with a line -----BEGIN PRIVATE KEY-----"
    )]
    NoKey(String),
    /// What can't be the name of a server.
    #[error("`{0}` can't be the name in a certificate")]
    ServerName(String),
    /// The system's own authorities can't be read.
    #[error("the system's authorities can't be read: {0}")]
    Store(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// TLS as a drive speaks it: made when it is first needed, and shared by all connections with its
/// memory of sessions to resume. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    options: TlsOptions,
    alpn: &'static [&'static [u8]],
    config: OnceLock<Result<Arc<ClientConfig>, TlsError>>,
}

impl Tls {
    /// By these options, which nobody looks at before [`Tls::config`].
    #[must_use]
    pub fn new(options: TlsOptions) -> Self {
        Self::offering(options, Offer::default().alpn())
    }

    /// As [`Tls::new`], and the server is offered these protocols by their names (RFC 7301), the best first; or none:
    /// a server that knows others refuses who offers those alone.
    #[must_use]
    pub fn offering(options: TlsOptions, alpn: &'static [&'static [u8]]) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                alpn,
                config: OnceLock::new(),
            }),
        }
    }

    /// The configuration; reads the system's authorities when it is made.
    ///
    /// # Errors
    /// Options that can't be used.
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let Inner {
            options,
            alpn,
            config,
        } = &*self.inner;
        config.get_or_init(|| made(options, alpn)).clone()
    }

    /// The name that the drive's server must prove to have.
    ///
    /// # Errors
    /// What is no name or address.
    pub fn name_of(&self, server: &BaseUrl) -> Result<ServerName<'static>, TlsError> {
        let name = self.inner.options.server_name.as_ref();
        server_name(name.unwrap_or(&server.host))
    }
}

/// A name or address as certificates have it.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName(name.to_owned()))
}

fn made(options: &TlsOptions, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, TlsError> {
    let other = |error: &dyn fmt::Display| TlsError::Other(error.to_string());
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| other(&error))?;
    let verifier: Arc<dyn ServerCertVerifier> = if options.insecure {
        Arc::new(AnyServer(provider))
    } else {
        Arc::new(Trusted::new(options, provider)?)
    };
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificates, key }) => {
            let chain = certificates_of(certificates)?;
            let secret = PrivateKeyDer::from_pem_slice(key.text.as_bytes())
                .map_err(|_| TlsError::NoKey(key.name.clone()))?;
            let unusable = |error: RustlsError| TlsError::Unusable {
                file: key.name.clone(),
                detail: format!("with {}: {error}", certificates.name),
            };
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(unusable)?
        }
    };
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

fn certificates_of(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(file.text.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsError::NoCertificate(file.name.clone())),
        Err(error) => Err(TlsError::Unusable {
            file: file.name.clone(),
            detail: error.to_string(),
        }),
    }
}

/// The system's authorities, or the web's usual ones where it has none.
fn authorities() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if let (true, Some(error)) = (roots.is_empty(), found.errors.first()) {
        return Err(TlsError::Store(error.to_string()));
    }
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok(roots)
}

/// Trusts whom an authority vouches for, and the very certificates that were given: what a test
/// system shows is often signed by itself, which no chain allows.
#[derive(Debug)]
struct Trusted {
    by_chain: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn new(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let mut roots = authorities()?;
        let mut given = Vec::new();
        for file in &options.authorities {
            for certificate in certificates_of(file)? {
                let added = roots.add(certificate.clone());
                added.map_err(|error| TlsError::Unusable {
                    file: file.name.clone(),
                    detail: error.to_string(),
                })?;
                given.push(certificate);
            }
        }
        let by_chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| TlsError::Other(error.to_string()))?;
        Ok(Self { by_chain, given })
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, RustlsError> {
        if self.given.iter().any(|given| given == end_entity) {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            rustls::client::verify_server_name(&certificate, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.by_chain
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.by_chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.by_chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_chain.supported_verify_schemes()
    }
}

/// Takes any certificate: for test systems, on request only.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, RustlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// An error of a connection in words, with the cure where TLS is what went wrong.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    tls.and_then(cure).unwrap_or_else(|| error.to_string())
}

fn cure(error: &RustlsError) -> Option<String> {
    use rustls::AlertDescription as Alert;
    const ANY: &str = "or take any with `tls: { insecure: true }`";
    Some(match error {
        RustlsError::InvalidCertificate(wrong) => match wrong {
            CertificateError::NotValidForName => format!(
                "the server's certificate is for another name than it is asked for: say \
                 `tls: {{ server_name: … }}`, {ANY}"
            ),
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => {
                let presented: Vec<&str> = presented.iter().map(|name| dns(name)).collect();
                let presented = match presented.as_slice() {
                    [] => "no name at all (it needs a subjectAltName)".to_owned(),
                    names => names.join(", "),
                };
                format!(
                    "the server's certificate is for {presented}, not for {}: say \
                     `tls: {{ server_name: … }}`, {ANY}",
                    expected.to_str()
                )
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                format!("the server's certificate has expired: renew it, {ANY}")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                format!("the server's certificate is not valid yet: set the clocks right, {ANY}")
            }
            CertificateError::UnknownIssuer => format!(
                "the server's certificate is signed by itself, or by an authority that is not \
                 known here: name that with `tls: {{ ca: FILE }}`, {ANY}"
            ),
            other => format!("the server's certificate can't be used ({other}): renew it, {ANY}"),
        },
        RustlsError::AlertReceived(Alert::CertificateRequired | Alert::BadCertificate) => {
            "the server wants a certificate of its client: name one with \
             `tls: { certificate: FILE, key: FILE }`"
                .to_owned()
        }
        RustlsError::AlertReceived(Alert::NoApplicationProtocol) => {
            "the server speaks nothing of what it is offered; of HTTP, say `http: auto`, or `http: 1`"
                .to_owned()
        }
        RustlsError::InvalidMessage(_) => {
            "the server doesn't speak TLS there: write http://, or `scheme: http`".to_owned()
        }
        _ => return None,
    })
}

/// webpki shows a name as `DnsName("example.org")`.
fn dns(presented: &str) -> &str {
    let inner = presented
        .split_once("(\"")
        .and_then(|(_, rest)| rest.strip_suffix("\")"));
    inner.unwrap_or(presented)
}
