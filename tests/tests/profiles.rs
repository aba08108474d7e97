//! `plimsoll profile` on an archive whose first trials have profiles, which Go's runtime wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use plimsoll_tests::browser::Driver;
use plimsoll_tests::program;

/// 38 samples: 50 % in `main.work`, 39 % in `main.fib`.
const PROFILE: &str = "../lab/profile/tests/data/go-runtime.pb.gz";

/// 20 waits of 5 ms for a lock in `under_the_lock` in each second, 4 for a disk, and 100 for sockets.
const WAITS: &str = "../lab/profile/tests/data/waits.pb.gz";

struct Archive {
    folder: tempfile::TempDir,
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

impl Archive {
    /// A run of two cells, whose trials 1 (20,000 bytes) and 2 (100 bytes) have a profile.
    fn new() -> Self {
        let archive = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        copy(&own.join("golden/comparison"), &archive.run());
        for trial in ["001", "002"] {
            fs::copy(own.join(PROFILE), archive.profile(trial)).unwrap();
        }
        archive
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn profile(&self, trial: &str) -> PathBuf {
        self.run().join("trials").join(trial).join("cpu.pb.gz")
    }

    fn plimsoll(&self, command: &str, arguments: &[&str]) -> Output {
        Command::new(program())
            .current_dir(self.folder.path())
            .args([command, "run"])
            .args(arguments)
            .output()
            .unwrap()
    }

    fn shown(&self, arguments: &[&str]) -> String {
        let output = self.plimsoll("profile", arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is said of a mistake, and that it ends with 104.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.plimsoll("profile", arguments);
        assert_eq!(output.status.code(), Some(104));
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn shows_the_functions_of_each_cell_and_of_a_trial() {
    let archive = Archive::new();
    let text = archive.shown(&[]);
    assert!(
        text.starts_with("bytes 100, 1 trial: 0.719 ms of CPU per transaction, 38 samples\n"),
        "{text}"
    );
    assert!(
        text.contains("bytes 20000, 1 trial: 1.01 ms of CPU per transaction, 38 samples\n"),
        "{text}"
    );
    // Half of 0.719 ms.
    assert!(
        text.contains("  50.0     359.50    55.3     397.35  main.work\n"),
        "{text}"
    );
    let of_cell = archive.shown(&["--cell", "bytes=20000", "--top", "1"]);
    assert!(
        of_cell.starts_with("bytes 20000,") && of_cell.contains("further functions"),
        "{of_cell}"
    );
    assert_eq!(
        archive.shown(&["--cell", "bytes 20000", "--top", "1"]),
        of_cell
    );
    assert!(
        archive
            .shown(&["--trial", "1"])
            .starts_with("trial 1, bytes 20000: 1.01 ms")
    );
}

#[test]
fn writes_the_formats_of_other_tools() {
    let archive = Archive::new();
    let folded = archive.shown(&["--trial", "1", "--format", "folded"]);
    assert!(
        folded.starts_with("[unnamed threads];runtime.main;main.main;runtime/pprof.Do;"),
        "{folded}"
    );
    for format in ["speedscope", "firefox"] {
        let text = archive.shown(&["--cell", "bytes=100", "--format", format]);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(json.to_string().contains("main.fib"));
    }
    let into = ["--trial", "1", "--format", "pprof", "--output", "cpu.pb.gz"];
    assert_eq!(archive.shown(&into), "");
    let file = archive.folder.path().join("cpu.pb.gz");
    assert!(fs::read(&file).unwrap().starts_with(&[0x1f, 0x8b]));
    // What was written is a profile again.
    fs::copy(&file, archive.profile("003")).unwrap();
    let again = archive.shown(&["--trial", "3", "--format", "folded"]);
    assert_eq!(again, folded);
    assert!(
        archive
            .refused(&into)
            .contains("cpu.pb.gz is there already")
    );
    archive.shown(&[&into[..], &["--force"]].concat());
}

#[test]
fn shows_waits_in_all_formats() {
    let archive = Archive::new();
    let none = archive.refused(&["--waits"]);
    assert!(
        none.contains("no trial of this run has a profile of waits"),
        "{none}"
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(WAITS);
    let into = archive.profile("001").with_file_name("waits.pb.gz");
    fs::copy(file, into).unwrap();
    let table = archive.shown(&["--waits"]);
    assert!(table.starts_with("bytes 20000, 1 trial: "), "{table}");
    let (waits, for_work) = table.split_once("waits for work:\n").expect("both");
    let is_first = waits.contains("under_the_lock, ended by http-* in handle (100 %)");
    assert!(
        is_first && waits.contains("  disk  ") && for_work.contains("  poll  "),
        "{table}"
    );
    let of_trial = ["--waits", "--trial", "1"];
    let folded = archive.shown(&[&of_trial[..], &["--format", "folded"]].concat());
    assert!(
        folded.contains("http-*;main;serve;under_the_lock;pthread_mutex_lock;futex_wait "),
        "{folded}"
    );
    for format in ["speedscope", "firefox"] {
        let text = archive.shown(&[&of_trial[..], &["--format", format]].concat());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(json.to_string().contains("under_the_lock"));
    }
    let output = ["--format", "pprof", "--output", "waits.pb.gz"];
    assert_eq!(archive.shown(&[&of_trial[..], &output].concat()), "");
    assert!(archive.folder.path().join("waits.pb.gz").is_file());
    let report = archive.plimsoll("report", &["--format", "md"]);
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("## What threads wait for"), "{text}");
}

#[test]
fn says_what_there_is_instead() {
    let archive = Archive::new();
    let text = archive.refused(&["--trial", "3"]);
    assert!(
        text.contains("trial 3 has no CPU profile") && text.contains("profile: true"),
        "{text}"
    );
    let text = archive.refused(&["--trial", "300"]);
    assert!(text.contains("no complete trial 300"), "{text}");
    let text = archive.refused(&["--cell", "bytes=7"]);
    assert!(
        text.contains("its cells are bytes 100, bytes 20000"),
        "{text}"
    );
    let text = archive.refused(&["--format", "folded"]);
    assert!(
        text.contains("2 cells have profiles") && text.contains("--cell"),
        "{text}"
    );
    for trial in ["001", "002"] {
        fs::remove_file(archive.profile(trial)).unwrap();
    }
    let text = archive.refused(&[]);
    assert!(
        text.contains("no trial of this run has a CPU profile"),
        "{text}"
    );
}

#[test]
fn a_damaged_profile_leaves_the_report_as_it_is() {
    let archive = Archive::new();
    fs::write(archive.profile("001"), "nonsense").unwrap();
    let output = archive.plimsoll("profile", &["--trial", "2"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains("trial 1: cpu.pb.gz: "),
        "{said}"
    );
    let report = archive.plimsoll("report", &["--format", "md"]);
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(report.status.success());
    assert!(text.contains("The CPU profile can't be read"), "{text}");
    assert!(text.contains("## Where the CPU time goes"), "{text}");
}

/// Waits until a script in the page is true.
async fn until(page: &Client, script: &str) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(120);
    loop {
        let done = page.execute(script, Vec::new()).await.unwrap();
        if done.as_bool() == Some(true) {
            return;
        }
        assert!(tokio::time::Instant::now() < limit, "never true: {script}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_flame_graph_zooms_and_searches_in_a_browser() {
    let Some(driver) = Driver::start("flame graph") else {
        return;
    };
    let archive = Archive::new();
    let page = archive.plimsoll("report", &["--format", "html"]).stdout;
    let path = archive.folder.path().join("report.html");
    fs::write(&path, page).unwrap();
    let options = serde_json::json!({
        "binary": driver.browser(),
        "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=390,900"],
    });
    let mut capabilities = serde_json::Map::new();
    capabilities.insert("goog:chromeOptions".to_owned(), options);
    let page = ClientBuilder::new(HttpConnector::new())
        .capabilities(capabilities)
        .connect(&driver.url())
        .await
        .expect("the browser starts");
    let (on_page, address) = (page.clone(), format!("file://{}", path.display()));
    let explored = tokio::spawn(async move { explore(&on_page, &address).await }).await;
    let _ = page.close().await;
    if let Err(error) = explored {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// Zooms into a function, searches another one, and goes back to the whole.
async fn explore(page: &Client, address: &str) {
    page.goto(address).await.unwrap();
    until(
        page,
        "return document.documentElement.scrollWidth <= innerWidth",
    )
    .await;
    let frame = "const graph = document.querySelector('svg.flames');\
         const frame = (name) => [...graph.querySelectorAll('svg')].find((one) => \
         one.querySelector('title').textContent.split('\\n')[0] === name);";
    let width = |of: &str| format!("{frame} return frame('{of}').getAttribute('width')");
    let narrow = page.execute(&width("main.work"), Vec::new()).await.unwrap();
    assert_eq!(narrow.as_str().map(|width| &width[..4]), Some("55.2"));
    let click = format!("{frame} frame('main.work').dispatchEvent(new MouseEvent('click'))");
    page.execute(&click, Vec::new()).await.unwrap();
    until(page, &format!("{} === '100%'", width("main.work"))).await;
    until(
        page,
        &format!("{frame} return frame('main.fib').style.display === 'none'"),
    )
    .await;
    let input = page.find(Locator::Css(".flame input")).await.unwrap();
    input.send_keys("MAIN.FIB").await.unwrap();
    until(
        page,
        "return document.querySelector('.flame .seek span').textContent.endsWith(' frames, 44.7 %')",
    )
    .await;
    page.find(Locator::Css(".flame button"))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
    until(
        page,
        &format!("{frame} return frame('main.fib').style.display === ''"),
    )
    .await;
}
