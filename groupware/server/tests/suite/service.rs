//! Starting, stopping, limits, TLS, metrics.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::*;
use groupware_server::{Config, Data, DataError, Networks, ServeError, Server, TlsFiles};
use groupware_store::{Batch, Store, StoreError, StoreOptions};
use serde_json::json;

fn start_with(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = config();
    change(&mut config);
    Server::start(config).unwrap()
}

#[test]
fn three_thousand_users_register_in_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = |config: &mut Config| config.data = Data::Folder(folder.path().into());
    let names: Vec<_> = (0..3000).map(|number| format!("user{number:05}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let server = start_with(on_disk);
    let passwords = register(&server, &names);
    assert_eq!(passwords.len(), 3000);
    server.shutdown();
    // They exist after a restart.
    let server = start_with(on_disk);
    for number in [0, 1234, 2999] {
        let auth = basic(names[number], &passwords[number]);
        let path = format!("/mail/{}/api/calendar/events", names[number]);
        let reply = send(
            server.address(),
            "GET",
            &path,
            &[("authorization", &auth)],
            b"",
        );
        assert_eq!(reply.status, 200, "{reply:?}");
    }
}

#[test]
fn registering_says_what_is_wrong_with_it() {
    let server = start();
    let post = |body| admin(&server, "POST", "/admin/users", body);
    let bad = |body| {
        let reply = post(body);
        assert_error(&reply, 400);
        reply.json()["message"].as_str().unwrap().to_owned()
    };
    assert!(bad(json!({ "users": [{ "name": "a b" }] })).contains("letters"));
    assert!(bad(json!({ "users": [{ "name": "Ada" }, { "name": "ada" }] })).contains("twice"));
    assert!(bad(json!({ "user": [] })).contains("unknown field"));
    assert!(bad(json!(null)).contains("Empty"));
    assert!(bad(json!({ "users": [], "mailbox_pad_bytes": u64::MAX })).contains("at most"));
    // Registering again keeps users, and sets a new password if requested.
    let reply = post(json!({ "users": [{ "name": "Ada" }] }));
    assert_eq!(
        reply.json(),
        json!({ "users": [{ "name": "Ada", "created": true }] })
    );
    let reply = post(json!({ "users": [{ "name": "ada" }] }));
    assert_eq!(
        reply.json(),
        json!({ "users": [{ "name": "Ada", "created": false }] })
    );
    let old = register(&server, &["ada"]).remove(0);
    let new = register(&server, &["ada"]).remove(0);
    let status = |password: &str| {
        let auth = basic("ada", password);
        let path = "/mail/ada/api/calendar/events";
        send(
            server.address(),
            "GET",
            path,
            &[("authorization", &auth)],
            b"",
        )
        .status
    };
    assert_eq!((status(&old), status(&new)), (401, 200));
}

#[test]
fn mailboxes_are_padded() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(|config| {
        config.data = Data::Folder(folder.path().into());
        config.mailbox_pad_bytes = 3 << 20;
    });
    register(&server, &["ada", "eve"]);
    server.shutdown();
    let database = std::fs::metadata(folder.path().join("groupware.sqlite"))
        .unwrap()
        .len();
    assert!((6 << 20..9 << 20).contains(&database), "{database}");
}

#[test]
fn padding_that_was_cut_short_is_made_up_by_registering_again() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = |config: &mut Config| {
        config.data = Data::Folder(folder.path().into());
        config.mailbox_pad_bytes = 9 << 20;
    };
    register(&start_with(on_disk), &["ada"]);
    // As after a kill between two batches of filler.
    let records = |cut: bool| {
        let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
        let mut count = 0;
        let scan = store.read(|snapshot| {
            snapshot.scan("ada", b"pad/", Some(b"pad0"), usize::MAX, &mut |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })
        });
        scan.map_err(|error: StoreError| error).unwrap();
        if cut {
            let from = [b"pad/", &(4_u64 << 20).to_be_bytes()[..]].concat();
            let mut batch = Batch::new();
            batch.delete_range("ada", from, "pad0");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            runtime.block_on(store.commit(batch)).unwrap();
        }
        store.close_blocking();
        count
    };
    assert_eq!(records(true), 144);
    assert_eq!(records(false), 64);
    register(&start_with(on_disk), &["ada"]);
    assert_eq!(records(false), 144);
}

