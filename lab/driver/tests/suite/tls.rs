//! `https`: trusted roots, rejected unknown servers, resumed sessions.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Make, Observed, Peer, Seen, ms, run, run_until};
use crate::parallel::page;
use crate::uploads::{body, upload};
use lab_client::{Identity, PemFile};
use lab_driver::{Assignment, ErrorClass, Offer, Phase, TlsOptions};
use lab_workload::{LoadKind, Wait};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

/// A certificate and its key.
struct Signed {
    certificate: rcgen::Certificate,
    parameters: rcgen::CertificateParams,
    key: rcgen::KeyPair,
}

impl Signed {
    fn parameters(names: &[&str], authority: bool) -> rcgen::CertificateParams {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut parameters = rcgen::CertificateParams::new(names).unwrap();
        if authority {
            parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        parameters
    }

    fn itself(names: &[&str], authority: bool) -> Self {
        let parameters = Self::parameters(names, authority);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        Self {
            certificate,
            parameters,
            key,
        }
    }

    fn signs(&self, names: &[&str]) -> Self {
        let parameters = Self::parameters(names, false);
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::Issuer::from_params(&self.parameters, &self.key);
        let certificate = parameters.signed_by(&key, &issuer).unwrap();
        Self {
            certificate,
            parameters,
            key,
        }
    }

    fn pem(&self) -> PemFile {
        pem("certificate.pem", &self.certificate.pem())
    }

    fn identity(&self) -> Identity {
        Identity {
            certificates: self.pem(),
            key: pem("key.pem", &self.key.serialize_pem()),
        }
    }
}

fn pem(name: &str, text: &str) -> PemFile {
    PemFile {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

struct Secure {
    port: u16,
    /// The server's own certificate.
    pem: PemFile,
    resumed: Arc<AtomicUsize>,
    log: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    accepts: Option<std::thread::JoinHandle<()>>,
}

impl Secure {
    /// Starts a server with a self-signed certificate for localhost. It serves one request per connection if `close`,
    /// else any number.
    fn start(close: bool) -> Self {
        Self::with(&Signed::itself(&["localhost"], false), None, close)
    }

    /// Starts a server with the certificate `own`. It requires a client certificate signed by `clients`, if given.
    fn with(own: &Signed, clients: Option<&Signed>, close: bool) -> Self {
        let pem = own.pem();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = rustls_pki_types::PrivatePkcs8KeyDer::from(own.key.serialize_der());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(authority.certificate.der().clone()).unwrap();
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder
            .with_single_cert(vec![own.certificate.der().clone()], private.into())
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let resumed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&resumed);
        let log = Arc::<Mutex<Vec<Seen>>>::default();
        let seen = Arc::clone(&log);
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let accepts = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let stream = StreamOwned::new(connection, stream);
                let mut peer = Peer::new(stream, 0, Arc::clone(&seen));
                let mut answered = 0;
                while (answered == 0 || !close) && peer.request().is_some() {
                    answered += usize::from(peer.ok("secret"));
                }
                if peer.stream.conn.handshake_kind() == Some(HandshakeKind::Resumed) {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
                peer.stream.conn.send_close_notify();
                let _gone = peer.stream.conn.complete_io(&mut peer.stream.sock);
            }
        });
        Self {
            port,
            pem,
            resumed,
            log,
            stop,
            accepts: Some(accepts),
        }
    }

    fn drive(&self, host: &str, tls: TlsOptions, times: u64) -> Observed {
        run_until(self.load(host, tls), |observed| observed.done() >= times)
    }

