//! Files with faults: a valid study and workload with one text replaced, and the resulting message
//! for the user.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use lab_study::{Files, LoadError, LoadedAny, load_any, load_workload};
use lab_workload::Workload;
use miette::{GraphicalReportHandler, GraphicalTheme};

pub(crate) const STUDY: &str = r#"study: pages
title: Pages at two levels
workload: pages
matrix:
  users: [10, 20]
system:
  groupware: { http_threads: 4 }
load: { users: "{{ users }}", ramp: 10s, hold: 4 cycles }
thresholds:
  response_time: ["p(95) < 300ms"]
published: figures.csv
"#;

pub(crate) const WORKLOAD: &str = r#"workload: pages
user:
  name: user{{ pad(index, 5) }}
session:
  pace: 10s
  steps:
    - step: Log in
      wait: 1s..2s
      request: POST /login
      form: { username: "{{ name }}", password: "{{ password }}" }
    - step: Read the list
      wait: 1s..2s
      request: GET /list
      capture: { links: "$.items[*].href" }
    - step: Open a page
      wait: 1s..2s
      request: GET {{ take(links) }}
"#;

/// One file, whatever its name.
pub(crate) struct One(pub(crate) String);

impl Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, io::Error> {
        Ok(self.0.clone().into_bytes())
    }
}

/// The workload that a text is.
pub(crate) fn workload(text: String) -> Workload {
    let read = load_workload("w.yaml", &One(text));
    read.unwrap_or_else(|error| panic!("{error}: {:?}", error.problems()))
}

pub(crate) struct Folder(BTreeMap<String, Vec<u8>>);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::Error> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let inside = |path: &String| {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            (parent == folder).then(|| name.to_owned())
        };
        self.0.keys().filter_map(inside).collect()
    }
}

pub(crate) fn folder(study: &[u8], workload: &[u8]) -> Folder {
    let files = [
        ("studies/pages.study.yaml", study),
        ("workloads/pages.workload.yaml", workload),
        ("published/figures.csv", b"users,response_ms\n10,5\n"),
        ("data/tokens.csv", b"token\na\nb\n"),
        ("data/desks.csv", b"desk\nc\n"),
    ];
    Folder(
        files
            .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
            .into(),
    )
}

pub(crate) fn load(study: &[u8], workload: &[u8]) -> Result<LoadedAny, LoadError> {
    let folder = folder(study, workload);
    let before = cpu_time();
    let loaded = load_any("studies/pages.study.yaml", &folder);
    let took = cpu_time().saturating_sub(before);
    assert!(took < Duration::from_secs(30), "took {took:?} of CPU");
    loaded
}

/// CPU time of this thread, so that a busy machine fails no test (`/proc/PID/schedstat`, in ns).
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let on_cpu = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(on_cpu.unwrap())
}

/// Returns the message as displayed, without colour.
pub(crate) fn seen(error: &LoadError) -> String {
    let mut out = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::none())
        .with_width(100)
        .with_links(false)
        .render_report(&mut out, error)
        .unwrap();
    out.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// One fault: a text of the study or workload, and its replacement.
pub(crate) type Fault = (&'static str, &'static str, &'static str);

pub(crate) fn snapshot(
    base: &str,
    faults: &[Fault],
    load: impl Fn(&str) -> Result<LoadedAny, LoadError>,
) -> String {
    let mut out = String::new();
    for (name, from, to) in faults {
        assert_eq!(
            base.matches(from).count(),
            1,
            "{name}: `{from}` is to be there once"
        );
        let text = base.replace(from, to);
        let error = load(&text).err().unwrap_or_else(|| panic!("{name}: loads"));
        out.push_str(&format!("=== {name}\n{}\n", seen(&error)));
    }
    out
}
