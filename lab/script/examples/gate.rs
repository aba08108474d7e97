//! Measures what users of scripts cost: memory of a waiting user, time of turns, CPU of an iteration.
//!
//! `cargo run --release -p lab-script --example gate [memory|turns|cpu] [users]`

use std::time::{Duration, Instant};

use lab_script::{
    Answer, Call, Facts, Files, Limits, Outcome, Program, Request, Runtime, Turn, Variables,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

struct One(&'static str);

impl Files for One {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        match name {
            "main.js" => Ok(self.0.as_bytes().to_vec()),
            _ => Err("there is no such file".to_owned()),
        }
    }
}

const LEVEL_1: &str = r#"
import http from 'k6/http';
import { check, sleep } from 'k6';
export default function () {
  const r = http.get(`http://shop/items/${1}`);
  check(r, { ok: (r) => r.status === 200, id: (r) => r.json().id === 7, name: (r) => r.json().name.length > 2 });
  sleep(10);
}
"#;

const LEVEL_2: &str = r#"
import http from 'k6/http';
import { check, sleep } from 'k6';
let visits = 0;
let token = '';
function visit(path) {
  const r = http.get(`http://shop${path}/${visits}`);
  const item = r.json();
  check(r, { ok: (r) => r.status === 200, id: () => item.id === 7 });
  token = item.name;
  sleep(10);
}
export default function () {
  visits++;
  visit('/items');
}
"#;

const WHOLE: &str = r#"
import http from 'k6/http';
import { check, sleep } from 'k6';
export default function () {
  const r = http.get(`http://shop/items/${__ITER}`);
  const item = r.json();
  check(r, { ok: (r) => r.status === 200, id: () => item.id === 7, stock: () => item.stock > 1 });
  sleep(10);
}
"#;

const PATHS: &str = r#"
import http from 'k6/http';
import { check, sleep } from 'k6';
export default function () {
  const r = http.get(`http://shop/items/${__ITER}`);
  check(r, { ok: (r) => r.status === 200, id: (r) => r.json('id') === 7, stock: (r) => r.json('stock') > 1 });
  sleep(10);
}
"#;

const PLAIN: &str = r#"
import http from 'k6/http';
import { check, sleep } from 'k6';
export default function () {
  const r = http.get(`http://shop/items/${__ITER}`);
  check(r, { ok: (r) => r.status === 200 });
  sleep(10);
}
"#;

/// A JSON object of about 300 bytes.
const BODY: &str = r#"{"id":7,"name":"Lamp of brass with shade","price":{"amount":12900,"currency":"EUR"},"stock":42,"tags":["light","brass","home"],"rating":4.5,"description":"A lamp for the desk, with a shade of linen and a foot of brass. Delivered with a bulb.","links":{"self":"/items/7","reviews":"/items/7/reviews","cart":"/cart?add=7"}}"#;

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let users: Option<u32> = args.next().and_then(|users| users.parse().ok());
    if what.is_empty() || what == "memory" {
        for (name, script) in [("1 level", LEVEL_1), ("2 levels and state", LEVEL_2)] {
            memory(name, script, users.unwrap_or(50_000));
        }
    }
    if what.is_empty() || what == "cpu" {
        for (name, script) in [
            ("no parse", PLAIN),
            ("paths", PATHS),
            ("whole parse", WHOLE),
        ] {
            for users in [2_000, users.unwrap_or(250_000)] {
                cpu(name, script, users);
            }
        }
    }
    if what.is_empty() || what == "turns" {
        turns(LEVEL_2, users.unwrap_or(250_000), 25_000, 20);
    }
}

fn runtime(script: &'static str) -> Runtime {
    let program = Program::load("main.js", &One(script), &Variables::default());
    let program = program.unwrap_or_else(|problems| panic!("{problems:#?}"));
    let limits = Limits {
        memory: 8 << 30,
        ..Limits::default()
    };
    Runtime::new(&program, limits, 1).unwrap_or_else(|thrown| panic!("{thrown:?}"))
}

fn call(user: u32, iteration: u64) -> Call {
    Call {
        function: "default".to_owned(),
        data: None,
        facts: Facts {
            vu_in_test: u64::from(user) + 1,
            iteration_of_user: iteration,
            ..Facts::default()
        },
    }
}

