//! TLS to servers: trusted authorities, and the client's identity.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore};
use rustls::{Error as RustlsError, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use serde::{Deserialize, Serialize};

use lab_units::BaseUrl;
use lab_units::Offer;

/// Trust in `https` servers, and the client's certificate. The system's authorities are always trusted: those of
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` if set, and the usual ones of the web if the system has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// Further authorities. A server's own certificate is allowed too, whatever its issuer.
    pub authorities: Vec<PemFile>,
    /// The certificate for a server that requests one.
    pub identity: Option<Identity>,
    /// The SNI name of the base server, which its certificate must contain; by default the host of its URL.
    pub server_name: Option<String>,
    /// Accepts any certificate. For test systems only.
    pub insecure: bool,
}

/// A file of certificates or keys, with its name for error messages.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PemFile {
    /// The name as the study writes it.
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

/// Omits the content, which may be a key.
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
    /// A damaged file, or a file with unusable content.
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
    /// A string that is no valid server name.
    #[error("`{0}` can't be the name in a certificate")]
    ServerName(String),
    /// The system's own authorities can't be read.
    #[error("the system's authorities can't be read: {0}")]
    Store(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// The TLS setup of a load. Built on first use, and shared by all connections together with its session cache for
/// resumption. Cheap to clone.
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
    /// Returns a setup with these options. [`Tls::config`] checks them.
    #[must_use]
    pub fn new(options: TlsOptions) -> Self {
        Self::offering(options, Offer::default().alpn())
    }

    /// As [`Tls::new`], with the names of the protocols to offer (RFC 7301), in order of preference, or none. A server
    /// that knows only other protocols refuses the connection.
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

    /// Returns the configuration; reads the system's authorities when it is built.
    ///
    /// # Errors
    /// Unusable options.
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let Inner {
            options,
            alpn,
            config,
        } = &*self.inner;
        config.get_or_init(|| made(options, alpn)).clone()
    }

    /// Returns the name that the base server must prove to have.
    ///
    /// # Errors
    /// A string that is no name or address.
    pub fn name_of(&self, server: &BaseUrl) -> Result<ServerName<'static>, TlsError> {
        let name = self.inner.options.server_name.as_ref();
        server_name(name.unwrap_or(&server.host))
    }
}

/// Returns a name or address in the form of certificates.
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
        Arc::new(AcceptAnyCertificate(provider))
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

/// Returns the system's authorities, or the web's usual ones if it has none.
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

/// Trusts certificates issued by an authority, and exactly the given certificates. Test systems often use self-signed
/// certificates, which chain validation rejects.
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
            .map_err(|error| match error {
                RustlsError::InvalidCertificate(
                    CertificateError::UnknownIssuer | CertificateError::Other(_),
                ) if is_self_signed(end_entity) => {
                    let cause = OtherError(Arc::new(SelfSigned));
                    CertificateError::Other(cause).into()
                }
                other => other,
            })
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

/// A server's certificate is self-signed and not among the given ones.
#[derive(Debug, thiserror::Error)]
#[error("signed by itself")]
struct SelfSigned;

/// Returns true if a certificate has the same issuer and subject (RFC 5280, section 4.1).
fn is_self_signed(certificate: &[u8]) -> bool {
    let issued = || {
        let (_, certificate, _) = element(certificate)?;
        let (_, mut fields, _) = element(certificate)?;
        // The optional version comes first; then the serial number and the algorithm.
        if let (0xa0, _, rest) = element(fields)? {
            fields = rest;
        }
        let (_, _, rest) = element(fields)?;
        let (_, _, rest) = element(rest)?;
        let (_, issuer, rest) = element(rest)?;
        let (_, _, rest) = element(rest)?;
        let (_, subject, _) = element(rest)?;
        Some(issuer == subject)
    };
    issued().unwrap_or_default()
}

/// Returns the first element of DER: its tag, its content, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        _ => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let sum = |sum: usize, byte: &u8| Some(sum.checked_mul(256)? + usize::from(*byte));
            (length.iter().try_fold(0, sum)?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Accepts any certificate: for test systems, on request only.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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

/// Describes a connection error in words, with a hint if TLS is the cause.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return cure(tls);
    }
    let text = error.to_string();
    match error.kind() {
        io::ErrorKind::UnexpectedEof if text.contains("close_notify") => {
            "the server closed it without ending TLS (no close_notify)".to_owned()
        }
        io::ErrorKind::UnexpectedEof if text.contains("handshake") => {
            "the server closed it during the handshake of TLS".to_owned()
        }
        _ => text,
    }
}

fn cure(error: &RustlsError) -> String {
    use rustls::AlertDescription as Alert;
    const ANY: &str = "or take any with `tls: { insecure: true }`";
    match error {
        RustlsError::InvalidCertificate(wrong) => match wrong {
            CertificateError::Other(other) if other.0.is::<SelfSigned>() => format!(
                "the server's certificate is signed by itself: give it as `tls: {{ ca: FILE }}`, {ANY}"
            ),
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
                "the server's certificate is signed by an authority that is not known here: name that with \
                 `tls: {{ ca: FILE }}`, {ANY}"
            ),
            other => format!(
                "the server's certificate can't be used ({}): replace it, {ANY}",
                in_plain_words(&format!("{other:?}"))
            ),
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
        RustlsError::General(text) => text.clone(),
        other => format!("TLS failed: {}", in_plain_words(&format!("{other:?}"))),
    }
}

/// The names of an error's variants as words: `Other(OtherError(CaUsedAsEndEntity))` is “ca used as end entity”.
fn in_plain_words(variants: &str) -> String {
    let names = variants.split(|c: char| !c.is_ascii_alphanumeric());
    let telling = names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    let mut words = String::new();
    for name in telling.filter(|name| !["Other", "OtherError"].contains(name)) {
        if !words.is_empty() {
            words.push_str(": ");
        }
        for (at, c) in name.char_indices() {
            if at > 0 && c.is_ascii_uppercase() {
                words.push(' ');
            }
            words.push(c.to_ascii_lowercase());
        }
    }
    words
}

/// webpki shows a name as `DnsName("example.org")`.
fn dns(presented: &str) -> &str {
    let inner = presented
        .split_once("(\"")
        .and_then(|(_, rest)| rest.strip_suffix("\")"));
    inner.unwrap_or(presented)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(error: RustlsError) -> String {
        in_words(&io::Error::new(io::ErrorKind::InvalidData, error))
    }

    #[test]
    fn no_message_has_names_of_a_library() {
        let other = CertificateError::Other(OtherError(Arc::new(TlsError::Other(String::new()))));
        for error in [
            CertificateError::BadEncoding.into(),
            CertificateError::UnknownIssuer.into(),
            CertificateError::InvalidPurpose.into(),
            other.into(),
            RustlsError::AlertReceived(rustls::AlertDescription::HandshakeFailure),
            RustlsError::NoCertificatesPresented,
            RustlsError::PeerIncompatible(
                rustls::PeerIncompatible::ServerRejectedEncryptedClientHello(None),
            ),
        ] {
            let said = said(error);
            for sign in ["(Other", "Error", "://", "CertificateE"] {
                assert!(!said.contains(sign), "{said}");
            }
        }
        let alert = RustlsError::AlertReceived(rustls::AlertDescription::HandshakeFailure);
        assert_eq!(said(alert), "TLS failed: alert received: handshake failure");
        let eof = io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "peer closed connection without sending TLS close_notify: https://docs.rs/rustls",
        );
        let expected = "the server closed it without ending TLS (no close_notify)";
        assert_eq!(in_words(&eof), expected);
    }

    #[test]
    fn a_certificate_signed_by_itself_has_its_subject_as_issuer() {
        fn der(tag: u8, content: &[u8]) -> Vec<u8> {
            let length = u8::try_from(content.len()).unwrap();
            match length {
                0..0x80 => [&[tag, length], content].concat(),
                _ => [&[tag, 0x81, length], content].concat(),
            }
        }
        let certificate = |issuer: &[u8], subject: &[u8], version: &[u8]| {
            let parts = [
                version.to_vec(),
                der(2, &[1]),
                der(0x30, b"algorithm"),
                der(0x30, issuer),
                der(0x30, b"validity"),
                der(0x30, subject),
            ];
            der(0x30, &der(0x30, &parts.concat()))
        };
        let (long, version) = ([b'n'; 60], der(0xa0, &der(2, &[2])));
        assert!(is_self_signed(&certificate(&long, &long, &version)));
        assert!(is_self_signed(&certificate(b"me", b"me", &[])));
        assert!(!is_self_signed(&certificate(b"ca", b"me", &version)));
        let whole = certificate(&long, &long, &version);
        for end in 0..whole.len() {
            assert!(!is_self_signed(&whole[..end]));
        }
    }
}
