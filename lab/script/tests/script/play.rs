//! Plays scripts: answers their requests from a function.

use std::collections::BTreeMap;
use std::sync::Arc;

use lab_script::{
    Answer, Call, Event, Facts, Files, Limits, LoadError, Outcome, Program, Request, Runtime,
    Thrown, Turn, Variables,
};

/// Files by name.
pub(crate) struct Texts<'a>(pub(crate) &'a [(&'a str, &'a str)]);

impl Files for Texts<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|(own, _)| *own == name);
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| "there is no such file".to_owned())
    }
}

pub(crate) fn variables(all: &[(&str, &str)]) -> Variables {
    let all = all
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Variables(BTreeMap::from_iter(all))
}

/// Loads files, of which the first one is the entry.
pub(crate) fn try_load(files: &[(&str, &str)]) -> Result<Program, Vec<LoadError>> {
    let loaded = Program::load(
        files[0].0,
        &Texts(files),
        &variables(&[("URL", "http://shop")]),
    );
    if loaded.is_ok() {
        assert_eq!(Program::check(files[0].0, &Texts(files)), Ok(()));
    }
    loaded
}

pub(crate) fn load(files: &[(&str, &str)]) -> Program {
    try_load(files).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// A runtime and what happened in it.
pub(crate) struct Play {
    pub(crate) runtime: Runtime,
    pub(crate) events: Vec<Event>,
    /// All requests, as `METHOD address`.
    pub(crate) sent: Vec<String>,
    pub(crate) waits: Vec<u64>,
    pub(crate) sites: Vec<u32>,
}

pub(crate) fn call(function: &str, user: u32, iteration: u64) -> Call {
    Call {
        function: function.to_owned(),
        data: None,
        facts: Facts {
            vu_in_test: u64::from(user) + 1,
            iteration_of_user: iteration,
            now_ms: 1_000.0,
            ..Facts::default()
        },
    }
}

pub(crate) fn answered(request: &Request) -> Answer {
    let body = format!("{{\"url\":\"{}\",\"id\":7}}", request.url);
    Answer {
        status: 200,
        url: request.url.clone(),
        body: body.into(),
        ..Answer::default()
    }
}

impl Play {
    pub(crate) fn new(program: &Program) -> Play {
        let runtime = Runtime::new(program, Limits::default(), 1);
        Play {
            runtime: runtime.unwrap_or_else(|thrown| panic!("{thrown:?}")),
            events: Vec::new(),
            sent: Vec::new(),
            waits: Vec::new(),
            sites: Vec::new(),
        }
    }

    /// Plays an iteration to its end.
    pub(crate) fn iteration(&mut self, user: u32) -> Result<Option<serde_json::Value>, Thrown> {
        self.call(user, &call("default", user, 0))
    }

    pub(crate) fn with_data(
        &mut self,
        user: u32,
        data: serde_json::Value,
    ) -> Result<Option<serde_json::Value>, Thrown> {
        let call = Call {
            data: Some(Arc::new(data)),
            ..call("default", user, 0)
        };
        self.call(user, &call)
    }

    pub(crate) fn call(
        &mut self,
        user: u32,
        call: &Call,
    ) -> Result<Option<serde_json::Value>, Thrown> {
        let mut turn = self.runtime.begin(user, call);
        for _ in 0..10_000 {
            self.runtime.events(&mut self.events);
            let outcome = match turn {
                Turn::Done { value } => return Ok(value),
                Turn::Threw(thrown) => return Err(thrown),
                Turn::Wait { micros } => {
                    self.waits.push(micros);
                    Outcome::Waited
                }
                Turn::Request(request) => Outcome::Answers(vec![self.answer(&request)]),
                Turn::Batch(requests) => Outcome::Answers(
                    requests
                        .iter()
                        .map(|request| self.answer(request))
                        .collect(),
                ),
            };
            turn = self.runtime.resume(user, outcome);
        }
        panic!("the iteration never ends");
    }

    fn answer(&mut self, request: &Request) -> Answer {
        self.sites.push(request.site);
        self.sent
            .push(format!("{} {}", request.method, request.url));
        answered(request)
    }

    /// The checks so far, with `!` before those that failed.
    pub(crate) fn checks(&self) -> Vec<String> {
        let checks = self.events.iter().filter_map(|event| match event {
            Event::Check {
                name, passed: true, ..
            } => Some(name.clone()),
            Event::Check { name, .. } => Some(format!("!{name}")),
            _ => None,
        });
        checks.collect()
    }
}

/// Plays one iteration of one user.
pub(crate) fn played(files: &[(&str, &str)]) -> Play {
    let mut play = Play::new(&load(files));
    let done = play.iteration(0);
    assert!(done.is_ok(), "{done:?}");
    play
}
