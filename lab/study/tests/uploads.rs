//! Bodies with the content of files: the sent bytes, and errors in a file, with their place.

use std::collections::BTreeMap;
use std::io;

use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, LoadError, Workload, load_study, load_workload};
use lab_workload::{Body, DEFAULT_DATES_FROM, Piece, User};

struct Folder(BTreeMap<&'static str, Vec<u8>>);

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let of = |path: &&'static str| path.strip_prefix(folder)?.strip_prefix('/');
        self.0.keys().filter_map(of).map(str::to_owned).collect()
    }
}

fn folder(request: &str) -> Folder {
    let workload = format!(
        "workload: w\nsession:\n  steps:\n    - step: Upload\n      request: POST /up\n{request}"
    );
    Folder(BTreeMap::from([
        ("w/w.workload.yaml", workload.into_bytes()),
        ("w/pictures/photo.JPG", b"\xff\xd8photo".to_vec()),
        ("w/a \"b\".bin", b"bin".to_vec()),
    ]))
}

fn load(request: &str) -> Result<Workload, LoadError> {
    load_workload("w/w.workload.yaml", &folder(request))
}

/// Content type and body, with files as their names; without the text between the parts.
fn sent(request: &str) -> String {
    let workload = load(request).unwrap_or_else(|error| panic!("{:?}", error.problems()));
    let user = User {
        index: 3,
        users: 5,
        first: 0,
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
    };
    let mut scope = workload.scope(user, &[]).expect("a user");
    let request = &workload.session.steps[0].requests[0];
    let Body::Pieces(pieces) = &request.body else {
        panic!("another body");
    };
    let mut text = String::new();
    for (name, value) in &request.headers {
        text.push_str(&format!("{name}: "));
        value.render(&mut scope, &mut text).expect("a header");
        text.push('\n');
    }
    for piece in pieces {
        match piece {
            Piece::Text(part) => part.render(&mut scope, &mut text).expect("a text"),
            Piece::File(place) => text.push_str(&format!("<{:?}>", workload.files[*place])),
        }
    }
    let text = text.replace('\r', "");
    match text.split_once("boundary=") {
        Some((_, rest)) => text.replace(rest.lines().next().expect("a boundary"), "B"),
        None => text,
    }
}

#[test]
fn a_form_with_files_is_written_as_browsers_do() {
    let form = sent(
        "      multipart:
        note: \"text {{ index }}\"
        photo: { file: pictures/photo.JPG }
        \"o\\\"dd\": { file: \"a \\\"b\\\".bin\", name: \"x\\\"{{ index }}\\n.bin\", type: image/png }
        own: { file: \"a \\\"b\\\".bin\" }
        meta: { text: '{\"a\": 1}', type: application/json }\n",
    );
    insta::assert_snapshot!(form);
}

#[test]
fn a_file_alone_has_the_type_that_its_name_tells() {
    let typed = |more: &str| {
        let text = sent(&format!(
            "      body: {{ file: pictures/photo.JPG{more} }}\n"
        ));
        text.lines().next().expect("a header").to_owned()
    };
    assert_eq!(typed(""), "Content-Type: image/jpeg");
    assert_eq!(typed(", type: a/b"), "Content-Type: a/b");
    let said = sent("      body: { file: 'a \"b\".bin' }\n      headers: { content-type: c/d }\n");
    assert_eq!(said.matches("c/d").count(), 1);
    assert!(!said.contains("octet-stream"), "{said}");
    let bare = sent("      body: { file: 'a \"b\".bin' }\n");
    assert!(
        bare.starts_with("Content-Type: application/octet-stream\n"),
        "{bare}"
    );
}

#[test]
fn faults_have_their_place_and_cure() {
    let said = |request: &str| {
        let error = load(request).expect_err("a fault");
        let line = |p: &lab_study::Problem| {
            let (line, column) = p.position().expect("a place");
            let help = p.help.as_deref().unwrap_or("");
            format!("{line}:{column} {} / {help}", p.message)
        };
        let lines: Vec<String> = error.problems().iter().map(line).collect();
        lines.join("\n")
    };
    let all = [
        "multipart: { a: { file: pictures/foto.JPG } }",
        "multipart: { a: { file: \"{{ index }}.jpg\" } }",
        "multipart: { a: { name: b } }",
        "multipart: { a: { text: b, name: c } }",
        "multipart: { a: { text: b, type: jpeg } }",
        "multipart: { a: { fiel: b } }",
        "multipart: { a: \"{{ nobody }}\" }",
        "multipart: {}",
        "multipart: { a: b }\n      headers: { Content-Type: multipart/form-data }",
        "multipart: { a: b }\n      text: c",
        "body: text",
        "body: { type: image/png }",
        "body: { file: nothing.bin, type: \"a\\nb/c\" }",
    ];
    let all = all.map(|request| said(&format!("      {request}\n")));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_is_in_a_file_is_part_of_what_the_workload_says() {
    let study = "study: s\ntitle: t\nworkload: w.workload.yaml\nsystem: { groupware: {} }\n\
                 load: { users: 5, hold: 2s }\n";
    let hash = |content: &[u8]| {
        let mut folder = folder("      body: { file: pictures/photo.JPG }\n");
        folder.0.insert("w/s.study.yaml", study.into());
        folder.0.insert("w/pictures/photo.JPG", content.to_vec());
        let loaded = load_study("w/s.study.yaml", &folder, &[]).expect("a study");
        let options = PlanOptions::default();
        let plan = plan(&loaded.study, &options).expect("a plan");
        serde_json::to_value(plan).expect("JSON")["question"]["workload"]["sha256"].clone()
    };
    assert!(hash(b"one").is_string());
    assert_eq!(hash(b"one"), hash(b"one"));
    assert_ne!(hash(b"one"), hash(b"two"));
}
