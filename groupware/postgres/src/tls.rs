//! TLS to a database: rustls, always with a verified server certificate.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;

/// Opens connections to the hosts of one database.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Trusts the authorities of a file, or this machine's.
    pub(crate) fn trusting(root_cert: Option<&Path>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        match root_cert {
            Some(file) => {
                let wrong = |error: String| {
                    let words = format!("{}: {error}", file.display());
                    io::Error::new(io::ErrorKind::InvalidData, words)
                };
                let found = CertificateDer::pem_file_iter(file);
                for certificate in found.map_err(|error| wrong(error.to_string()))? {
                    let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                    let added = roots.add(certificate);
                    added.map_err(|error| wrong(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(wrong("there is no certificate in it".to_owned()));
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
            }
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Spoken;
    type TlsConnect = ToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<ToHost> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(ToHost(self.0.clone(), name))
    }
}

pub(crate) struct ToHost(TlsConnector, ServerName<'static>);

impl TlsConnect<Socket> for ToHost {
    type Stream = Spoken;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Spoken>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Spoken(self.0.connect(self.1, socket).await?)) })
    }
}

/// A TLS connection.
pub(crate) struct Spoken(Stream<Socket>);

impl TlsStream for Spoken {
    /// No channel binding: the certificate is verified in any case.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Spoken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Spoken {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