fn answer(request: &Request) -> Outcome {
    Outcome::Answers(vec![Answer {
        status: 200,
        url: request.url.clone(),
        body: bytes::Bytes::from_static(BODY.as_bytes()),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        ..Answer::default()
    }])
}

/// Plays a user from its beginning to its wait.
fn to_wait(runtime: &mut Runtime, user: u32, call: &Call) {
    let mut turn = runtime.begin(user, call);
    loop {
        turn = match turn {
            Turn::Request(request) => runtime.resume(user, answer(&request)),
            Turn::Wait { .. } => return,
            other => panic!("{other:?}"),
        };
    }
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

fn memory(name: &str, script: &'static str, users: u32) {
    let mut runtime = runtime(script);
    let mut events = Vec::new();
    for user in 0..100 {
        to_wait(&mut runtime, user, &call(user, 0));
    }
    let (engine, process) = (runtime.memory(), resident());
    for user in 100..users + 100 {
        to_wait(&mut runtime, user, &call(user, 0));
        runtime.events(&mut events);
        events.clear();
    }
    let users = f64::from(users);
    println!(
        "memory, {name}: {:.0} bytes of the engine and {:.0} bytes of the process per waiting user",
        (runtime.memory() - engine) as f64 / users,
        (resident() - process) as f64 / users,
    );
}

fn cpu_now() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the kernel counts CPU time");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros as u64)
}

fn cpu(name: &str, script: &'static str, users: u32) {
    let mut runtime = runtime(script);
    let mut events = Vec::new();
    let mut call = call(0, 0);
    let round = |runtime: &mut Runtime, events: &mut Vec<_>, call: &mut Call, first: bool| {
        for user in 0..users {
            if !first {
                assert!(matches!(
                    runtime.resume(user, Outcome::Waited),
                    Turn::Done { .. }
                ));
            }
            to_wait(runtime, user, call);
            runtime.events(events);
            events.clear();
        }
        call.facts.iteration_of_user += 1;
    };
    round(&mut runtime, &mut events, &mut call, true);
    let rounds = (600_000 / users).max(2);
    let before = cpu_now();
    for _ in 0..rounds {
        round(&mut runtime, &mut events, &mut call, false);
    }
    let spent = cpu_now() - before;
    let iterations = f64::from(rounds) * f64::from(users);
    println!(
        "cpu, {name}, {users} users: {:.2} us per iteration",
        spent.as_secs_f64() * 1e6 / iterations
    );
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// All users in a cycle: each moment, the user whose wait is over goes on.
fn turns(script: &'static str, users: u32, rate: u32, seconds: u32) {
    let mut runtime = runtime(script);
    let mut events = Vec::new();
    for user in 0..users {
        to_wait(&mut runtime, user, &call(user, 0));
        runtime.events(&mut events);
        events.clear();
    }
    let freed = runtime.collect();
    let mut times = Vec::new();
    let mut lags = Vec::new();
    let step = Duration::from_secs(1) / rate;
    let start = now();
    let mut next = call(0, 0);
    for i in 0..rate * seconds {
        let due = start + step * i;
        while now() < due {
            std::hint::spin_loop();
        }
        let user = i % users;
        next.facts.iteration_of_user += 1;
        let began = now();
        assert!(matches!(
            runtime.resume(user, Outcome::Waited),
            Turn::Done { .. }
        ));
        to_wait(&mut runtime, user, &next);
        runtime.events(&mut events);
        events.clear();
        let ended = now();
        times.push((ended - began).as_nanos() as u64);
        lags.push((ended - due).as_nanos() as u64);
    }
    times.sort_unstable();
    lags.sort_unstable();
    let at = |all: &[u64], share: f64| all[((all.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "turns, {users} users, {rate}/s: iteration p50 {:.1} p99 {:.1} p99.9 {:.1} max {:.0} us; lag p99.9 {:.1} max {:.0} us; collected before: {} bytes",
        at(&times, 0.5),
        at(&times, 0.99),
        at(&times, 0.999),
        at(&times, 1.0),
        at(&lags, 0.999),
        at(&lags, 1.0),
        freed.bytes,
    );
}
