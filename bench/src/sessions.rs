//! CPU time of the generator per request in full sessions (a sign-in that sets a cookie, a list whose entries are
//! captured, templates, two JSON bodies, checked answers): beside `wrk`, once with its plain GET of 1 KB, and once with
//! a Lua script that sends messages of the same length and ignores the answers. Then two workers of one program beside
//! two programs with a worker each, which share nothing: the difference is the cost of contention between workers.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab_driver::Assignment;
use nix::sys::resource::UsageWho;

use crate::common::{Error, cpu_us, median};
use crate::driver::{
    CONNECTIONS, Usage, beside, drive, drive_to_the_end, number_after, peer, pinned, run, wrk,
};
use crate::nginx::Nginx;

/// First argument of this program when it is a load generator of full sessions.
pub(crate) const CHILD: &str = "--sessions";

const ROUNDS: usize = 5;
const SECONDS: u64 = 4;
const SERVER_CORE: usize = 1;
/// Entries of the list in the answer.
const ENTRIES: usize = 12;

const SESSION: &str = r#"workload: sessions
user:
  name: "user{{ pad(index, 5) }}"
session:
  steps:
    - step: Sign in
      wait: 0s
      request: POST /login
      form: { username: "{{ name }}", password: "{{ name }}-secret" }
      expect: 200
    - step: List
      wait: 0s
      request: GET /entries?of={{ name }}
      expect: 200
      capture: { entries: "$.entries[*].href" }
    - step: Open one
      wait: 0s
      request: GET {{ pick(entries) }}
      expect: { status: 200, json: { "$.state": open } }
      capture: { etag: "$.etag" }
    - step: Create
      wait: 0s
      request: POST /events
      headers: { If-Match: "{{ etag }}" }
      json:
        id: "{{ uuid() }}"
        summary: Meeting of {{ name }}
        location: Room {{ int_in(1, 40) }}
        start: { date: "{{ date_in(0, 13) }}", time: "{{ pad(int_in(8, 16), 2) }}:00:00", utc: true }
        organizer: { displayName: "{{ name }}", email: "{{ name }}@localhost" }
      expect: 201
      capture: { event: "$.href" }
    - step: Change
      wait: 0s
      request: PUT {{ event }}
      json: { summary: "Meeting of {{ name }}, moved", start: { date: "{{ date_in(0, 13) }}", utc: true } }
      expect: 200
    - step: Read it
      wait: 0s
      request: GET {{ event }}
      expect: { status: 200, json: { "$.state": open } }
"#;