#[test]
fn bodies_heads_and_header_counts_are_limited() {
    let server = start();
    let ada = basic("ada", &register(&server, &["ada"]).remove(0));
    let events = "/mail/ada/api/calendar/events";
    let post = |headers: &[(&str, &str)], body: &[u8]| {
        let mut all = vec![
            ("authorization", &*ada),
            ("content-type", "application/json"),
        ];
        all.extend(headers);
        send(server.address(), "POST", events, &all, body)
    };
    let log_in = |size: usize| {
        let headers = [("content-type", "application/json")];
        send(
            server.address(),
            "POST",
            "/login",
            &headers,
            &vec![b' '; size],
        )
    };
    assert_error(&log_in(64 << 10), 400);
    assert_error(&log_in((64 << 10) + 1), 413);
    assert_error(&post(&[], &vec![b' '; 100 << 10]), 400);
    assert_error(&post(&[], &vec![b' '; (1 << 20) + 1]), 413);
    assert_eq!(post(&[("x", &"y".repeat(40 << 10))], b"{}").status, 431);
    let many: Vec<_> = (0..100).map(|_| ("x", "y")).collect();
    assert_eq!(post(&many, b"{}").status, 431);
    // A body of unknown length is limited too.
    let mut stream = connect(server.address());
    let head = format!(
        "POST {events} HTTP/1.1\r\nhost: localhost\r\nauthorization: {ada}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n", &vec![b'x'; 1 << 16][..], b"\r\n"].concat();
    for _ in 0..20 {
        // The server may close the connection before all is sent.
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    assert_error(&read_reply(&mut stream).unwrap(), 413);
}

#[test]
fn what_is_not_there_and_not_allowed() {
    let server = start();
    for path in [
        "/mail",
        "/mail/ada",
        "/mail/ada/api",
        "/..%2f..%2fetc/passwd",
        "/admin",
    ] {
        assert_error(&send(server.address(), "GET", path, &[], b""), 404);
    }
    assert_error(&send(server.address(), "DELETE", "/healthz", &[], b""), 405);
    let reply = send(server.address(), "GET", "/healthz", &[], b"");
    assert_eq!(
        (reply.status, &reply.json()),
        (200, &json!({ "status": "ok" }))
    );
}

#[test]
fn slow_heads_and_surplus_connections_are_cut_off() {
    let server = start_with(|config| {
        config.limits.head_timeout = Duration::from_millis(500);
        config.limits.connections = Some(4);
    });
    let mut slow = connect(server.address());
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost").unwrap();
    let mut silent = connect(server.address());
    let mut rest = Vec::new();
    assert_eq!(slow.read_to_end(&mut rest).unwrap(), 0, "{rest:?}");
    assert_eq!(silent.read_to_end(&mut rest).unwrap(), 0, "{rest:?}");

    // Idle connections stay open after a response, within the bound on their number.
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let ask = || {
        // The head arrives at once, unless this machine is slow.
        let mut stream = connect(server.address());
        let _cut_off = stream.write_all(request);
        let reply = read_reply(&mut stream);
        (stream, reply.map(|reply| reply.status))
    };
    let mut held = Vec::new();
    wait_for("answers to four", || {
        held.extend(Some(ask()).filter(|(_, status)| *status == Some(200)));
        held.len() == 4
    });
    assert_eq!(ask().1, None);
    drop(held.pop());
    wait_for("a free place", || ask().1 == Some(200));
    for (stream, _) in &mut held {
        stream.write_all(request).unwrap();
        assert_eq!(
            read_reply(&mut *stream).unwrap().status,
            200,
            "idle, but not cut off"
        );
    }
}

#[test]
fn strangers_make_room_for_each_other_and_users_stay() {
    let server = start_with(|config| {
        config.limits.connections = Some(8);
        // Untrusted clients; all tests have one address, which is then untrusted.
        config.trusted = Networks::default();
    });
    let ada = basic("ada", &register(&server, &["ada"]).remove(0));
    let mut users = connect(server.address());
    let ask = format!(
        "GET /mail/ada/api/mail/inbox HTTP/1.1\r\nhost: localhost\r\nauthorization: {ada}\r\n\r\n"
    );
    users.write_all(ask.as_bytes()).unwrap();
    assert_eq!(read_reply(&mut users).unwrap().status, 200);
    let half_sent = || {
        let mut stream = connect(server.address());
        let _cut_off = stream.write_all(b"GET /healthz HTTP/1.1\r\n");
        stream
    };
    // Half of all connections are for unknown clients, however many others arrive.
    let held: Vec<_> = (0..20).map(|_| half_sent()).collect();
    wait_for("others are turned away", || {
        read_reply(half_sent()).is_none()
    });
    users.write_all(ask.as_bytes()).unwrap();
    assert_eq!(read_reply(&mut users).unwrap().status, 200);
    drop(held);
}

#[test]
fn slow_bodies_time_out_and_hold_up_nobody() {
    let server = start_with(|config| {
        config.http_threads = Some(1);
        config.limits.body_timeout = Duration::from_millis(300);
    });
    let mut slow = connect(server.address());
    slow.write_all(b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nuser")
        .unwrap();
    for _ in 0..3 {
        assert_eq!(
            send(server.address(), "GET", "/healthz", &[], b"").status,
            200
        );
    }
    assert_error(&read_reply(&mut slow).unwrap(), 408);
}

#[test]
fn half_sent_small_bodies_hold_up_nobody() {
    let server = start_with(|config| config.limits.body_timeout = Duration::from_secs(600));
    let password = register(&server, &["ada"]).remove(0);
    let head = "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let announced = format!("{head}content-length: 65536\r\n\r\nu");
    // Together they announce more than all small bodies may have.
    let half_sent: Vec<_> = (0..1100)
        .map(|_| {
            let mut stream = connect(server.address());
            stream.write_all(announced.as_bytes()).unwrap();
            stream
        })
        .collect();
    wait_for("all are open", || {
        let metrics = admin(&server, "GET", "/metrics", serde_json::Value::Null);
        let metrics = String::from_utf8(metrics.body).unwrap();
        metrics.contains("plimsoll_http_connections 1101")
    });
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = format!("username=ada&password={password}");
    let reply = send(server.address(), "POST", "/login", &form, body.as_bytes());
    assert_eq!(reply.status, 200, "{reply:?}");
    drop(half_sent);
}

#[test]
fn slow_large_bodies_hold_up_no_others() {
    let server = start();
    let ada = basic("ada", &register(&server, &["ada"]).remove(0));
    let path = "/mail/ada/api/calendar/events";
    let size = 100 << 10;
    let slow: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = connect(server.address());
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {ada}\r\ncontent-length: {size}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let headers = [
        ("authorization", &*ada),
        ("content-type", "application/json"),
    ];
    let reply = send(server.address(), "POST", path, &headers, &vec![b' '; size]);
    assert_error(&reply, 400);
    drop(slow);
}

#[test]
fn strangers_send_no_large_bodies() {
    let server = start();
    for (path, status) in [
        ("/mail/ada/api/calendar/events", 401),
        ("/login", 413),
        ("/x", 401),
    ] {
        let mut stream = connect(server.address());
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 70000\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // The response doesn't wait for a body that never arrives.
        assert_error(&read_reply(&mut stream).unwrap(), status);
    }
}

#[test]
fn who_still_sends_gets_the_answer() {
    let server = start();
    let mut stream = connect(server.address());
    let head = b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 70000\r\n\r\n";
    stream.write_all(head).unwrap();
    assert_error(&read_reply(&mut stream).unwrap(), 401);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    // Responded, and closing; bytes in flight cause no reset.
    for _ in 0..10 {
        stream.write_all(&[b' '; 7000]).unwrap();
    }
}

#[test]
fn strangers_send_no_bodies_to_the_admin_interface() {
    let server = start();
    let mut stream = connect(server.address());
    let head = "POST /admin/users HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // The response doesn't wait for a body that never arrives.
    assert_error(&read_reply(&mut stream).unwrap(), 401);
    let users = json!({ "users": [], "filler": "x".repeat(9_000_000) });
    assert_error(&admin(&server, "POST", "/admin/users", users), 400);
}

#[test]
fn admin_requests_take_the_time_they_need() {
    let server = start_with(|config| {
        config.limits.request_timeout = Duration::from_millis(1);
        config.mailbox_pad_bytes = 9 << 20;
    });
    assert_eq!(register(&server, &["ada", "eve", "bob"]).len(), 3);
}

#[test]
fn idle_connections_are_closed() {
    let server = start_with(|config| {
        config.limits.head_timeout = Duration::from_secs(1);
        config.limits.idle_timeout = Duration::from_millis(100);
    });
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().status, 200);
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap(), 0, "{rest:?}");
}