    fn load(&self, host: &str, tls: TlsOptions) -> Assignment {
        let base = format!("https://{host}:{}", self.port).parse().unwrap();
        let mut drive = Make::new(&[])
            .step(Wait::Constant(ms(5)), "GET /")
            .drive(&base);
        drive.tls = tls;
        drive.limits.failure_pause = ms(5);
        drive
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.accepts.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

#[test]
fn a_root_of_ones_own_is_trusted_and_the_connection_kept() {
    let server = Secure::start(false);
    let tls = TlsOptions {
        authorities: vec![server.pem.clone()],
        ..TlsOptions::default()
    };
    let observed = server.drive("localhost", tls, 5);
    assert_eq!(
        (observed.summary.errors, observed.summary.connects),
        (0, 1),
        "{:?}",
        observed.examples
    );
    let handshakes = observed.windows.iter();
    let handshakes = handshakes.map(|w| w.steps[0].times.phases[Phase::Tls as usize].len());
    assert_eq!(handshakes.sum::<u64>(), 1);
    assert_eq!(
        observed
            .windows
            .iter()
            .map(|w| w.steps[0].counts.bytes)
            .sum::<u64>()
            % 6,
        0
    );
}

#[test]
fn files_go_out_byte_for_byte() {
    let server = Secure::start(false);
    let mut drive = server.load("localhost", TlsOptions::default());
    drive.tls.authorities = vec![server.pem.clone()];
    let make = upload(Make::new(&[]), "POST /up");
    drive.workload = make.workload.into();
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let log = server.log.lock().unwrap();
    assert!(log.len() >= 3 && log.iter().all(|seen| seen.bytes == body(0)));
}

#[test]
fn a_stranger_is_refused_unless_asked_otherwise() {
    let server = Secure::start(false);
    let observed = server.drive("localhost", TlsOptions::default(), 2);
    assert!(observed.errors(ErrorClass::Connect) >= 2);
    assert!(
        observed.examples[0].1.contains("certificate"),
        "{:?}",
        observed.examples
    );
    let tls = TlsOptions {
        authorities: vec![server.pem.clone()],
        ..TlsOptions::default()
    };
    let observed = server.drive("127.0.0.1", tls, 2);
    assert!(
        observed.errors(ErrorClass::Connect) >= 2,
        "the certificate is for another name"
    );
    let observed = server.drive(
        "127.0.0.1",
        TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        },
        2,
    );
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}

#[test]
fn sessions_are_resumed_on_new_connections() {
    let server = Secure::start(true);
    let tls = TlsOptions {
        authorities: vec![server.pem.clone()],
        ..TlsOptions::default()
    };
    let observed = server.drive("localhost", tls, 5);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert!(server.resumed.load(Ordering::SeqCst) >= 3);
}

#[test]
fn where_the_server_chooses_http_1_requests_at_the_same_time_have_connections_of_their_own() {
    let server = Secure::start(true);
    let mut drive = server.load("localhost", TlsOptions::default());
    drive.tls.authorities = vec![server.pem.clone()];
    drive.protocol.offer = Offer::Auto;
    drive.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    let make = Make::new(&[]);
    let requests = (0..8).map(|number| make.request(&format!("GET /{number}")));
    let requests = requests.collect();
    drive.workload = page(make, requests, 0, None).workload.into();
    let observed = run(drive);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(
        (observed.summary.connects, observed.summary.http2_connects),
        (8, 0)
    );
}

#[test]
fn a_root_file_without_a_certificate_is_an_error() {
    let base = "https://127.0.0.1:1".parse().unwrap();
    let mut drive = Make::new(&[]).step(Wait::None, "GET /").drive(&base);
    drive.tls.authorities = vec![pem("ca.pem", "nothing")];
    let (events, _received) = std::sync::mpsc::sync_channel(1);
    let error = lab_driver::Driver::start(drive, events).unwrap_err();
    assert_eq!(
        error.to_string(),
        "TLS can't be set up: ca.pem holds no certificate: a PEM file is needed, with a line \
         -----BEGIN CERTIFICATE-----"
    );
}

/// Returns the first example of a failure.
#[track_caller]
fn said(observed: &Observed) -> &str {
    assert!(observed.errors(ErrorClass::Connect) > 0 || observed.errors(ErrorClass::Reset) > 0);
    &observed.examples[0].1
}

#[test]
fn who_is_not_trusted_is_told_with_the_cure() {
    let server = Secure::start(false);
    let observed = server.drive("localhost", TlsOptions::default(), 1);
    let cure = "give it as `tls: { ca: FILE }`, or take any with `tls: { insecure: true }`";
    assert!(said(&observed).ends_with(cure), "{:?}", observed.examples);
    let tls = TlsOptions {
        authorities: vec![server.pem.clone()],
        ..TlsOptions::default()
    };
    let observed = server.drive("127.0.0.1", tls.clone(), 1);
    let name = "is for localhost, not for 127.0.0.1: say `tls: { server_name: … }`";
    assert!(said(&observed).contains(name), "{:?}", observed.examples);
    let named = TlsOptions {
        server_name: Some("localhost".to_owned()),
        ..tls
    };
    let observed = server.drive("127.0.0.1", named, 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}

#[test]
fn a_certificate_that_signed_itself_as_an_authority_is_taken_when_it_is_given() {
    // The kind of certificate that `openssl req -x509` creates, and that no chain allows for a server.
    let own = Signed::itself(&["localhost"], true);
    let server = Secure::with(&own, None, false);
    let tls = TlsOptions {
        authorities: vec![own.pem()],
        ..TlsOptions::default()
    };
    let observed = server.drive("localhost", tls.clone(), 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    // For its own name only.
    let observed = server.drive("127.0.0.1", tls, 1);
    assert!(
        said(&observed).contains("is for localhost"),
        "{:?}",
        observed.examples
    );
}

#[test]
fn users_show_their_certificate_to_who_asks_for_it() {
    let authority = Signed::itself(&[], true);
    let server = Secure::with(&authority.signs(&["localhost"]), Some(&authority), false);
    let tls = TlsOptions {
        authorities: vec![authority.pem()],
        ..TlsOptions::default()
    };
    let observed = server.drive("localhost", tls.clone(), 1);
    let cure = "name one with `tls: { certificate: FILE, key: FILE }`";
    assert!(said(&observed).contains(cure), "{:?}", observed.examples);
    let shown = TlsOptions {
        identity: Some(authority.signs(&["user"]).identity()),
        ..tls
    };
    let observed = server.drive("localhost", shown, 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}

#[test]
fn a_key_that_is_none_or_anothers_is_an_error() {
    let server = Secure::start(false);
    let own = Signed::itself(&["user"], false);
    let wrong = |key: PemFile, expected: &str| {
        let certificates = own.pem();
        let tls = TlsOptions {
            identity: Some(Identity { certificates, key }),
            ..TlsOptions::default()
        };
        let (events, _received) = std::sync::mpsc::sync_channel(1);
        let drive = server.load("localhost", tls);
        let error = lab_driver::Driver::start(drive, events).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    wrong(pem("key.pem", "none"), "key.pem holds no private key");
    let anothers = Signed::itself(&["user"], false).identity().key;
    wrong(anothers, "key.pem can't be used: with certificate.pem: ");
}

#[test]
fn a_host_is_where_the_study_says() {
    let server = Secure::with(
        &Signed::itself(&["staging.example.org"], false),
        None,
        false,
    );
    let tls = TlsOptions {
        authorities: vec![server.pem.clone()],
        ..TlsOptions::default()
    };
    let mut drive = server.load("staging.example.org", tls);
    drive.resolve = vec![("staging.example.org".to_owned(), [127, 0, 0, 1].into())];
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}
