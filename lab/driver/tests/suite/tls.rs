//! `https`: trusted roots, refused strangers, sessions resumed.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Make, Peer, Told, ms, run_until};
use lab_driver::{ErrorClass, TlsOptions};
use lab_workload::Wait;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

struct Secure {
    port: u16,
    pem: Vec<u8>,
    resumed: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    accepts: Option<std::thread::JoinHandle<()>>,
}

impl Secure {
    /// Answers one request per connection when `close`, else as many as come.
    fn start(close: bool) -> Self {
        let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let pem = key.cert.pem().into_bytes();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = rustls_pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private.into())
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let resumed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&resumed);
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let accepts = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut peer = Peer::new(
                    StreamOwned::new(connection, stream),
                    0,
                    Arc::new(Mutex::default()),
                );
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
            stop,
            accepts: Some(accepts),
        }
    }

    fn drive(&self, host: &str, tls: TlsOptions, times: u64) -> Told {
        let base = format!("https://{host}:{}", self.port).parse().unwrap();
        let mut drive = Make::new(&[])
            .step(Wait::Constant(ms(5)), "GET /")
            .drive(&base);
        drive.tls = tls;
        drive.limits.failure_pause = ms(5);
        run_until(drive, |told| told.done() >= times)
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
        extra_roots_pem: vec![server.pem.clone()],
        insecure: false,
    };
    let told = server.drive("localhost", tls, 5);
    assert_eq!(
        (told.summary.errors, told.summary.connects),
        (0, 1),
        "{:?}",
        told.examples
    );
    assert_eq!(
        told.windows.iter().map(|w| w.steps[0].bytes).sum::<u64>() % 6,
        0
    );
}

#[test]
fn a_stranger_is_refused_unless_asked_otherwise() {
    let server = Secure::start(false);
    let told = server.drive("localhost", TlsOptions::default(), 2);
    assert!(told.errors(ErrorClass::Connect) >= 2);
    assert!(
        told.examples[0].1.contains("certificate"),
        "{:?}",
        told.examples
    );
    let tls = TlsOptions {
        extra_roots_pem: vec![server.pem.clone()],
        insecure: false,
    };
    let told = server.drive("127.0.0.1", tls, 2);
    assert!(
        told.errors(ErrorClass::Connect) >= 2,
        "the certificate is for another name"
    );
    let told = server.drive(
        "127.0.0.1",
        TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        },
        2,
    );
    assert_eq!(told.summary.errors, 0, "{:?}", told.examples);
}

#[test]
fn sessions_are_resumed_on_new_connections() {
    let server = Secure::start(true);
    let tls = TlsOptions {
        extra_roots_pem: vec![server.pem.clone()],
        insecure: false,
    };
    let told = server.drive("localhost", tls, 5);
    assert_eq!(told.summary.errors, 0, "{:?}", told.examples);
    assert!(server.resumed.load(Ordering::SeqCst) >= 3);
}

#[test]
fn a_root_file_without_a_certificate_is_an_error() {
    let base = "https://127.0.0.1:1".parse().unwrap();
    let mut drive = Make::new(&[]).step(Wait::None, "GET /").drive(&base);
    drive.tls.extra_roots_pem = vec![b"nothing".to_vec()];
    let (events, _received) = std::sync::mpsc::sync_channel(1);
    let error = lab_driver::Driver::start(drive, events).unwrap_err();
    assert_eq!(
        error.to_string(),
        "TLS can't be set up: a root file holds no certificate"
    );
}