#[test]
fn a_stopping_server_answers_what_is_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(|config| config.data = Data::Folder(folder.path().into()));
    let address = server.address();
    let password = register(&server, &["ada"]).remove(0);
    // The server is stopped in the middle of a request.
    let body = json!({ "username": "ada", "password": password }).to_string();
    let (first, second) = body.as_bytes().split_at(10);
    let mut stream = connect(address);
    let head = format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         expect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Proves that the server has the head.
    let mut goes_on = [0; 25];
    stream.read_exact(&mut goes_on).unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(first).unwrap();
    let mut idle = connect(address);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert_eq!(read_reply(&mut idle).unwrap().status, 200);
    let stopping = std::thread::spawn(move || server.shutdown());
    let mut rest = Vec::new();
    assert_eq!(
        idle.read_to_end(&mut rest).unwrap(),
        0,
        "idle connections are closed at once"
    );
    stream.write_all(second).unwrap();
    let reply = read_reply(&mut stream).unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    stopping.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
    // The folder is unlocked again.
    start_with(|config| config.data = Data::Folder(folder.path().into()));
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let server = start_with(|config| config.limits.shutdown_timeout = Duration::from_millis(100));
    let mut stream = connect(server.address());
    stream
        .write_all(b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n")
        .unwrap();
    wait_for("the connection", || {
        let metrics = admin(&server, "GET", "/metrics", serde_json::Value::Null);
        String::from_utf8(metrics.body)
            .unwrap()
            .contains("plimsoll_http_connections 2")
    });
    server.shutdown();
}

