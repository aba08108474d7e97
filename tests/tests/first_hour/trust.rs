//! A server over TLS with an unknown authority: without a study, flags configure the trust.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_tests::program;
use plimsoll_tests::server::ServerProcess;

use super::{WORKLOAD, plimsoll, text, went_through};

/// A server with a self-signed certificate for localhost, and its address.
fn secure(folder: &Path) -> (ServerProcess, String) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    write("cert.pem", &own.cert.pem());
    write("key.pem", &own.signing_key.serialize_pem());
    write("hello.workload.yaml", WORKLOAD);
    let path = |name: &str| folder.join(name).display().to_string();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let server = ServerProcess::start_with(folder, &["--tls-cert", &cert, "--tls-key", &key]);
    let url = format!("https://localhost:{}", server.address().port());
    (server, url)
}

/// All its output, in one line.
fn said(output: &Output) -> String {
    let all = text(&output.stdout) + &text(&output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn who_is_not_trusted_is_by_a_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, url) = secure(folder.path());
    let tried = |more: &[&str]| {
        let first = ["try", "hello.workload.yaml", "--url", &url];
        let path = ["--set", "parameters.path=/healthz"];
        plimsoll(folder.path(), &[&first[..], &path, more].concat())
    };
    let refused = tried(&[]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(said(&refused).contains("`--ca FILE`"), "{}", said(&refused));
    for trusts in [&["--ca", "cert.pem"][..], &["--insecure"][..]] {
        let went = tried(trusts);
        assert!(went.status.success(), "{trusts:?}: {}", said(&went));
    }
    let page = format!("{url}/healthz");
    let of = ["bench", &page, "-c", "1", "-d", "1s"];
    // On a starved machine no user may get so far in that time.
    let refused = |_| said(&plimsoll(folder.path(), &of)).contains("`--insecure`");
    assert!(
        (0..10).any(refused),
        "{}",
        said(&plimsoll(folder.path(), &of))
    );
    went_through(&plimsoll(
        folder.path(),
        &[
            &of[..4],
            &["-d", "5s", "--ca", "cert.pem", "--http", "auto"],
        ]
        .concat(),
    ));
}

/// An address without TLS that redirects its first client to another one.
fn leading(to: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let answer = format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        // The request is short, and arrives at once.
        let asked = client.read(&mut [0; 4096]).expect("a request");
        assert!(asked > 0);
        client.write_all(answer.as_bytes()).expect("it listens");
    });
    format!("http://{address}/openapi.json")
}

#[test]
fn a_description_is_fetched_from_whom_the_machine_trusts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, url) = secure(folder.path());
    let page = format!("{url}/openapi.json");
    let import_from = |page: &str, authority: Option<&str>| {
        let mut command = Command::new(program());
        command
            .args(["import", "openapi", page])
            .current_dir(folder.path())
            .env_remove("SSL_CERT_FILE")
            // Cargo sets it for its child processes.
            .env_remove("SSL_CERT_DIR")
            .stdin(Stdio::null());
        if let Some(file) = authority {
            command.env("SSL_CERT_FILE", file);
        }
        said(&command.output().expect("it runs"))
    };
    let import = |authority: Option<&str>| import_from(&page, authority);
    assert!(
        import(None).contains("SSL_CERT_FILE=ca.pem"),
        "{}",
        import(None)
    );
    // It is trusted, and has no such page.
    let trusted = import(Some("cert.pem"));
    assert!(trusted.contains("status"), "{trusted}");
    let led = import_from(&leading(&page), Some("cert.pem"));
    assert!(led.contains("status"), "{led}");
    let unread = import(Some("missing.pem"));
    assert!(
        unread.contains("can't be read") && unread.contains("missing.pem"),
        "{unread}"
    );
}
