//! Every command as users see it: its output on both streams, and its exit code.
//!
//! The built program runs as released, 80 columns wide and with an empty environment. Only these machine-dependent
//! texts are masked: the folder of a test, and a plan's last sentence on this machine's limits.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The placeholder of a test's own folder.
const FOLDER: &str = "[FOLDER]";
/// The sentence of `plan` about this machine.
const LIMITS: &str = "this machine's limits allow it\n";

struct Output {
    command: String,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Output {
    /// Both streams and the code in one text.
    fn text(&self) -> String {
        let code = self.code.map_or("signal".to_owned(), |c| c.to_string());
        format!(
            "$ {}\n══ exit {code}\n══ stdout\n{}══ stderr\n{}",
            self.command, self.stdout, self.stderr
        )
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in the repository")
}

/// A test's own folder.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    /// A copy of a kept archive: `report` writes into it.
    fn golden(&self, name: &str) {
        self.golden_as(name, name);
    }

    fn golden_as(&self, folder: &str, name: &str) {
        let from = repository().join("tests/golden").join(name);
        copy(&from, &self.path(folder));
        // Its result is written after its last trial.
        let result = self.path(folder).join("result.json");
        let text = fs::read(&result).expect("a result");
        fs::write(result, text).expect("written");
    }

    /// Runs in this folder.
    fn run(&self, arguments: &str) -> Output {
        run(self.0.path(), self.0.path(), arguments)
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn run(inside: &Path, hidden: &Path, arguments: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments.split_whitespace())
        .current_dir(inside)
        .env_clear()
        .env("COLUMNS", "80")
        .env("HOME", hidden)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let hidden = hidden.to_str().expect("UTF-8");
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(!text.contains('\u{1b}'), "no colour in a pipe: {text}");
        text.replace(hidden, FOLDER)
    };
    Output {
        command: format!("plimsoll {arguments}"),
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Compares a command's output with the snapshot.
macro_rules! kept {
    ($name:expr, $said:expr) => {
        insta::assert_snapshot!($name, $said.text())
    };
}

/// Names under `Commands:` of a help text.
fn commands_of(help: &str) -> Vec<String> {
    let (_, rest) = help.split_once("\nCommands:\n").unwrap_or_default();
    let section = rest.split("\n\n").next().unwrap_or_default();
    let entry = |line: &str| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    };
    section.lines().filter_map(entry).collect()
}

/// Checks the help of a command and of its subcommands; returns how many commands were checked.
fn check_help(place: &Scratch, path: &str, parent_has_examples: bool) -> usize {
    let said = place.run(format!("{path} --help").trim_start());
    assert_eq!(said.code, Some(0), "{}", said.text());
    let widest = said.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|width| width <= 80), "{}", said.text());
    let has_examples = said.stdout.contains("\nExamples:\n  plimsoll ");
    let subcommands = commands_of(&said.stdout);
    assert!(
        has_examples || parent_has_examples || !subcommands.is_empty(),
        "neither it nor its parent shows an example: {}",
        said.text()
    );
    let inherited = has_examples && !path.is_empty();
    let of_children = subcommands
        .iter()
        .map(|name| check_help(place, format!("{path} {name}").trim_start(), inherited));
    1 + of_children.sum::<usize>()
}