#[test]
fn exposed_addresses_need_tls_or_a_word() {
    let cookie = cookie_of_an_exposed_server(false);
    // The cookie is for HTTPS, which a proxy in front terminates.
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let cookie = cookie_of_an_exposed_server(true);
    assert!(!cookie.contains("; Secure"), "{cookie}");
}

/// The session cookie for clients without TLS, or behind a proxy.
fn cookie_of_an_exposed_server(plain_cookies: bool) -> String {
    let mut exposed = config();
    exposed.plain_cookies = plain_cookies;
    exposed.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = Server::start(exposed.clone()).unwrap_err();
    assert!(matches!(error, ServeError::Exposed(_)), "{error}");
    assert!(error.is_configuration());
    exposed.allow_plain_exposed = true;
    let server = Server::start(exposed).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.address().port()));
    assert_error(&send(address, "GET", "/metrics", &[], b""), 401);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(
        send(
            address,
            "GET",
            "/metrics",
            &[("authorization", &bearer)],
            b""
        )
        .status,
        200
    );
    let users = br#"{"users":[{"name":"ada"}],"app_passwords":true}"#;
    let reply = send(
        address,
        "POST",
        "/admin/users",
        &[("authorization", &bearer)],
        users,
    );
    let password = reply.json()["users"][0]["app_password"].clone();
    let body = json!({ "username": "ada", "password": password }).to_string();
    let headers = [("content-type", "application/json")];
    let reply = send(address, "POST", "/login", &headers, body.as_bytes());
    reply.header("set-cookie").unwrap().to_owned()
}

#[test]
fn metrics_need_the_token() {
    let server = start();
    let get = |headers: &[(&str, &str)]| send(server.address(), "GET", "/metrics", headers, b"");
    assert_error(&get(&[]), 401);
    for header in [
        ("forwarded", "for=192.0.2.1"),
        ("X-Forwarded-For", "192.0.2.1"),
    ] {
        assert_error(&get(&[header]), 401);
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(get(&[header, ("authorization", &bearer)]).status, 200);
    }
}

#[test]
fn settings_out_of_range_and_taken_ports_are_errors() {
    for threads in [0, 5000] {
        let mut config = config();
        config.http_threads = Some(threads);
        let error = Server::start(config).unwrap_err();
        assert!(matches!(error, ServeError::Threads(_)), "{error}");
        assert!(error.is_configuration());
    }
    let mut padded = config();
    padded.mailbox_pad_bytes = (1 << 30) + 1;
    let error = Server::start(padded).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mailbox_pad_bytes is 1073741825; it must be at most 1073741824"
    );
    assert!(error.is_configuration());
    let mut guessable = config();
    guessable.admin_token = Some("short".into());
    assert!(Server::start(guessable).unwrap_err().is_configuration());
    let server = start();
    let mut taken = config();
    taken.listen = server.address();
    let error = Server::start(taken).unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }), "{error}");
    assert!(!error.is_configuration(), "the port may be free later");
    let folder = tempfile::tempdir().unwrap();
    let _first = start_with(|config| config.data = Data::Folder(folder.path().into()));
    let mut second = config();
    second.data = Data::Folder(folder.path().into());
    let error = Server::start(second).unwrap_err();
    assert!(
        matches!(error, ServeError::Data(DataError::Open(_))),
        "{error}"
    );
    assert!(!error.is_configuration(), "the other server may stop");
}

