//! Parameters of a workload, shares and choices of its steps, and its bodies.

use std::sync::Arc;

use crate::faults::{Fault, STUDY, WORKLOAD, load, snapshot};
use lab_study::model::{Cell, Level, Workload};
use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, Study, load_study};
use lab_workload::{Body, User};

struct Folder(String, &'static str);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        match path.ends_with(".study.yaml") {
            true => Ok(self.0.clone().into_bytes()),
            false => Ok(self.1.as_bytes().to_vec()),
        }
    }
}

const REGISTER: &str = r#"workload: w
parameters: { interfaces: 2, chunk: 1 KiB, think: 2s, far: true, scale: 0.5 }
session:
  steps:
    - step: Register
      wait: "{{ think }}"
      repeat: "{{ interfaces * 2 }}"
      request: POST /lookup/{{ interfaces }}/{{ chunk | urlencode }}/{{ scale * 4 }}
      xml: "<r n='{{ round }}'>{% for i in range(interfaces) %}<i>{{ i }}</i>{% endfor %}</r>"
    - step: Write
      request: PUT /data
      bytes: "{{ chunk }}"
"#;

fn study(extra: &str) -> Study {
    let study = format!(
        "study: s\ntitle: S\nworkload: w\nsystem: {{ groupware: {{}} }}\n\
         load: {{ users: 2, hold: 30s }}\norder: listed\n{extra}"
    );
    load_study("s.study.yaml", &Folder(study, REGISTER), &[])
        .unwrap_or_else(|e| panic!("{:?}", e.problems()))
        .study
}

/// The first request of a step: its target, its body, its content type.
fn rendered(workload: &Workload, step: usize) -> (String, String, String) {
    let user = User {
        index: 0,
        users: 2,
        first: 0,
        seed: 1,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let mut scope = workload.scope(user, &[]).unwrap();
    scope.set_round(1);
    let request = &workload.session.steps[step].requests[0];
    let mut target = String::new();
    request.target.render(&mut scope, &mut target).unwrap();
    let mut body = String::new();
    match &request.body {
        Body::Text(template) => template.render(&mut scope, &mut body).unwrap(),
        other => panic!("{other:?}"),
    }
    let (_, kind) = request
        .headers
        .iter()
        .find(|(name, _)| name == "Content-Type")
        .unwrap();
    (target, body, kind.as_literal().unwrap().to_owned())
}

#[test]
fn a_workload_has_values_of_its_own() {
    let study = study("");
    let workload = &study.workload;
    assert_eq!(workload.session.steps[0].repeat, 4);
    assert_eq!(workload.session.steps[0].wait.mean().as_secs(), 2);
    let (target, body, kind) = rendered(workload, 0);
    assert_eq!(target, "/lookup/2/1%20KiB/2.0");
    assert_eq!(body, "<r n='1'><i>0</i><i>1</i></r>");
    assert_eq!(kind, "application/xml; charset=utf-8");
    let (_, body, kind) = rendered(workload, 1);
    assert_eq!(
        (body.len(), kind.as_str()),
        (1024, "application/octet-stream")
    );
}

#[test]
fn a_study_sets_them_from_its_factors() {
    let study = study(
        "matrix: { n: [1, 3] }\nparameters: { interfaces: \"{{ n }}\", chunk: \"{{ n * 10 }} B\" }\n",
    );
    let options = PlanOptions::default();
    let trials = plan(&study, &options).unwrap().trials;
    let of = |trial: usize| study.workload_with(&trials[trial].parameters).unwrap();
    assert_eq!(trials[1].parameters["interfaces"], Level::Int(3));
    assert_eq!(trials[1].parameters["scale"], Level::Float(0.5));
    assert_eq!(
        rendered(&of(1), 0).1,
        "<r n='1'><i>0</i><i>1</i><i>2</i></r>"
    );
    assert_eq!(rendered(&of(1), 1).1.len(), 30);
    assert_eq!(of(1).session.steps[0].repeat, 6);
    // The plan counts with them.
    let requests = |at: usize| trials[at].prediction.as_ref().unwrap().steps[0].requests;
    let writes = |at: usize| trials[at].prediction.as_ref().unwrap().steps[1].requests;
    assert!(writes(0) > 2 * writes(1), "{} {}", writes(0), writes(1));
    assert!(requests(0) > 0 && requests(1) > 0);
    // Without a setting, nothing is recompiled.
    assert!(Arc::ptr_eq(
        &study.workload_with(&Cell::new()).unwrap(),
        &study.workload
    ));
}

#[test]
fn a_session_does_a_part_of_its_steps() {
    const CHOICES: &str = r#"workload: w
parameters: { sends: 3 }
session:
  pace: 10s
  steps:
    - { step: Open, wait: 1s, request: GET /inbox }
    - one_of:
        - { step: Send, weight: "{{ sends }}", request: POST /outbox }
        - weight: 1
          steps:
            - { step: Read, request: GET /mail }
            - { step: Delete, request: DELETE /mail }
    - { step: Look, share: 10%, request: GET /calendar }
"#;
    let study = "study: s\ntitle: S\nworkload: w\nsystem: { groupware: {} }\n\
                 load: { users: 200, hold: 50 cycles }\n";
    let folder = Folder(study.to_owned(), CHOICES);
    let study = load_study("s.study.yaml", &folder, &[]).unwrap().study;
    let plan = plan(&study, &PlanOptions::default()).unwrap();
    let p = plan.trials[0].prediction.as_ref().unwrap();
    let counts: Vec<f64> = p.steps.iter().map(|step| step.requests as f64).collect();
    let names: Vec<&str> = p.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["Open", "Send", "Read", "Delete", "Look"]);
    assert_eq!(counts[0], 10_000.0);
    // One alternative excludes the other, and a group is chosen as a whole.
    assert_eq!(counts[1] + counts[2], 10_000.0);
    assert_eq!(counts[2], counts[3]);
    // Five standard errors of the share.
    let near = |count: f64, share: f64| {
        let error = (share * (1.0 - share) * 10_000.0).sqrt();
        (count - share * 10_000.0).abs() < 5.0 * error
    };
    assert!(near(counts[1], 0.75) && near(counts[4], 0.1), "{counts:?}");
}