/// Returns nginx's answers to it.
fn locations() -> String {
    let mut entries = String::new();
    for number in 0..ENTRIES {
        let comma = if number > 0 { "," } else { "" };
        // Writing to a string can't fail.
        let _infallible = write!(
            entries,
            r#"{comma}{{"href":"/entries/{number}","summary":"Meeting {number}","count":{number}.5,"seen":false}}"#
        );
    }
    let text = "x".repeat(600);
    let one =
        format!(r#"{{"etag":"17-a","state":"open","text":"{text}","people":[{{"name":"a"}}]}}"#);
    format!(
        "location = /login {{ add_header Set-Cookie 'session=0123456789abcdef; Path=/; HttpOnly'; return 200 '{{}}'; }}\n\
         location = /entries {{ return 200 '{{\"entries\":[{entries}]}}'; }}\n\
         location = /events {{ return 201 '{{\"href\":\"/events/17\",\"state\":\"open\"}}'; }}\n\
         location / {{ return 200 '{one}'; }}\n\
         location = /plain {{ return 200 '{}'; }}",
        "x".repeat(1000)
    )
}

/// The same messages for `wrk`, with templates and cookies filled in, one after another.
const SCRIPT: &str = r#"
local name = "user00017"
local form = { ["Content-Type"] = "application/x-www-form-urlencoded" }
local cookie = { ["Cookie"] = "session=0123456789abcdef" }
local json = { ["Cookie"] = cookie.Cookie, ["Content-Type"] = "application/json" }
local matching = { ["Cookie"] = cookie.Cookie, ["Content-Type"] = "application/json", ["If-Match"] = "17-a" }
local messages, at = {}, 0
init = function(args)
  messages = {
    wrk.format("POST", "/login", form, "username=" .. name .. "&password=" .. name .. "-secret"),
    wrk.format("GET", "/entries?of=" .. name, cookie),
    wrk.format("GET", "/entries/7", cookie),
    wrk.format("POST", "/events", matching,
      '{"id":"0b57f5ac-6b1b-4a3c-9a2d-0c8f0e0f4a11","summary":"Meeting of ' .. name .. '","location":"Room 17",' ..
      '"start":{"date":"2026-01-12","time":"10:00:00","utc":true},' ..
      '"organizer":{"displayName":"' .. name .. '","email":"' .. name .. '@localhost"}}'),
    wrk.format("PUT", "/events/17", json,
      '{"summary":"Meeting of ' .. name .. ', moved","start":{"date":"2026-01-12","utc":true}}'),
    wrk.format("GET", "/events/17", cookie),
  }
end
request = function()
  at = at % #messages + 1
  return messages[at]
end
"#;

/// Prints the comparisons.
pub(crate) fn compare() -> Result<(), Error> {
    let nginx = Nginx::start_with(&locations(), &["-c", &SERVER_CORE.to_string()], None)?;
    let (url, plain) = (nginx.url(), format!("{}/plain", nginx.url()));
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("session.lua");
    std::fs::write(&script, SCRIPT)?;
    println!("sessions: CPU per request of full sessions, {CONNECTIONS} users, one core");
    let ours = || sessions(&url);
    beside("wrk, plain GET", || wrk(&plain, None), ours)?;
    beside("wrk, same messages", || wrk(&url, Some(&script)), ours)?;
    drop(nginx);
    println!("sessions: CPU per request of full sessions, two workers beside two programs");
    let nginx = Nginx::start_with(&locations(), &["-c", "0-1023"], None)?;
    workers(&nginx.url())
}

fn sessions(url: &str) -> Result<Usage, Error> {
    let program = std::env::current_exe()?;
    let mut command = pinned(&program.to_string_lossy());
    command.args(arguments(url, CONNECTIONS, "0"));
    let (text, cpu_us) = run(command)?;
    let requests = number_after(&text, "requests ")?;
    Ok(Usage { requests, cpu_us })
}

fn arguments(url: &str, users: u32, cores: &str) -> [String; 4] {
    [CHILD, url, &users.to_string(), cores].map(str::to_owned)
}

/// Compares one program with a worker on each of two cores with two programs of one worker each.
fn workers(url: &str) -> Result<(), Error> {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let together = at_once(url, &[(CONNECTIONS * 2, "0,1")])?;
        let apart = at_once(url, &[(CONNECTIONS, "0"), (CONNECTIONS, "1")])?;
        // The first round warms up.
        if round > 0 {
            one.push(together.us_per_request());
            two.push(apart.us_per_request());
        }
    }
    let ratios = one.iter().zip(&two).map(|(one, two)| one / two);
    let ratio = median(ratios.collect());
    println!("  two programs                     {:>9.2} us", median(two));
    println!(
        "  two workers                      {:>9.2} us   {ratio:.2} x two programs (target <= 1.11)",
        median(one)
    );
    Ok(())
}

/// Returns the resources that concurrent programs used.
fn at_once(url: &str, programs: &[(u32, &str)]) -> Result<Usage, Error> {
    let program = std::env::current_exe()?;
    let before = cpu_us(UsageWho::RUSAGE_CHILDREN)?;
    let start = |(users, cores): &(u32, &str)| {
        let mut command = Command::new(&program);
        command.args(arguments(url, *users, cores));
        command.stdout(Stdio::piped()).spawn()
    };
    let running: Result<Vec<Child>, _> = programs.iter().map(start).collect();
    let mut requests = 0.0;
    for child in running? {
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        requests += number_after(&text, "requests ")?;
    }
    let cpu_us = cpu_us(UsageWho::RUSAGE_CHILDREN)? - before;
    Ok(Usage { requests, cpu_us })
}

/// The generator as a separate program: `--sessions URL USERS CORE[,CORE]`, with a worker on each core.
///
/// # Errors
/// When the load can't run, or any request failed: the figures would be wrong.
pub(crate) fn child(args: &[String]) -> Result<(), Error> {
    let [url, users, cores] = args else {
        return Err(peer("--sessions takes URL USERS CORE[,CORE]"));
    };
    let cores: Result<Vec<usize>, _> = cores.split(',').map(str::parse).collect();
    let drive = Assignment {
        users: users.parse().map_err(peer)?,
        cores: cores.map_err(peer)?,
        hold: Duration::from_secs(SECONDS),
        ..drive(url, SESSION.to_owned())?
    };
    let sum = drive_to_the_end(drive, false)?;
    match sum.errors {
        0 => println!("requests {}", sum.requests),
        errors => {
            return Err(peer(format!(
                "{errors} of {} requests failed",
                sum.requests
            )));
        }
    }
    Ok(())
}