#[test]
fn the_port_file_names_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("port");
    let server = start_with(|config| config.port_file = Some(file.clone()));
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        server.address().to_string()
    );
}

#[test]
fn eighty_threads_share_a_port() {
    let server = start_with(|config| config.http_threads = Some(80));
    let password = register(&server, &["ada"]).remove(0);
    let auth = basic("ada", &password);
    for _ in 0..200 {
        let path = "/mail/ada/api/calendar/events";
        let reply = send(
            server.address(),
            "GET",
            path,
            &[("authorization", &auth)],
            b"",
        );
        assert_eq!(reply.status, 200);
    }
}

#[test]
fn metrics_count_by_route_method_and_status() {
    let server = start();
    register(&server, &["ada"]);
    for path in [
        "/mail/ada/api/calendar/events",
        "/mail/eve/api/calendar/events",
        "/made/up",
    ] {
        send(server.address(), "GET", path, &[], b"");
    }
    let metrics = || {
        let reply = admin(&server, "GET", "/metrics", serde_json::Value::Null);
        String::from_utf8(reply.body).unwrap()
    };
    let route = "/mail/{mailbox}/api/calendar/events";
    for line in [
        &*format!(
            "plimsoll_http_request_seconds_count{{method=\"GET\",route=\"{route}\",status=\"401\"}} 2"
        ),
        "plimsoll_http_request_seconds_count{method=\"GET\",route=\"none\",status=\"404\"} 1",
        "plimsoll_http_connections 1",
        "plimsoll_store_commits_total 3",
        "plimsoll_store_group_batches_bucket{le=\"1.0\"} 3",
        "plimsoll_sessions 0",
        "# EOF",
    ] {
        // A closed connection counts until its thread has noticed.
        wait_for(line, || metrics().lines().any(|found| found == line));
    }
    let text = metrics();
    assert!(
        !text.contains("mail/eve"),
        "no path of a client's making is in the metrics"
    );
}

#[test]
fn tls_serves_and_marks_its_cookies() {
    let certified = certified();
    let server = start_with(|config| config.tls = Some(certified.files()));
    let mut client = certified.client();
    client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = Arc::new(client);
    let tls = || {
        let name = "localhost".try_into().unwrap();
        let session = rustls::ClientConnection::new(Arc::clone(&client), name).unwrap();
        rustls::StreamOwned::new(session, connect(server.address()))
    };
    let mut stream = tls();
    assert_eq!(
        exchange(&mut stream, "GET", "/healthz", &[], b"").status,
        200
    );
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));

    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", &*bearer)];
    let users = br#"{"users":[{"name":"ada"}],"app_passwords":true}"#;
    let reply = exchange(tls(), "POST", "/admin/users", &headers, users);
    let password = reply.json()["users"][0]["app_password"].clone();
    let body = json!({ "username": "ada", "password": password }).to_string();
    let headers = [("content-type", "application/json")];
    let reply = exchange(tls(), "POST", "/login", &headers, body.as_bytes());
    assert!(
        reply.header("set-cookie").unwrap().ends_with("; Secure"),
        "{reply:?}"
    );

    // A client without TLS gets no response, and disturbs no other.
    let mut plain = connect(server.address());
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert!(read_reply(&mut plain).is_none());
    assert_eq!(exchange(tls(), "GET", "/healthz", &[], b"").status, 200);
}

#[test]
fn bad_certificates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let start = |cert: &Path| {
        let mut config = config();
        config.tls = Some(TlsFiles {
            cert: cert.into(),
            key: empty.clone(),
        });
        let error = Server::start(config).unwrap_err();
        assert!(error.is_configuration());
        error.to_string()
    };
    assert!(
        start(&empty).starts_with("cannot read a certificate from "),
        "{}",
        start(&empty)
    );
    assert!(start(Path::new("/nowhere.pem")).contains("/nowhere.pem"));
}