#[test]
fn help_of_every_command_has_an_example_and_fits_80_columns() {
    let place = Scratch::new();
    let count = check_help(&place, "", true);
    assert!(count >= 45, "{count}");
    let help = place.run("--help").stdout;
    assert_eq!(place.run("-h").stdout, help);
    let without_command = place.run("");
    assert_eq!(without_command.code, Some(104));
    assert_eq!(
        (without_command.stdout.as_str(), without_command.stderr),
        ("", help)
    );
    let version = place.run("--version").stdout;
    assert_eq!(version, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_load_with_fewer_users_than_its_workload_needs_is_warned_of() {
    let place = Scratch::new();
    let workload = "workload: ring\nleast_users: 15\nuser: { name: \"user{{ index }}\" }\nsession:\n  \
                    pace: 1s\n  steps:\n    - { step: Ask, request: \"GET /{{ neighbour(8) }}\" }\n";
    let study = "study: ring\ntitle: A ring\nworkload: ring.workload.yaml\nsystem: { groupware: {} }\n\
                 load: { users: 8, ramp: 1s, hold: 2s }\n";
    place.write("ring.study.yaml", study);
    let planned = |workload: &str, users: &str| {
        place.write("ring.workload.yaml", workload);
        let said = place.run(&format!("plan ring.study.yaml --set load.users={users}"));
        assert_eq!(said.code, Some(0), "{}", said.text());
        let warnings = said
            .stdout
            .lines()
            .filter(|line| line.starts_with("warning: "));
        warnings.collect::<Vec<_>>().join("\n")
    };
    let few = planned(workload, "8");
    assert!(
        few.contains("line 2: the workload needs 15 users, and the smallest load has 8 users"),
        "{few}"
    );
    let nothing_said = workload.replace("least_users: 15\n", "");
    let itself = planned(&nothing_said, "8");
    assert!(
        itself.contains("line 6: `neighbour(8)`") && itself.contains("needs 9 or more"),
        "{itself}"
    );
    assert_eq!(planned(&nothing_said, "9"), "");
    assert_eq!(planned(workload, "15"), "");
}

#[test]
fn a_step_that_will_find_nothing_is_warned_of() {
    let place = Scratch::new();
    let study = "study: empty\ntitle: A list that runs empty\nworkload: empty.workload.yaml\nsystem: { groupware: {} }\n\
                 load: { users: 8, ramp: 1s, hold: 2s }\n";
    place.write("empty.study.yaml", study);
    let planned = |arguments: &str, steps: &str| {
        let workload = format!("workload: empty\nsession:\n  pace: 1s\n  steps:\n{steps}");
        place.write("empty.workload.yaml", &workload);
        let said = place.run(&format!("{arguments} empty.study.yaml"));
        assert_eq!(said.code, Some(0), "{}", said.text());
        let all = said.stdout.lines();
        let warnings = all.filter(|line| line.starts_with("warning: "));
        warnings.collect::<Vec<_>>().join("\n")
    };
    let open = "    - { step: Open, request: GET /, capture: { opened: request.path } }\n";
    let twice = format!(
        "{open}    - {{ step: Close, repeat: 2, request: \"PUT {{{{ take(opened) }}}}\" }}\n"
    );
    for arguments in ["plan", "run --dry-run"] {
        let told = planned(arguments, &twice);
        for words in [
            "line 6: the step “Close” will be skipped in 50 % of its rounds",
            "nothing is left in `opened`, which “Open” fills",
        ] {
            assert!(told.contains(words), "{told}");
        }
    }
    assert_eq!(planned("plan", &twice.replace("repeat: 2, ", "")), "");
    assert_eq!(planned("plan", &twice.replace("take(", "pick(")), "");
}

#[test]
fn wrong_arguments() {
    let place = Scratch::new();
    for (name, arguments) in [
        ("unknown_command", "rum"),
        ("unknown_flag", "run study.yaml --sped 3"),
        ("without_a_study", "plan"),
        ("speed_that_is_none", "plan x.study.yaml --speed fast"),
        ("speed_beyond_bounds", "plan x.study.yaml --speed 0"),
        ("override_without_a_value", "plan x.study.yaml --set trials"),
        ("seed_that_is_none", "run x.study.yaml --seed -1"),
        ("load_without_a_url", "run x.study.yaml --users 50"),
        ("header_without_a_value", "bench http://h/ -H Accept"),
        ("rate_that_is_none", "bench http://h/ --rate much"),
        ("no_url_to_bench", "bench ftp://h/"),
        ("unknown_format", "report run --format pdf"),
        ("unknown_kind_of_schema", "schema plan"),
        ("one_run_to_compare", "compare run"),
        ("no_time_to_calibrate", "calibrate --seconds 0"),
        ("certificate_without_a_key", "serve --tls-cert cert.pem"),
        ("demo_with_data", "serve --demo --data x"),
        ("lookup_for_whom", "serve --lookup friends"),
    ] {
        let said = place.run(arguments);
        assert_eq!(said.code, Some(104), "{}", said.text());
        assert_eq!(said.stdout, "", "talk goes to stderr");
        kept!(format!("wrong_{name}"), said);
    }
}

#[test]
fn plans_of_the_studies_that_come_along() {
    let folder = repository().join("studies");
    let names = fs::read_dir(&folder).expect("studies").flatten();
    let mut names: Vec<String> = names
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".study.yaml"))
        .collect();
    names.sort();
    assert!(names.len() >= 13, "{names:?}");
    for name in names {
        let mut said = run(repository(), &folder, &format!("plan studies/{name}"));
        // Whether this machine can run it, and why not, depends on the machine.
        (said.code, said.stderr) = (None, String::new());
        let before = said.stdout.split(LIMITS).next();
        said.stdout = before.unwrap_or_default().to_owned();
        // The first line is the title, of any length.
        let widths = said.stdout.lines().skip(1).map(|line| line.chars().count());
        assert!(
            widths.max().is_some_and(|width| width <= 80),
            "{}",
            said.stdout
        );
        let name = name.trim_end_matches(".study.yaml").replace('-', "_");
        kept!(format!("plan_{name}"), said);
    }
}

