//! Any answer to a script: its JSON, HTML, cookies, and addresses become values or errors, within the bounds of a turn.

use std::cell::RefCell;
use std::time::Duration;

use lab_script::{
    Answer, Call, Facts, Files, Limits, Outcome, Program, Runtime, Turn, Variables,
};

const SCRIPT: &str = "import http from 'k6/http';
export default function () {
  const r = http.get('http://shop.example/');
  const name = r.headers['X-Name'];
  const tried = (f) => { try { f(); } catch (error) { if (!(error instanceof Error)) throw error; } };
  tried(() => r.json(name));
  tried(() => r.json());
  tried(() => r.cookies);
  tried(() => r.html().find(name).parent().text());
  tried(() => r.html().find('form, input').serialize());
  tried(() => new URL(name, 'http://shop.example/').searchParams.toString());
  tried(() => http.cookieJar().cookiesForURL('http://shop.example/'));
}";

struct Script;

impl Files for Script {
    fn read(&self, _name: &str) -> Result<Vec<u8>, String> {
        Ok(SCRIPT.into())
    }
}

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

fn runtime() -> Runtime {
    let program = Program::load("main.js", &Script, &Variables::default()).expect("a script");
    let limits = Limits {
        turn: Duration::from_secs(60),
        ..Limits::default()
    };
    Runtime::new(&program, limits, 1).expect("a runtime")
}

pub(crate) fn run(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n');
    let (name, body) = data.split_at(end.unwrap_or(data.len()));
    let name = String::from_utf8_lossy(name).into_owned();
    let answer = Answer {
        status: 200,
        url: "http://shop.example/".to_owned(),
        headers: vec![
            ("X-Name".to_owned(), name.clone()),
            ("Set-Cookie".to_owned(), name),
        ],
        body: body.to_vec().into(),
        ..Answer::default()
    };
    RUNTIME.with_borrow_mut(|kept| {
        let runtime = kept.get_or_insert_with(runtime);
        let call = Call {
            function: "default".to_owned(),
            data: None,
            facts: Facts::default(),
        };
        let turn = runtime.begin(0, &call);
        assert!(matches!(turn, Turn::Request(_)), "{turn:?}");
        let turn = runtime.resume(0, Outcome::Answers(vec![answer]));
        assert!(matches!(turn, Turn::Done { .. }), "{turn:?}");
    });
}
