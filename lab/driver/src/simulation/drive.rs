//! Small loads for the simulation: steps of numbered requests, whose texts are unused.

use std::sync::Arc;
use std::time::Duration;

use lab_client::TlsOptions;
use lab_workload::LoadKind;
use lab_workload::Template;
use lab_workload::{DEFAULT_DATES_FROM, Probe, Request, Step, Wait, Workload};

use crate::assignment::{Assignment, Limits};
use lab_workload::part::Part;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn request() -> Request {
    Request {
        expect: vec![200..=200],
        ..Request::get(Template::literal("/"))
    }
}

/// Returns a probe with this interval.
pub(crate) fn probe(every: Duration) -> Option<Probe> {
    let request = request();
    Some(Probe { request, every })
}

/// Returns a step with this number of requests.
pub(crate) fn step(wait: Wait, requests: usize) -> Step {
    Step {
        wait,
        ..Step::of("Step", vec![request(); requests])
    }
}

/// Returns a load of one user with this session, for a second.
pub(crate) fn drive(steps: Vec<Step>) -> Assignment {
    Assignment {
        population: String::new(),
        first: 0,
        workload: Arc::new(Workload::of("simulated", steps)),
        base: "http://127.0.0.1:1".parse().unwrap(),
        tls: TlsOptions::default(),
        resolve: Vec::new(),
        sources: Vec::new(),
        protocol: lab_client::Protocol::default(),
        kind: LoadKind::Users,
        users: 1,
        part: Part::whole(),
        user_extra: Vec::new(),
        seed: 7,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
        cores: Vec::new(),
        own_cores: false,
        ramp: Duration::ZERO,
        hold: ms(1000),
        stages: Vec::new(),
        timeline: None,
        window: ms(10),
        limits: Limits::default(),
    }
}

/// Returns the workload, to be changed.
pub(crate) fn workload(drive: &mut Assignment) -> &mut Workload {
    Arc::get_mut(&mut drive.workload).unwrap()
}
