//! The live page of a real run: whether it has one, and in a real browser that it updates by itself, and its buttons
//! control the run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use plimsoll_tests::browser::Driver;
use plimsoll_tests::{program, repository};
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(120);

/// A run of many short trials, with its lines.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

/// The arguments, separated by spaces.
const STUDY: &str = "studies/calendar.study.yaml --speed 100 --set matrix.users=[10] --set trials=30 \
                     --set repeats=0 --patience 0";

impl Running {
    fn start(out: &Path) -> Self {
        let mut child = Command::new(program())
            .arg("run")
            .args(STUDY.split_whitespace())
            .args(["--live", "--out"])
            .arg(out)
            .current_dir(repository())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = child.stderr.take().expect("it is piped");
        Self::saying(child, output)
    }

    /// The same on a terminal, which `script` makes.
    fn on_a_terminal(out: &Path, flags: &str, variables: &[(&str, &str)]) -> Self {
        let (program, out) = (program().display().to_string(), out.display());
        let words = format!("exec '{program}' run {STUDY} {flags} --out '{out}'");
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &words])
            .arg("/dev/null")
            .current_dir(repository())
            .env("TERM", "xterm")
            // Lines in place of the progress panel.
            .env("NO_COLOR", "1")
            .env("SHELL", "/bin/sh")
            .env_remove("CI")
            .env_remove("SSH_CONNECTION")
            .env_remove("PLIMSOLL_LIVE")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` of Debian's bsdutils starts");
        let output = child.stdout.take().expect("it is piped");
        Self::saying(child, output)
    }

    fn saying(child: Child, output: impl Read + Send + 'static) -> Self {
        let (sender, lines) = sync_channel(10_000);
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        Self { child, lines }
    }

    /// Presses Ctrl-C on the terminal, and waits for the end.
    fn interrupted(mut self) {
        let mut keys = self.child.stdin.take().expect("it is piped");
        keys.write_all(b"\x03").expect("the terminal is there");
        let ended = self.child.wait().expect("the run ends");
        assert_eq!(ended.code(), Some(105));
    }

    /// The next line with these words in it.
    fn line(&self, words: &str) -> String {
        self.until(words).pop().expect("it was found")
    }

    /// All lines up to the first with these words.
    fn until(&self, words: &str) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        while said.last().is_none_or(|line| !line.contains(words)) {
            let line = self.lines.recv_timeout(LIMIT);
            said.push(line.unwrap_or_else(|_| panic!("no line with {words:?} in {said:?}")));
        }
        said
    }

    fn page(&self) -> String {
        let line = self.line("live page: ");
        line.split_once("live page: ")
            .expect("it was found")
            .1
            .to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the page's answer to a client that knows its address.
fn answer(page: &str) -> String {
    let rest = page.trim().strip_prefix("http://").expect("an address");
    let (address, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    answer
}

#[test]
fn a_run_on_a_terminal_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder for the archive");
    let running = Running::on_a_terminal(&folder.path().join("run"), "", &[]);
    let page = running.page();
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
    running.line("archive: ");
    let answer = answer(&page);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("calendar-load"), "{answer}");
    running.interrupted();
}

#[test]
fn pipelines_and_who_wants_none_have_no_page() {
    for (flags, variables) in [
        ("", &[("CI", "true")][..]),
        ("", &[("PLIMSOLL_LIVE", "off")][..]),
        ("--no-live", &[][..]),
    ] {
        let folder = tempfile::tempdir().expect("a folder for the archive");
        let running = Running::on_a_terminal(&folder.path().join("run"), flags, variables);
        // The address of a page would be before it.
        let said = running.until("archive: ");
        let has_page = said.iter().any(|line| line.contains("live page"));
        assert!(!has_page, "{flags} {variables:?}: {said:?}");
        running.interrupted();
    }
}

#[test]
fn the_page_grows_and_steers_the_run() {
    let Some(driver) = Driver::start("live page") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder for the archive");
    let mut running = Running::start(&folder.path().join("run"));
    let page = running.page();
    running.line("ramp");
    let options = json!({
        "binary": driver.browser(),
        "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    });
    let capabilities = json!({ "goog:chromeOptions": options });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities.as_object().expect("an object").clone())
            .connect(&driver.url())
            .await
            .expect("the browser starts");
        let on_page = client.clone();
        let lived = tokio::spawn(async move { steer(&on_page, &page).await }).await;
        let _ = client.close().await;
        if let Err(error) = lived {
            std::panic::resume_unwind(error.into_panic());
        }
    });
    running.line("It was skipped");
    running.line("pauses before its next trial");
    running.line("interrupted: ");
    let ended = running.child.wait().expect("the run ends");
    assert_eq!(ended.code(), Some(105));
}

/// Watches, pauses, skips, and stops.
async fn steer(client: &Client, page: &str) {
    client.goto(page).await.expect("the page opens");
    see(client, "//*[@id='link'][.='live']").await;
    // Neither waits for a reload: events are pushed.
    see(
        client,
        "//*[@id='charts']//*[local-name()='path'][@stroke='var(--first)']",
    )
    .await;
    see(client, "//*[@id='report']//*[contains(@class,'pill')]").await;
    stays_sorted(client).await;
    press(client, "Pause before the next trial").await;
    see(client, "//button[.='Go on']").await;
    by_keyboard(client).await;
    see(
        client,
        "//*[@id='log']//li[contains(., 'pauses before its next trial')]",
    )
    .await;
    // Open and focused elements stay so while parts are replaced.
    press(client, "Stop the run…").await;
    let script = "return document.scrollingElement.scrollWidth <= innerWidth";
    let fits = client
        .execute(script, vec![])
        .await
        .expect("it is measured");
    assert_eq!(fits, json!(true), "the page is as wide as the window");
    press(client, "Stop the run").await;
    see(client, "//*[@id='link'][.='the run is over']").await;
    see(client, "//*[@id='progress'][contains(., 'interrupted')]").await;
}

/// A table that a person sorted stays sorted when the server's new part replaces it.
async fn stays_sorted(client: &Client) {
    see(client, "//*[@id='steps']//thead//th[6]/button").await;
    let script = "document.querySelector('#steps thead th:nth-child(6) button').click();
        const part = document.getElementById('steps').cloneNode(true);
        for (const head of part.querySelectorAll('thead th')) {
            head.textContent = head.textContent;
            head.removeAttribute('aria-sort');
        }
        for (const copy of part.querySelectorAll('.copy')) copy.remove();
        put('steps', part.innerHTML);
        return document.querySelector('#steps thead th:nth-child(6)').getAttribute('aria-sort')";
    assert_eq!(told(client, script).await, json!("descending"));
}

/// The Tab key visits the buttons in the order of the page. The focus stays when a button was pressed and when the
/// controls are replaced, and never moves on when its button is removed.
async fn by_keyboard(client: &Client) {
    const TAB: &str = "\u{e004}";
    const ENTER: &str = "\u{e007}";
    let gone = "document.getElementById('skipping').open = true;
        document.getElementById('skip').focus();
        const part = document.getElementById('controls').cloneNode(true);
        part.querySelector('#skipping').remove();
        put('controls', part.innerHTML);
        return [document.activeElement.id, document.getElementById('stopping').open]";
    let script = format!(
        "const whole = controls.innerHTML; const it = (() => {{ {gone} }})();
        put('controls', whole); document.getElementById('skipping').open = false;
        document.getElementById('pause').focus(); return it"
    );
    assert_eq!(told(client, &script).await, json!(["controls", false]));
    for (key, on) in [
        (TAB, "to-skip"),
        (ENTER, "to-skip"),
        (TAB, "skip"),
        // It asks for confirmation once: the same key again opens the question.
        (ENTER, "to-skip"),
    ] {
        type_key(client, key).await;
        see_focus(client, on).await;
    }
    see(client, "//*[@id='skipping'][not(@open)]").await;
}

async fn told(client: &Client, script: &str) -> serde_json::Value {
    let told = client.execute(script, vec![]).await;
    told.expect("the page can be asked")
}

/// The focused element may be replaced between lookup and key.
async fn type_key(client: &Client, key: &str) {
    for _ in 0..20 {
        let found = client.active_element().await;
        let Ok(active) = found else { continue };
        if active.send_keys(key).await.is_ok() {
            return;
        }
    }
    panic!("{key:?} can't be typed");
}

async fn see_focus(client: &Client, id: &str) {
    let path = format!("//*[@id='{id}']");
    see(client, &path).await;
    for _ in 0..1200 {
        if told(client, "return document.activeElement.id").await == json!(id) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let active = told(client, "return document.activeElement.outerHTML").await;
    panic!("{id} has not the focus, but {active}");
}

async fn see(client: &Client, path: &str) {
    let waited = client
        .wait()
        .at_most(LIMIT)
        .for_element(Locator::XPath(path));
    if let Err(error) = waited.await {
        let text = client
            .find(Locator::Css("body"))
            .await
            .expect("a body")
            .text()
            .await;
        panic!("{path}: {error}\n{}", text.unwrap_or_default());
    }
}

/// A part may be replaced between lookup and press.
async fn press(client: &Client, name: &str) {
    let path = format!("//*[self::button or self::summary][normalize-space()='{name}']");
    for _ in 0..20 {
        see(client, &path).await;
        let found = client.find(Locator::XPath(&path)).await;
        let Ok(button) = found else { continue };
        if button.click().await.is_ok() {
            return;
        }
    }
    panic!("{name} can't be pressed");
}