#[test]
fn files_that_come_along_are_valid() {
    let folder = repository().join("tests");
    let all = |kind: &str| {
        let entries = fs::read_dir(repository().join(kind)).expect("a folder");
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".yaml"))
            .map(|name| format!("{kind}/{name}"))
            .collect();
        names.sort();
        names.join(" ")
    };
    let said = run(
        repository(),
        &folder,
        &format!("check {} {}", all("studies"), all("workloads")),
    );
    assert_eq!(said.code, Some(0), "{}", said.text());
    kept!("check_of_all", said);
}

const WORKLOAD: &str = "workload: w\nsession:\n  steps:\n    - { step: s, request: GET / }\n";
const STUDY: &str = "study: s\ntitle: A study\nworkload: w\nsystem: { groupware: {} }\n\
                     load: { users: 2, hold: 2s }\n";

#[test]
fn files_with_faults() {
    let place = Scratch::new();
    place.write("w.workload.yaml", WORKLOAD);
    place.write("good.study.yaml", STUDY);
    place.write("empty.study.yaml", "");
    place.write("binary.study.yaml", "study: \u{0}\n");
    place.write("syntax.study.yaml", "study: [s\ntitle: x\n");
    place.write("key.study.yaml", &STUDY.replace("title", "titel"));
    place.write("unit.study.yaml", &STUDY.replace("2s", "2 parsecs"));
    place.write(
        "gone.study.yaml",
        &STUDY.replace("workload: w", "workload: v"),
    );
    place.write(
        "template.workload.yaml",
        &WORKLOAD.replace("GET /", "'GET /{{ nam }}'"),
    );
    place.write("other.txt", "hello\n");
    for name in [
        "empty.study.yaml",
        "binary.study.yaml",
        "syntax.study.yaml",
        "key.study.yaml",
        "unit.study.yaml",
        "gone.study.yaml",
        "template.workload.yaml",
        "other.txt",
        "missing.study.yaml",
    ] {
        let said = place.run(&format!("check {name}"));
        assert_eq!(said.code, Some(104), "{}", said.text());
        let name = name.split('.').next().unwrap_or(name);
        kept!(format!("check_{name}"), said);
    }
    kept!(
        "check_good_and_bad",
        place.run("check good.study.yaml key.study.yaml w.workload.yaml")
    );
    kept!("plan_of_a_bad_file", place.run("plan key.study.yaml"));
    kept!("plan_of_no_file", place.run("plan missing.study.yaml"));
    kept!(
        "plan_with_a_wrong_override",
        place.run("plan good.study.yaml --set trails=3")
    );
    kept!(
        "plan_from_what_is_no_run",
        place.run("plan good.study.yaml --from nothing")
    );
    kept!(
        "run_of_no_file",
        place.run("run missing.study.yaml --state state")
    );
    kept!("run_of_a_workload", place.run("run w.workload.yaml"));
    kept!(
        "run_of_a_bad_workload",
        place.run("run template.workload.yaml")
    );
    kept!(
        "run_of_a_study_elsewhere",
        place.run("run good.study.yaml --url http://127.0.0.1:1")
    );
    kept!(
        "try_of_a_workload_nowhere",
        place.run("try w.workload.yaml")
    );
    kept!(
        "try_of_no_such_user",
        place.run("try good.study.yaml --user 2 --state state")
    );
    kept!(
        "run_with_a_path",
        place.run("run w.workload.yaml --url http://127.0.0.1:1/x")
    );
    kept!(
        "run_without_a_study",
        place.run("run w.workload.yaml --url http://127.0.0.1:1 --users 5 --for 1m --dry-run --state state")
    );
    kept!(
        "run_resumes_nothing",
        place.run("run good.study.yaml --resume --state state")
    );
    fs::create_dir(place.path("taken")).expect("a folder");
    place.write("taken/file", "");
    kept!(
        "run_into_a_folder_that_is_taken",
        place.run("run good.study.yaml --out taken --state state")
    );
}

#[test]
fn schemas_are_those_of_the_documentation() {
    for kind in ["study", "workload", "result"] {
        let said = run(repository(), repository(), &format!("schema {kind}"));
        let kept = repository().join(format!("docs/{kind}.schema.json"));
        assert_eq!(said.stdout, fs::read_to_string(kept).expect("the schema"));
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    }
    let said = run(repository(), repository(), "schema checks");
    let kept = repository().join("docs/checks.md");
    assert_eq!(said.stdout, fs::read_to_string(kept).expect("the list"));
}