/// In each cell by its own parameters, and by the speed.
#[test]
fn a_trial_knows_how_often_the_probe_is_sent() {
    const PROBED: &str = r#"workload: w
parameters: { every: 1s }
session: { steps: [{ step: Read, request: GET / }] }
probe: { every: "{{ every }}", request: GET /health }
"#;
    let text = "study: s\ntitle: S\nworkload: w\nsystem: { groupware: {} }\n\
                load: { users: 2, hold: 30s }\norder: listed\nmatrix: { often: [1s, 1m] }\n\
                parameters: { every: \"{{ often }}\" }\n";
    let study = load_study("s.study.yaml", &Folder(text.to_owned(), PROBED), &[])
        .unwrap_or_else(|e| panic!("{:?}", e.problems()))
        .study;
    let options = PlanOptions {
        speed: 10.0,
        ..PlanOptions::default()
    };
    let trials = plan(&study, &options).unwrap().trials;
    let every: Vec<_> = trials.iter().map(|trial| trial.probe_every_ms).collect();
    assert_eq!(every[..2], [Some(100), Some(6_000)]);
}

#[test]
fn faults_of_parameters() {
    const FROM: &str = "published:";
    let workload = WORKLOAD.replace("user:", "parameters: { pages: 3, size: 1 KiB }\nuser:");
    let faults: &[Fault] = &[
        ("unknown", FROM, "parameters: { page: 3 }\npublished:"),
        (
            "of another kind",
            FROM,
            "parameters: { pages: many }\npublished:",
        ),
        (
            "unknown factor",
            FROM,
            "parameters: { pages: \"{{ user }}\" }\npublished:",
        ),
        (
            "senseless in the workload",
            FROM,
            "parameters: { pages: \"{{ users - 10 }}\" }\npublished:",
        ),
    ];
    let workload = workload.replace(
        "    - step: Open a page\n",
        "    - step: Open a page\n      repeat: \"{{ pages }}\"\n",
    );
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        workload.as_bytes()
    )));
}

