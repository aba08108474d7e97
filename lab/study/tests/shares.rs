//! Shared connections: the users that share them, the version of HTTP, and rejected combinations.

use std::io;

use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, HttpSpec, HttpVersion, load_study};

/// A study and its workload, in a protocol each.
struct Folder {
    protocol: &'static str,
    request: &'static str,
    system: &'static str,
    load: &'static str,
}

const CALLS: Folder = Folder {
    protocol: "{ name: grpc, descriptors: notes.proto }",
    request: "notes.Notes/Say",
    system: "attach: { url: grpc://127.0.0.1:50051 }",
    load: "users: 100, hold: 10s, connections: 8",
};

const NOTES: &str = r#"
    syntax = "proto3";
    package notes;
    message Note { string text = 1; }
    service Notes { rpc Say(Note) returns (Note); }
"#;

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let Self {
            protocol,
            request,
            system,
            load,
        } = self;
        Ok(match path.rsplit('.').next() {
            Some("proto") => NOTES.to_owned(),
            _ if path.ends_with(".study.yaml") => format!(
                "study: s\ntitle: S\nworkload: w\nsystem: {{ {system} }}\nload: {{ {load} }}\n"
            ),
            _ => format!(
                "workload: w\nprotocol: {protocol}\nsession:\n  steps:\n    \
                 - {{ step: a, wait: 1s, request: {request} }}\n"
            ),
        }
        .into_bytes())
    }
}

/// The protocol settings of a study's users; or the error, in a line.
fn spoken(of: &Folder) -> Result<HttpSpec, String> {
    let loaded = load_study("s.study.yaml", of, &[]);
    let study = loaded
        .map_err(|error| format!("{:?}", error.problems()))?
        .study;
    let options = PlanOptions {
        speed: 1.0,
        seed: None,
    };
    let plan = plan(&study, &options).map_err(|error| error.to_string())?;
    Ok(plan.trials[0].reach.http)
}

fn over_two(shared: u32) -> Result<HttpSpec, String> {
    Ok(HttpSpec {
        version: HttpVersion::Two,
        shared: Some(shared),
    })
}

#[test]
fn calls_share_connections_of_http_2_whoever_says_so() {
    assert_eq!(spoken(&CALLS), over_two(8));
    let by_system = Folder {
        system: "attach: { url: grpc://127.0.0.1:50051 }, http: { version: 2, share: machine }",
        load: "users: 100, hold: 10s",
        ..CALLS
    };
    assert_eq!(spoken(&by_system), over_two(1));
    let each = Folder {
        load: "users: 100, hold: 10s",
        ..CALLS
    };
    assert_eq!(spoken(&each), Ok(HttpSpec::default()));
}

#[test]
fn who_says_one_thing_after_the_other_shares_nothing() {
    let redis = Folder {
        protocol: "redis",
        request: "PING",
        system: "attach: { url: redis://127.0.0.1:6379 }",
        ..CALLS
    };
    let refused = spoken(&redis).unwrap_err();
    assert!(refused.contains("over HTTP and gRPC alone"), "{refused}");
    let by_system = Folder {
        system: "attach: { url: redis://127.0.0.1:6379 }, http: { version: 2, share: machine }",
        load: "users: 100, hold: 10s",
        ..redis
    };
    let refused = spoken(&by_system).unwrap_err();
    assert!(refused.contains("speak redis, not HTTP"), "{refused}");
}