#[test]
fn reports_of_kept_runs() {
    let place = Scratch::new();
    for (name, code) in [("workload", 99), ("search", 0), ("comparison", 0)] {
        place.golden(name);
        let said = place.run(&format!("report {name}"));
        assert_eq!(said.code, Some(code), "{}", said.text());
        kept!(format!("report_{name}"), said);
        for file in [
            "report.html",
            "report.md",
            "steps.csv",
            "comparisons.csv",
            "junit.xml",
        ] {
            assert!(place.path(name).join(file).is_file(), "{file}");
        }
    }
    for format in ["md", "csv", "junit", "github", "k6"] {
        let said = place.run(&format!("report workload --format {format}"));
        kept!(format!("report_as_{format}"), said);
    }
    let page = place.run("report search --format html").stdout;
    let file = fs::read_to_string(place.path("search/report.html")).expect("the page");
    assert_eq!(page, file);
    let json = place.run("report search --format json").stdout;
    let file = fs::read_to_string(place.path("search/result.json")).expect("the result");
    assert_eq!(json, file);
}

#[test]
fn runs_over_time() {
    let place = Scratch::new();
    for name in ["workload", "search", "comparison"] {
        place.golden_as(&format!("golden-{name}"), name);
    }
    kept!("runs", place.run("runs ."));
    kept!(
        "runs_of_a_study",
        place.run("runs . --study golden-search --format md")
    );
    kept!("runs_without_any", place.run("runs . --search elsewhere"));
    kept!("runs_of_one_archive", place.run("runs golden-search"));
    kept!("runs_of_nothing", place.run("runs"));
    let page = place.run("runs . --format html").stdout;
    assert!(
        page.contains("href=\"./golden-search/report.html\""),
        "{page}"
    );
    let json = place.run("runs . --format json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["studies"].as_array().map(Vec::len), Some(3));
    // Without its result, and with a truncated one, a run is analysed with the same output.
    let result = place.path("golden-search/result.json");
    fs::write(&result, "{\"schema\":").expect("written");
    let again = place.run("runs . --format json");
    assert_eq!(serde_json::from_str(&again.stdout).ok(), Some(json.clone()));
    fs::remove_file(result).expect("removed");
    let again = place.run("runs . --format json");
    assert!(
        again.stderr.contains("reading 1 archive without"),
        "{}",
        again.stderr
    );
    assert_eq!(serde_json::from_str(&again.stdout).ok(), Some(json));
    fs::write(place.path("golden-search/plan.json"), "{").expect("written");
    kept!(
        "runs_with_a_damaged_archive",
        place.run("runs . --study golden-search")
    );
}

#[test]
fn reports_are_served_to_who_knows_the_address() {
    let place = Scratch::new();
    place.golden_as("a search", "search");
    place.golden_as("workload", "workload");
    let mut serving = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["serve-reports", "."])
        .current_dir(place.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let stdout = serving.stdout.take().expect("its stdout");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let url = line.trim().strip_prefix("reports: ").expect("an address");
    let agent = ureq::Agent::config_builder().http_status_as_error(false);
    let agent: ureq::Agent = agent.build().into();
    let get = |path: &str| {
        let mut answer = agent.get(format!("{url}{path}")).call().expect("an answer");
        let policy = answer.headers().get("content-security-policy").cloned();
        let text = answer.body_mut().read_to_string().expect("a text");
        (answer.status().as_u16(), text, policy)
    };
    let (status, list, policy) = get("");
    assert!(
        status == 200 && list.contains("href=\"run/a%20search\""),
        "{list}"
    );
    assert!(policy.is_some_and(|policy| {
        policy
            .to_str()
            .is_ok_and(|of| of.contains("default-src 'none'"))
    }));
    let (status, report, _) = get("run/a%20search");
    assert_eq!(status, 200);
    assert!(report.contains("load line"), "{report}");
    assert_eq!(get("run/elsewhere").0, 404);
    assert_eq!(get("run/..%2Fsecret").0, 404);
    let address = url
        .trim_end_matches('/')
        .rsplit_once('/')
        .expect("a token")
        .0;
    let bare = agent.get(format!("{address}/")).call().expect("an answer");
    assert_eq!(
        bare.status().as_u16(),
        404,
        "without the token there is nothing"
    );
    serving.kill().expect("it ends");
    serving.wait().expect("it has ended");
}

#[test]
fn runs_beside_each_other() {
    let place = Scratch::new();
    for name in ["workload", "search", "comparison"] {
        place.golden(name);
    }
    kept!(
        "compare_with_itself",
        place.run("compare comparison comparison")
    );
    kept!(
        "compare_too_few_trials",
        place.run("compare workload workload --format md")
    );
    kept!(
        "compare_as_csv",
        place.run("compare comparison comparison --format csv")
    );
    kept!(
        "compare_other_studies",
        place.run("compare workload search")
    );
    kept!(
        "compare_a_run_beside_itself",
        place.run("compare comparison comparison -- comparison")
    );
    kept!(
        "compare_with_nothing",
        place.run("compare workload nothing")
    );
    // Copies of the compared runs are not earlier runs, and two copies of another one are one.
    let copy = |name: &str, started: &str| {
        place.golden("comparison");
        let manifest = place.path("comparison/manifest.json");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        fs::write(&manifest, text.replace("2026-11-22T05:32:59", started)).expect("written");
        fs::rename(place.path("comparison"), place.path(name)).expect("renamed");
    };
    fs::remove_dir_all(place.path("comparison")).expect("removed");
    for (name, started) in [
        ("a", "2026-11-22T05:32:59"),
        ("b", "2026-11-22T05:32:59"),
        ("copy", "2026-11-22T05:32:59"),
        ("earlier", "2026-11-21T05:32:59"),
        ("earlier-copy", "2026-11-21T05:32:59"),
    ] {
        copy(name, started);
    }
    let said = place.run("compare a b");
    assert!(
        said.stderr.starts_with("reading 1 earlier run"),
        "{}",
        said.stderr
    );
    assert!(
        said.stdout.contains("\n1 earlier run of the same study"),
        "{}",
        said.stdout
    );
    let without = place.run("compare a b --no-history");
    assert!(without.stderr.is_empty(), "{}", without.stderr);
}

#[test]
fn folders_that_are_no_runs() {
    let place = Scratch::new();
    fs::create_dir(place.path("empty")).expect("a folder");
    kept!("report_of_nothing", place.run("report nothing"));
    kept!("report_of_an_empty_folder", place.run("report empty"));
    place.golden("workload");
    let manifest = place.path("workload/manifest.json");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    place.write(
        "workload/manifest.json",
        &text.replace("plimsoll.archive/1", "plimsoll.archive/99"),
    );
    kept!("report_of_a_newer_archive", place.run("report workload"));
    place.write("workload/manifest.json", &text);
    place.write("workload/trials/001/windows.jsonl", "{\n");
    kept!("report_of_a_damaged_archive", place.run("report workload"));
}

#[test]
fn nothing_to_put_back() {
    let place = Scratch::new();
    let said = place.run("restore --state state");
    assert_eq!(said.code, Some(0));
    kept!("restore_of_nothing", said);
}

#[test]
fn servers_that_do_not_start() {
    let place = Scratch::new();
    kept!(
        "serve_checks_no_store",
        place.run("serve --check --data nothing")
    );
    kept!(
        "serve_beyond_loopback_without_tls",
        place.run("serve --listen 0.0.0.0:0 --data data")
    );
    kept!(
        "serve_with_no_certificate",
        place.run("serve --listen 127.0.0.1:0 --data data --tls-cert no.pem --tls-key no.key")
    );
}

/// It refers to a file below its folder, to one outside of it, and to a link that leads outside.
const BOATS: &str = "openapi: 3.0.3
paths:
  /boats:
    post:
      requestBody: { content: { application/json: { schema: { $ref: kinds/boat.yaml } } } }
      parameters: [{ $ref: ../kept.yaml#/Kept }, { $ref: link.yaml#/Kept }]
";

#[test]
fn a_description_is_imported_with_the_files_that_it_refers_to() {
    let place = Scratch::new();
    fs::create_dir_all(place.path("api/kinds")).expect("a folder");
    place.write(
        "kept.yaml",
        "Kept: { name: hidden, in: query, required: true }\n",
    );
    place.write(
        "api/kinds/boat.yaml",
        "properties: { name: { example: Argo } }\n",
    );
    place.write("api/openapi.yaml", BOATS);
    std::os::unix::fs::symlink("../kept.yaml", place.path("api/link.yaml")).expect("a link");
    let said = place.run("import openapi api/openapi.yaml -o -").text();
    assert!(!said.contains("hidden"), "{said}");
    let outside = "`../kept.yaml#/Kept` stands for is left out";
    let linked = "needs it: it is no file in the description's folder";
    for words in ["name: \"Argo\"", outside, linked] {
        assert!(said.contains(words), "{words}: {said}");
    }
    fs::write(place.path("packed.har"), [0x1f, 0x8b, 8, 0]).expect("written");
    let said = place.run("import har packed.har").text();
    assert!(said.contains("it is compressed (gzip)"), "{said}");
}