#[test]
fn faults_of_choices_and_bodies() {
    const FROM: &str = "      request: GET /list\n      capture: { links: \"$.items[*].href\" }\n";
    let faults: &[Fault] = &[
        (
            "a parameter of users",
            "user:\n",
            "parameters: { a: \"{{ index }}\" }\nuser:\n",
        ),
        (
            "a parameter's name again",
            "user:\n",
            "parameters: { name: 1 }\nuser:\n",
        ),
        (
            "a name with a meaning",
            "user:\n",
            "parameters: { round: 1 }\nuser:\n",
        ),
        (
            "a weight alone",
            FROM,
            "      weight: 3\n      request: GET /list\n      capture: { links: $.a }\n",
        ),
        (
            "a share of words",
            FROM,
            "      share: some\n      request: GET /list\n      capture: { links: $.a }\n",
        ),
        (
            "a share above all",
            FROM,
            "      share: 130%\n      request: GET /list\n      capture: { links: $.a }\n",
        ),
        (
            "one_of beside a wait",
            "    - step: Read the list\n      wait: 1s..2s\n      request: GET /list\n      capture: { links: \"$.items[*].href\" }\n",
            "    - wait: 1s\n      one_of: [{ step: a, request: GET /, capture: { links: $.a } }]\n",
        ),
        (
            "a bad weight",
            "    - step: Read the list\n      wait: 1s..2s\n      request: GET /list\n      capture: { links: \"$.items[*].href\" }\n",
            "    - one_of: [{ step: a, weight: 0, request: GET /, capture: { links: $.a } }]\n",
        ),
        (
            "a choice within a choice",
            "    - step: Read the list\n      wait: 1s..2s\n      request: GET /list\n      capture: { links: \"$.items[*].href\" }\n",
            "    - one_of: [{ steps: [{ one_of: [{ step: a, request: GET /, capture: { links: $.a } }] }] }]\n",
        ),
        (
            "two bodies",
            FROM,
            "      bytes: 5\n      xml: <a/>\n      request: GET /list\n      capture: { links: $.a }\n",
        ),
        (
            "too many bytes",
            FROM,
            "      bytes: 5 GB\n      request: GET /list\n      capture: { links: $.a }\n",
        ),
        (
            "a bad profile",
            FROM,
            "      text: \"{{ text_of_size(profile('1 KB 50%')) }}\"\n      request: GET /list\n      capture: { links: $.a }\n",
        ),
    ];
    insta::assert_snapshot!(snapshot(WORKLOAD, faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}

#[test]
fn a_request_takes_its_answer_as_the_workload_says_or_as_it_says_itself() {
    const WORKLOAD: &str = "workload: w\nparameters: { hops: 3 }\ncompressed: true\nfollow: \"{{ hops }}\"\n\
                            session:\n  steps:\n    - step: As all\n      request: GET /\n    \
                            - step: Its own\n      request: GET /\n      compressed: false\n      \
                            follow: 0\n      headers: { Host: shop.example.org }\n";
    let study = "study: s\ntitle: S\nworkload: w\nsystem: { groupware: {} }\n\
                 load: { users: 2, hold: 30s }\n";
    let folder = Folder(study.to_owned(), WORKLOAD);
    let loaded = load_study("s.study.yaml", &folder, &[]).unwrap();
    let requests: Vec<_> = loaded.study.workload.requests().collect();
    let taking = |at: usize| (requests[at].compressed, requests[at].follow);
    assert_eq!((taking(0), taking(1)), ((true, 3), (false, 0)));
    assert_eq!(requests[1].headers[0].0, "Host");
}
