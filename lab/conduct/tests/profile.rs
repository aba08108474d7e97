//! A whole run with `profile: true` against a small server: what is in its archive.

use std::fs;
use std::sync::atomic::AtomicBool;

use lab_archive::{Run, TrialData, TrialEnd, Warning};
use lab_conduct::{Event, Judged, run};
use lab_profile::Profile;

mod common;

use common::request;

/// Each request costs some CPU time.
const SERVER: &str = r#"
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a): pass
    def do_GET(self):
        sum(n * n for n in range(20000))
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"#;

const WORKLOAD: &str = "\
workload: small
about: A look.
user: { name: \"user{{ index }}\" }
session:
  steps:
    - step: Look
      wait: 20ms
      request: GET /
";

fn study(profile: &str) -> String {
    let server = SERVER.trim_start().replace('\n', "\n        ");
    format!(
        r#"study: profiled
title: A server with a profile
workload: small
system:
  command:
    start: [python3, server.py, "{{{{ port }}}}"]
    files:
      server.py: |
        {server}
load: {{ users: 3, ramp: 2s, hold: 9s }}
profile: {profile}
trials: 1
"#
    )
}

/// The only trial of the run, and the messages of the run.
fn trial(profile: &str) -> (TrialData, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), (&study(profile), WORKLOAD), 1);
    let never = AtomicBool::new(false);
    let mut told = Vec::new();
    let mut events = |event| {
        if let Event::Note(note) = event {
            told.push(note);
        }
    };
    run(&request, &mut events, &mut |_, _| Judged::default(), &never).unwrap();
    let mut archive = Run::open(&request.out).unwrap();
    let trial = archive.trials.remove(0);
    assert_eq!(trial.record.end, TrialEnd::Complete);
    (trial, told)
}

/// Events that this process has open in the kernel.
fn open_events() -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .filter(|link| link.to_string_lossy().contains("perf_event"))
        .count()
}

#[test]
fn a_trial_has_a_profile_of_its_system() {
    let (trial, told) = trial("{ rate: 199, frames: auto }");
    let record = &trial.record;
    let Some(profiled) = &record.profile else {
        // A user without the permission gets a message; the rest of the run is unchanged.
        let said = record
            .warnings
            .iter()
            .any(|one| matches!(one, Warning::NotProfiled { .. }));
        assert!(
            said && told.iter().any(|note| note.contains("isn't profiled")),
            "{told:?}"
        );
        assert!(trial.cpu_profile.is_none());
        eprintln!("not tested: {told:?}");
        return;
    };
    eprintln!("{profiled:?}");
    let bytes = trial.cpu_profile.as_ref().unwrap().as_ref().unwrap();
    let profile = Profile::from_pprof(bytes).unwrap();
    assert_eq!(profile.weight().count, profiled.samples);
    // On a busy machine the server gets little CPU time, and its samples come late.
    let few = (profiled.expected * 0.4).min(50.0);
    assert!(
        profiled.samples as f64 > few && profiled.samples > 2,
        "{profiled:?}"
    );
    let weight = profile.weight().ns as f64 / 1e6;
    assert!(
        (weight / profiled.cpu_ms - 1.0).abs() < 0.005,
        "{weight} {profiled:?}"
    );
    // What the counters of the trial show, too.
    let column = |name: &str| {
        trial
            .monitor
            .columns
            .iter()
            .position(|one| one == name)
            .unwrap()
    };
    let total = column("system.cpu_ms_total");
    let values = trial.monitor.rows.iter().filter(|(at, _)| *at >= 2000.0);
    let values: Vec<f64> = values.filter_map(|(_, row)| row[total]).collect();
    let counted = values.last().unwrap() - values.first().unwrap();
    let blocks = profiled.blocks.iter();
    let read: f64 = blocks.map(|block| block.on_cpu_ms + block.off_cpu_ms).sum();
    let difference = (read - counted).abs();
    assert!(difference < (0.2 * counted).max(150.0), "{read} {counted}");
    assert!(profiled.whole * 10 >= profiled.samples * 9, "{profiled:?}");
    let sampled = profile.samples.iter().map(|sample| sample.second);
    assert!(sampled.clone().all(|second| (2..=11).contains(&second)));
    assert!(
        sampled
            .clone()
            .all(|second| !profiled.off_seconds.contains(&second))
    );
    assert_eq!(open_events(), 0);
    has_waits(&trial);
}

/// The files of waits are there, and their sums agree with those of the profile of CPU time.
fn has_waits(trial: &TrialData) {
    let (waits, facts) = (&trial.waits, trial.record.waits.as_ref().unwrap());
    eprintln!("{facts:?}");
    let groups = waits.groups().unwrap().unwrap();
    for group in &groups {
        eprintln!("{group:?}");
        assert!(
            group.on_cpu_ns + group.no_core_ns <= group.wall_ns,
            "{group:?}"
        );
    }
    let cpu: f64 = groups
        .iter()
        .map(|group| group.on_cpu_ns as f64 / 1e6)
        .sum();
    let blocks = trial
        .record
        .profile
        .iter()
        .flat_map(|profile| &profile.blocks);
    let read: f64 = blocks.map(|block| block.on_cpu_ms + block.off_cpu_ms).sum();
    // Threads of this server live for one connection each, so that some time of theirs isn't seen.
    assert!((cpu - read).abs() < 0.2 * read + 100.0, "{cpu} {read}");
    assert!(waits.latency.as_ref().unwrap().is_ok());
    let bytes = waits.profile.as_ref().unwrap().as_ref().unwrap();
    let profile = Profile::from_pprof(bytes).unwrap();
    assert_eq!(profile.kind, lab_profile::Kind::Off);
    assert!(profile.weight().ns > 0);
    let mut seconds = profile.samples.iter().map(|sample| sample.second);
    assert!(seconds.all(|second| (2..=11).contains(&second)));
}

#[test]
fn a_study_without_a_profile_takes_none() {
    let (trial, _) = trial("false");
    assert_eq!(trial.record.profile, None);
    assert!(trial.cpu_profile.is_none());
}
