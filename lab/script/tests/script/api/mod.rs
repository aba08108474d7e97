//! The modules that scripts import, with examples as k6's documentation shows them.

mod assertions;
mod bodies;
mod cookies;
mod crypto;
mod globals;
mod html;
mod http;
mod json;
mod k6;
mod libraries;
mod limits;
mod plimsoll;
mod refusals;
mod summary;

use lab_script::{Answer, Call, Event, Facts, Limits, Outcome, Request, Runtime, Thrown, Turn};
use serde_json::Value;

use crate::play::load;

/// What a script did in one call.
pub(crate) struct Done {
    pub(crate) result: Result<Value, Thrown>,
    pub(crate) events: Vec<Event>,
    pub(crate) requests: Vec<Request>,
    pub(crate) waits: Vec<u64>,
    /// How many requests each turn sent.
    pub(crate) turns: Vec<usize>,
}

impl Done {
    pub(crate) fn value(&self) -> &Value {
        match &self.result {
            Ok(value) => value,
            Err(thrown) => panic!("{thrown:?}"),
        }
    }

    pub(crate) fn error(&self) -> &str {
        match &self.result {
            Ok(value) => panic!("no error, but {value}"),
            Err(thrown) => &thrown.message,
        }
    }

    /// The checks, with `!` before those that failed.
    pub(crate) fn checks(&self) -> Vec<String> {
        let of = |event: &Event| match event {
            Event::Check {
                name, passed: true, ..
            } => Some(name.clone()),
            Event::Check { name, .. } => Some(format!("!{name}")),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    pub(crate) fn logs(&self) -> Vec<String> {
        let of = |event: &Event| match event {
            Event::Log { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }
}

pub(crate) fn facts() -> Facts {
    Facts {
        vu_in_test: 1,
        vu_in_instance: 1,
        now_ms: 1_700_000_000_000.0,
        ..Facts::default()
    }
}

/// Calls `default` of a runtime for a user, with answers made by `answer`.
pub(crate) fn call(
    runtime: &mut Runtime,
    user: u32,
    facts: Facts,
    answer: &dyn Fn(&Request) -> Answer,
) -> Done {
    let call = Call {
        function: "default".to_owned(),
        data: None,
        facts,
    };
    let mut done = Done {
        result: Ok(Value::Null),
        events: Vec::new(),
        requests: Vec::new(),
        waits: Vec::new(),
        turns: Vec::new(),
    };
    let mut turn = runtime.begin(user, &call);
    for _ in 0..1_000 {
        runtime.events(&mut done.events);
        let sent = match turn {
            Turn::Done { value } => {
                done.result = Ok(value.unwrap_or_default());
                return done;
            }
            Turn::Threw(thrown) => {
                done.result = Err(thrown);
                return done;
            }
            Turn::Wait { micros } => {
                done.waits.push(micros);
                turn = runtime.resume(user, Outcome::Waited);
                continue;
            }
            Turn::Request(request) => vec![*request],
            Turn::Batch(requests) => requests,
        };
        done.turns.push(sent.len());
        let answers = sent.iter().map(answer).collect();
        done.requests.extend(sent);
        turn = runtime.resume(user, Outcome::Answers(answers));
    }
    panic!("the call never ends");
}

/// An answer with a body.
pub(crate) fn answer(body: &str) -> Answer {
    Answer {
        status: 200,
        url: "http://shop.example/".to_owned(),
        body: body.to_owned().into(),
        ..Answer::default()
    }
}

/// Plays a script once, with answers of one body.
pub(crate) fn run(script: &str, body: &'static str) -> Done {
    run_with(script, &move |request| Answer {
        url: request.url.clone(),
        ..answer(body)
    })
}

pub(crate) fn run_with(script: &str, answers: &dyn Fn(&Request) -> Answer) -> Done {
    let program = load(&[("main.js", script)]);
    let runtime = Runtime::new(&program, Limits::default(), 1);
    let mut runtime = runtime.unwrap_or_else(|thrown| panic!("{thrown:?}"));
    call(&mut runtime, 0, facts(), answers)
}

/// The value of an expression, after imports.
pub(crate) fn eval(imports: &str, expression: &str) -> Value {
    let script = format!("{imports}\nexport default function () {{\n  return {expression};\n}}\n");
    let done = run(&script, "");
    match done.result {
        Ok(value) => value,
        Err(thrown) => panic!("{expression}: {thrown:?}"),
    }
}

/// The message of the error that an expression throws.
pub(crate) fn error(imports: &str, expression: &str) -> String {
    let script = format!("{imports}\nexport default function () {{\n  return {expression};\n}}\n");
    run(&script, "").error().to_owned()
}
