//! Minimal values for tests and builders: a request, a step, a workload, and a load with only the required fields.
//! Callers set the others.

use std::sync::Arc;

use crate::control::Visitor;
use crate::level::Parameters;
use crate::load::{LoadKind, LoadSpec};
use crate::model::{Body, Request, Session, Step, Workload};
use crate::speech::{ProtocolRequest, Speech};
use crate::template::Template;
use crate::wait::Wait;

impl<T> Request<T> {
    /// A GET of HTTP that accepts any 2xx, and captures nothing.
    #[must_use]
    pub fn get(target: T) -> Self {
        Self {
            method: "GET".to_owned(),
            target,
            headers: Vec::new(),
            cookies: Vec::new(),
            body: Body::Empty,
            basic_auth: None,
            expect: vec![200..=299],
            answer: Vec::new(),
            captures: Vec::new(),
            compressed: false,
            follow: 0,
            timeout: None,
            events: None,
            sign: None,
            credentials: None,
            hides_answer: false,
            said: None,
        }
    }
}

impl Request {
    /// A request of another protocol than HTTP that accepts any response.
    #[must_use]
    pub fn of_protocol(said: ProtocolRequest) -> Self {
        Self {
            method: String::new(),
            expect: vec![0..=u16::MAX],
            said: Some(Box::new(said)),
            ..Self::get(Template::literal(""))
        }
    }
}

impl<T> Step<T> {
    /// A step that runs once in each session, without a wait.
    #[must_use]
    pub fn of(name: &str, requests: Vec<Request<T>>) -> Self {
        Self {
            name: name.to_owned(),
            tags: Vec::new(),
            measures: Vec::new(),
            wait: Wait::None,
            repeat: 1,
            requests,
            parallel: None,
            chance: None,
            once: false,
            control: None,
            retry: None,
            queued: None,
            ends_session: false,
        }
    }
}

impl<T> Workload<T> {
    /// Sessions of these steps, without a pause between them, by users who have no variables.
    #[must_use]
    pub fn of(name: &str, steps: Vec<Step<T>>) -> Self {
        Self {
            name: name.to_owned(),
            about: String::new(),
            parameters: Parameters::new(),
            user: Vec::new(),
            setup: Vec::new(),
            session: Session {
                pace: None,
                steps,
                groups: Vec::new(),
                transactions: Vec::new(),
                visitor: Visitor::Same,
            },
            probe: None,
            transfer: None,
            variables: Arc::from([]),
            least_users: 0,
            inputs: Arc::default(),
            data: None,
            shared: Vec::new(),
            files: Vec::new(),
            trace: None,
            max_body: None,
            speech: Speech::Http,
            tokens: None,
            scripted: None,
        }
    }
}

impl LoadSpec {
    /// A load of so many users, who all start at once and stay for `hold_ms`, from one generator.
    #[must_use]
    pub fn of_users(users: u32, hold_ms: u64, window_ms: u64) -> Self {
        Self {
            users,
            ramp_ms: 0,
            hold_ms,
            window_ms,
            kind: LoadKind::Users,
            stages: Vec::new(),
            timeline: None,
            mix: Vec::new(),
            generators: 1,
            timeout_ms: None,
            time_limit_ms: None,
        }
    }
}
