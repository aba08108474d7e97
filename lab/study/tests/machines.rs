//! Processes of one system on several machines: their grouping, their references to each other, and errors.

use lab_study::plan::{PlanOptions, Trial, plan};
use lab_study::{Files, SystemSpec, load_study};

struct Folder(String);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        match path.ends_with(".study.yaml") {
            true => Ok(self.0.clone().into_bytes()),
            false => Ok(
                b"workload: w\nsession: { steps: [{ step: a, wait: 1s, request: GET / }] }\n"
                    .to_vec(),
            ),
        }
    }
}

/// The first trial of a study with such processes, or its errors.
fn trial(system: &str) -> Result<Trial, String> {
    let matrix = match system.contains("place") {
        true => "matrix: { place: [db-1] }\n",
        false => "",
    };
    let text = format!(
        "study: s\ntitle: S\nworkload: w\n{matrix}system:\n{system}\nload: {{ users: 1, hold: 10s }}\n"
    );
    let loaded = load_study("s.study.yaml", &Folder(text), &[]);
    let loaded = loaded.map_err(|error| format!("{:?}", error.problems()))?;
    let options = PlanOptions {
        speed: 1.0,
        seed: Some(1),
    };
    let plan = plan(&loaded.study, &options).map_err(|error| error.to_string())?;
    Ok(plan.trials[0].clone())
}

const DB: &str = "{ on: \"{{ place }}\", start: [db, \"{{ port }}\", \"{{ address }}\"], kernel: { net.core.somaxconn: 9 } }";
const CACHE: &str =
    "{ on: db-1, start: [cache, \"{{ db_address }}:{{ db_port }}\"], cpus: 2, reset: [clean] }";
const APP: &str = "{ start: [app, \"{{ db_address }}:{{ db_port }}\", \"{{ cache_address }}:{{ cache_port }}\", \"{{ app_port }}\"] }";

fn processes(all: &[(&str, &str)]) -> String {
    let all = all
        .iter()
        .map(|(name, text)| format!("    {name}: {text}\n"));
    format!("  processes:\n{}", all.collect::<String>())
}

#[test]
fn processes_of_a_machine_are_one_part_and_name_each_other() {
    let trial = trial(&processes(&[("db", DB), ("cache", CACHE), ("app", APP)])).unwrap();
    let [part] = trial.parts.as_slice() else {
        panic!("{:?}", trial.parts)
    };
    assert_eq!(part.name(), "cache");
    assert_eq!(part.host.on.as_deref(), Some("db-1"));
    assert_eq!(part.host.kernel[0].value, "9");
    assert!(part.host.cpus.is_some());
    assert_eq!(part.spec.reset, ["clean"]);
    let (name, db) = &part.spec.before[0];
    assert_eq!(name, "db");
    assert_eq!(db.start, ["db", "{{ db_port }}", "{{ address }}"]);
    assert_eq!(part.spec.start, ["cache", "{{ address }}:{{ db_port }}"]);
    assert_eq!(trial.host.on, None);
    let SystemSpec::Command(app) = &trial.system else {
        panic!("{:?}", trial.system)
    };
    assert!(app.before.is_empty());
    let places = [
        ("db".to_owned(), "10.0.0.7:5432".parse().unwrap()),
        ("cache".to_owned(), "[fd00::7]:6379".parse().unwrap()),
    ];
    let known = app.beside(&places);
    assert_eq!(
        known.start,
        ["app", "10.0.0.7:5432", "[fd00::7]:6379", "{{ port }}"]
    );
    let machines: Vec<&String> = trial.machines().collect();
    assert_eq!(machines, ["db-1"]);
    let programs: Vec<&str> = trial.programs().map(|one| one.start[0].as_str()).collect();
    assert_eq!(programs, ["db", "cache", "app"]);
}

#[test]
fn what_the_system_says_of_a_machine_is_of_the_one_it_names() {
    let (a, b) = ("{ on: a, start: [x] }", "{ on: b, start: [y] }");
    for (on, on_a) in [("  on: a\n", true), ("  on: b\n", false), ("", false)] {
        let system = processes(&[("one", a), ("two", b)]);
        let trial = trial(&format!("{system}{on}  cpus: 1\n")).unwrap();
        assert_eq!(trial.parts[0].host.cpus.is_some(), on_a, "{on}");
        assert_eq!(trial.host.cpus.is_some(), !on_a, "{on}");
    }
}

#[test]
fn the_same_on_one_machine_is_one_system() {
    let here = |text: &str| {
        let text = text.replace("on: \"{{ place }}\", ", "");
        text.replace("on: db-1, ", "")
            .replace(", reset: [clean]", "")
    };
    let all = [("db", here(DB)), ("cache", here(CACHE)), ("app", here(APP))];
    let all = all.each_ref().map(|(name, text)| (*name, text.as_str()));
    let on_another = format!("{}  on: db-1\n", processes(&all));
    for (system, on) in [(processes(&all), None), (on_another, Some("db-1"))] {
        let trial = trial(&system).unwrap();
        assert!(trial.parts.is_empty());
        assert_eq!(trial.host.on.as_deref(), on);
        assert_eq!(trial.host.kernel.len(), 1);
        let SystemSpec::Command(app) = &trial.system else {
            panic!("{:?}", trial.system)
        };
        assert_eq!(app.before.len(), 2);
        let expected = [
            "app",
            "{{ address }}:{{ db_port }}",
            "{{ address }}:{{ cache_port }}",
            "{{ port }}",
        ];
        assert_eq!(app.start, expected);
    }
}

#[test]
fn what_several_machines_can_not_do_is_said() {
    let wrong = |system: &str, expected: &str| {
        let said = trial(system).expect_err(expected);
        assert!(said.contains(expected), "{said}");
    };
    let on = |on: &str, start: &str| format!("{{ on: {on}, start: [{start}] }}");
    let (a, b) = (on("a", "x"), on("b", "y"));
    wrong(
        &processes(&[("one", &a), ("two", &b), ("three", &a)]),
        "one of another machine starts between them",
    );
    wrong(
        &processes(&[("one", "{ start: [x] }"), ("two", &b)]),
        "which does not reach it",
    );
    let early = on("a", "x, \"{{ two_port }}\"");
    wrong(
        &processes(&[("one", &early), ("two", &b)]),
        "`two` is named, which is on another one and starts later",
    );
    let twice = "{ on: a, start: [x], cpus: 1 }";
    wrong(
        &processes(&[("one", twice), ("two", twice)]),
        "is said twice",
    );
    let reset = "{ on: a, start: [x], reset: [y] }";
    wrong(
        &processes(&[("one", reset), ("two", &a)]),
        "about all processes of a machine",
    );
    let secret = on("a", "x, \"{{ secret }}\"");
    wrong(
        &processes(&[("one", &secret), ("two", &b)]),
        "makes a `secret` of its own",
    );
    let elsewhere = format!("{}  on: c\n", processes(&[("one", &a), ("two", &b)]));
    wrong(&elsewhere, "on which it has no process");
    wrong(
        "  command: { start: [x], on: a }",
        "`on` is about the whole system",
    );
}
