//! A disk that is really full: a small tmpfs; mounting it requires root.

use std::time::Duration;

use crate::support::*;
use groupware_server::{Config, Data, Server};
use plimsoll_tests::tmpfs::Tmpfs;

#[test]
fn attachments_on_a_full_disk_are_refused_and_nothing_is_lost() {
    let Some(disk) = Tmpfs::mount("32m") else {
        println!("SKIPPED: mounting a tmpfs is not permitted here");
        return;
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 6 << 20]).unwrap();
    let mut config = Config::new(Data::Folder(disk.path().join("data")));
    config.admin_token = Some(TOKEN.into());
    config.limits.sweep_interval = Duration::from_millis(50);
    let server = Server::start(config).unwrap();
    let auth = basic("ada", &register(&server, &["ada"]).remove(0));
    let call = |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        let mut all = vec![("authorization", &*auth)];
        all.extend_from_slice(headers);
        send(server.address(), method, path, &all, body)
    };
    let json = [("content-type", "application/json")];
    let made = call("POST", "/docs/ada/notes/api/data/documents", &json, b"{}");
    let document = made.header("location").unwrap().to_owned();
    let unid = document.rsplit('/').next().unwrap();
    let content = |number: u8| vec![number; 2_000_000];
    let path = |number: u8| format!("{document}/Body/{number}");

    // An upload reserves its room when it is created.
    let create = |length: &str| {
        let headers = [
            ("tus-resumable", "1.0.0"),
            ("upload-length", length),
            ("upload-metadata", "filename dXBsb2Fk"),
        ];
        call(
            "POST",
            &format!("/tus/ada/notes/{unid}/Body"),
            &headers,
            b"",
        )
    };
    let upload = create("2000000").header("location").unwrap().to_owned();
    let patch = |offset: &str, body: &[u8]| {
        let headers = [
            ("tus-resumable", "1.0.0"),
            ("content-type", "application/offset+octet-stream"),
            ("upload-offset", offset),
        ];
        call("PATCH", &upload, &headers, body)
    };
    assert_eq!(patch("0", &content(200)[..1_000_000]).status, 204);

    let mut taken = Vec::new();
    let refused = (0..20).find(|number| {
        let reply = call("PUT", &path(*number), &[], &content(*number));
        match reply.status {
            201 => taken.push(*number),
            _ => assert_error(&reply, 507),
        }
        reply.status != 201
    });
    assert!(
        taken.len() > 4 && refused.is_some(),
        "{taken:?} {refused:?}"
    );
    assert_error(&create("20000000"), 507);
    let intact = || {
        for number in &taken {
            let reply = call("GET", &path(*number), &[], b"");
            assert!(
                reply.status == 200 && reply.body == content(*number),
                "{number}"
            );
        }
    };
    intact();
    let last = patch("1000000", &content(200)[1_000_000..]);
    assert!(matches!(last.status, 204 | 507), "{last:?}");

    std::fs::remove_file(&ballast).unwrap();
    if last.status == 507 {
        // It is complete, or continues at its offset.
        let head = call("HEAD", &upload, &[("tus-resumable", "1.0.0")], b"");
        assert_eq!(head.status, 200, "{head:?}");
        let offset = head.header("upload-offset").unwrap();
        if offset != "2000000" {
            assert_eq!(patch(offset, &content(200)[1_000_000..]).status, 204);
        }
    }
    assert!(call("GET", &format!("{document}/Body/upload"), &[], b"").body == content(200));
    wait_for("the room to be seen", || {
        call("PUT", &path(99), &[], &content(99)).status < 300
    });
    intact();
    // Deletion frees room.
    assert_eq!(call("DELETE", &path(taken[0]), &[], b"").status, 200);
    assert_eq!(call("DELETE", &path(taken[1]), &[], b"").status, 200);
    wait_for("the sweep", || {
        let reply = call("PUT", &path(100), &[], &content(100));
        let other = call("PUT", &path(101), &[], &content(101));
        reply.status < 300 && other.status < 300
    });
    server.shutdown();
    let checked = groupware_server::check(&disk.path().join("data")).unwrap();
    assert!(checked.wrong.is_empty(), "{:?}", checked.wrong);
}
