//! Rows of a file: their assignment, their order, and errors in a file, with the line.

use std::collections::BTreeMap;
use std::io;

use lab_study::{Files, LoadError, Workload, load_study, load_workload};
use lab_workload::timing::ChoiceStream;
use lab_workload::{DEFAULT_DATES_FROM, RenderError, User, UserScope};

struct Folder(BTreeMap<&'static str, String>);

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let found = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(found.clone().into_bytes())
    }

    fn names(&self, _: &str) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }
}

fn folder(data: &str, file: (&'static str, &str)) -> Folder {
    let workload = format!(
        "workload: w\ndata: {data}\nsession:\n  steps:\n    - step: Sign in\n      \
         request: POST /login/{{{{ email }}}}\n      form: {{ password: \"{{{{ password }}}}\" }}\n"
    );
    Folder(BTreeMap::from([
        ("w.workload.yaml", workload),
        (file.0, file.1.to_owned()),
    ]))
}

fn people(rows: usize) -> String {
    let row = |at: usize| format!("a{at}@x,\"p,{at}\",{at}\n");
    format!(
        "email,password,E-Mail\n{}",
        (0..rows).map(row).collect::<String>()
    )
}

fn loaded(data: &str, rows: usize) -> Workload {
    load_workload(
        "w.workload.yaml",
        &folder(data, ("users.csv", &people(rows))),
    )
    .expect("a workload")
}

fn scope(workload: &Workload, index: u32, users: u32) -> UserScope {
    let user = User {
        index,
        users,
        first: 0,
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
    };
    workload.scope(user, &[]).expect("a user")
}

fn target(workload: &Workload, scope: &mut UserScope) -> Result<String, RenderError> {
    let mut text = String::new();
    let request = &workload.session.steps[0].requests[0];
    request.target.render(scope, &mut text)?;
    Ok(text)
}

#[test]
fn each_user_has_a_row_and_keeps_it() {
    let workload = loaded("users.csv", 3);
    for index in 0..7 {
        let mut scope = scope(&workload, index, 7);
        let row = index % 3;
        for _ in 0..2 {
            scope.next_cycle();
            assert_eq!(
                target(&workload, &mut scope).unwrap(),
                format!("/login/a{row}@x")
            );
        }
        assert_eq!(scope.get("password").unwrap(), format!("p,{row}"));
    }
}

#[test]
fn each_session_has_another_row() {
    let workload = loaded("{ file: users.csv, each: session }", 100);
    let mut seen = Vec::new();
    for index in 0..5 {
        let mut scope = scope(&workload, index, 5);
        for _ in 0..4 {
            scope.next_cycle();
            seen.push(target(&workload, &mut scope).unwrap());
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 20, "{seen:?}");
    // For arriving sessions, independent of the user that runs one.
    let mut scope = scope(&workload, 0, 5);
    scope.begin_session(77, ChoiceStream::of_session(1, 0, 77));
    scope.next_cycle();
    assert_eq!(target(&workload, &mut scope).unwrap(), "/login/a77@x");
}

#[test]
fn a_shuffled_order_has_every_row_once() {
    let workload = loaded("{ file: users.csv, order: shuffled, unique: true }", 300);
    let one = |index| target(&workload, &mut scope(&workload, index, 300)).unwrap();
    let mut rows: Vec<String> = (0..300).map(one).collect();
    assert_ne!(rows[..3], ["/login/a0@x", "/login/a1@x", "/login/a2@x"]);
    assert_eq!(one(7), rows[7], "the same in every run");
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), 300);
}

#[test]
fn who_comes_after_the_last_row_has_none_and_says_so() {
    let workload = loaded("{ file: users.csv, each: session, unique: true }", 2);
    let mut scope = scope(&workload, 0, 1);
    for row in 0..2 {
        scope.next_cycle();
        assert_eq!(
            target(&workload, &mut scope).unwrap(),
            format!("/login/a{row}@x")
        );
    }
    scope.next_cycle();
    let error = target(&workload, &mut scope).expect_err("no row");
    let said = "users.csv has no row left: each of its 2 is given once";
    assert_eq!(error.to_string(), said);
}

fn said(result: Result<impl Sized, LoadError>) -> String {
    let error = result.err().expect("a fault");
    let line = |p: &lab_study::Problem| {
        let at = p
            .position()
            .map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
        format!(
            "{}{at} {} / {}",
            p.file,
            p.message,
            p.help.as_deref().unwrap_or("")
        )
    };
    error
        .problems()
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn faults_have_their_file_and_line() {
    let load = |data: &str, file: (&'static str, &str)| {
        said(load_workload("w.workload.yaml", &folder(data, file)))
    };
    let all = [
        load("user.csv", ("users.csv", &people(1))),
        load("users.csv", ("users.csv", "email,password\na,b\nc\n")),
        load("users.csv", ("users.csv", "email,password\n")),
        load("users.csv", ("users.csv", "E-Mail,Pass word\na,b\n")),
        load("users.csv", ("users.csv", "email,index\na,b\n")),
        load("users.jsonl", ("users.jsonl", "{\"email\":\"a\"}\n{}\n")),
        load("users.csv", ("users.csv", "mail,password\na,b\n")),
        load(
            "{ file: users.csv, each: sesion }",
            ("users.csv", &people(1)),
        ),
        load("{ file: users.csv, once: true }", ("users.csv", &people(1))),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn loads_that_rows_are_not_for() {
    let study = |load: &str| {
        let mut folder = folder(
            "{ file: users.csv, unique: true }",
            ("users.csv", &people(5)),
        );
        let study = format!(
            "study: s\ntitle: t\nworkload: w\nsystem: {{ groupware: {{}} }}\nload: {{ {load}, hold: 2s }}\n"
        );
        folder.0.insert("s.study.yaml", study);
        load_study("s.study.yaml", &folder, &[])
    };
    assert!(study("users: 5").is_ok());
    assert!(study("users: 5, generators: 2").is_ok());
    insta::assert_snapshot!(said(study("users: 6")), @r"
    s.study.yaml:5:7 6 users need a row each, and users.csv has 5 / add rows, or leave `unique` out: rows are then given again
    ");
}

#[test]
fn what_is_kept_of_many_rows_is_small() {
    let bytes: Vec<u8> = (0..20_000)
        .flat_map(|at| format!("u{at}@example.org,{at}\n").into_bytes())
        .collect();
    let text = format!("email,password\n{}", String::from_utf8(bytes).unwrap());
    let workload = load_workload(
        "w.workload.yaml",
        &folder("{ file: users.csv, order: shuffled }", ("users.csv", &text)),
    )
    .expect("a workload");
    let data = workload.data.as_ref().expect("rows");
    assert_eq!(data.rows, 20_000);
    let kept = data.table.as_ref().expect("here").kept_bytes();
    assert!(kept < 20_000 / 64 * 8 + 1024, "{kept} bytes");
}
