//! The worker threads of one program, and their construction. It knows nothing of the merger of their reports.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lab_client::dialogue::{Dialogue, DialogueClient};
use lab_client::http::HttpClient;
use lab_client::{Offer, Resolve, Server, Sources, Tls, TlsOptions};
use lab_dialogues::{Grpc, Imap, Mqtt, Postgres, Raw, Redis, Smtp, WebSocket};
use lab_workload::{LoadKind, Speech, Step, Workload};

use crate::assignment::Assignment;
use crate::client::Client;
use crate::clock::Clock;
use crate::control::Control;
use crate::error::DriverError;
use crate::mix::Mix;
use crate::population::{Population, populations};
use crate::scripted::Programs;
use crate::sharing;
use crate::timers::Timers;
use crate::worker::Worker;
use lab_recorder::event::Window;
use lab_recorder::report::{Outbox, Queue};

/// The maximum number of emptied windows that wait for their worker.
const EMPTIED: usize = 4;

/// A worker thread of a generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerThread {
    /// Its process.
    pub pid: u32,
    /// Its kernel thread id, for `/proc/PID/task/TID`.
    pub tid: i32,
}

/// Running workers.
pub(crate) struct Crew {
    pub(crate) workers: Vec<JoinHandle<()>>,
    /// Returns emptied windows to each worker.
    pub(crate) emptied: Vec<SyncSender<Box<Window>>>,
    started: Receiver<Result<i32, DriverError>>,
}

impl Crew {
    /// Starts the workers and, at once, the first setup step.
    pub(crate) fn start<C: Client>(
        mix: &Mix,
        clock: Clock,
        control: &Control,
        queue: &Queue,
        make: impl Make<C>,
    ) -> Result<Self, DriverError> {
        let count = mix.first().workers();
        sharing::validate(mix)?;
        let (ready, started) = sync_channel(count);
        let mut crew = Self {
            workers: Vec::new(),
            emptied: Vec::new(),
            started,
        };
        let populations = populations(mix);
        let workloads = mix.assignments().map(|drive| &*drive.workload);
        let programs = Programs::load(workloads).map_err(DriverError::Script)?;
        for number in 0..count {
            let (worker, give_back) =
                hire(number, (&populations, &programs), clock, control, queue);
            crew.emptied.push(give_back);
            let (make, ready) = (make.clone(), ready.clone());
            let make = move |drive: &Arc<Assignment>, timers: &Timers| make(drive, number, timers);
            let run = move || worker.run(make, ready);
            crew.workers.push(spawn(format!("users-{number}"), run)?);
        }
        Ok(crew)
    }

    /// Waits until all workers have started. Returns their kernel thread ids.
    pub(crate) fn threads(&self) -> Result<Vec<i32>, DriverError> {
        let one = |_| self.started.recv().unwrap_or(Err(DriverError::Panicked));
        (0..self.workers.len()).map(one).collect()
    }
}

/// Creates a worker, not yet started, and the sender of its emptied windows.
pub(crate) fn hire(
    number: usize,
    (populations, programs): (&[Population], &Programs),
    clock: Clock,
    control: &Control,
    queue: &Queue,
) -> (Worker, SyncSender<Box<Window>>) {
    let (give_back, emptied) = sync_channel(EMPTIED);
    let worker = Worker {
        number,
        populations: populations.to_vec(),
        programs: programs.clone(),
        clock,
        orders: control.subscribe(),
        outbox: Outbox {
            worker: number,
            queue: queue.clone(),
        },
        emptied,
    };
    (worker, give_back)
}

/// Builds the client of a worker, by its number in this program.
pub(crate) trait Make<C>:
    Fn(&Arc<Assignment>, usize, &Timers) -> Result<C, DriverError> + Clone + Send + 'static
{
}

impl<C, F> Make<C> for F where
    F: Fn(&Arc<Assignment>, usize, &Timers) -> Result<C, DriverError> + Clone + Send + 'static
{
}

/// Continues with the client type of the users' protocol. Each type has its own compiled code, so that no request pays
/// for the choice.
pub(crate) trait Speaking {
    type Output;

    fn with<C: Client>(self, make: impl Make<C>) -> Self::Output;
}

/// Continues with the client of the protocol that all populations use.
pub(crate) fn speaking<S: Speaking>(mix: &Mix, next: S) -> Result<S::Output, DriverError> {
    Ok(match mix.first().workload.speech {
        Speech::Http => next.with(http(mix)?),
        Speech::WebSocket { .. } => {
            let host = mix.first().base.authority();
            let new = move |workload: &Workload| WebSocket::new(workload, &host);
            next.with(dialogue(mix, new)?)
        }
        Speech::Grpc { .. } => {
            let base = mix.first().base.clone();
            let new = move |workload: &Workload| Grpc::new(workload, &base);
            next.with(dialogue(mix, new)?)
        }
        Speech::Redis(_) => next.with(dialogue(mix, Redis::new)?),
        Speech::Smtp { .. } => next.with(dialogue(mix, Smtp::new)?),
        Speech::Imap { .. } => next.with(dialogue(mix, Imap::new)?),
        Speech::Postgres { .. } => next.with(dialogue(mix, Postgres::new)?),
        Speech::Mqtt { .. } => next.with(dialogue(mix, Mqtt::new)?),
        Speech::Tcp | Speech::Udp => next.with(dialogue(mix, Raw::new)?),
    })
}

/// Returns the constructor of a worker's HTTP client.
pub(crate) fn http(mix: &Mix) -> Result<impl Make<HttpClient<Timers>>, DriverError> {
    let server = server(mix)?;
    Ok(
        move |drive: &Arc<Assignment>, number: usize, timers: &Timers| {
            let server = of_worker(&server, drive, number);
            let client = HttpClient::new(&drive.workload, server, timers.clone());
            Ok(client.retrying(retried(&drive.workload)))
        },
    )
}

/// Returns the constructor of a worker's dialogue client.
fn dialogue<D: Dialogue>(
    mix: &Mix,
    new: impl Fn(&Workload) -> D + Clone + Send + 'static,
) -> Result<impl Make<DialogueClient<D, Timers>>, DriverError> {
    let server = server(mix)?;
    Ok(
        move |drive: &Arc<Assignment>, number: usize, timers: &Timers| {
            let workload = &drive.workload;
            let server = of_worker(&server, drive, number);
            let client = DialogueClient::new(workload, new(workload), server, timers.clone());
            Ok(client)
        },
    )
}

/// Returns the server for one worker, with its part of the shared connections.
fn of_worker(server: &Server, drive: &Assignment, number: usize) -> Server {
    Server {
        protocol: drive.protocol_of_worker(number),
        ..server.clone()
    }
}

/// Returns the target server; its name is resolved now, once.
fn server(mix: &Mix) -> Result<Server, DriverError> {
    let drive = mix.first();
    let base = drive.base.clone();
    let is_udp = matches!(drive.workload.speech, Speech::Udp);
    if base.datagrams && !is_udp {
        let what = "only workloads with `protocol: udp` can use an address with `udp://`";
        return Err(DriverError::Load(what));
    }
    if base.secure && is_udp {
        let what = "`protocol: udp` has no TLS: write `udp://` in the address";
        return Err(DriverError::Load(what));
    }
    let tls = Tls::offering(drive.tls.clone(), alpn(drive));
    if drive.base.secure || drive.tls != TlsOptions::default() {
        // Errors in its files are reported before the load.
        tls.config().map_err(DriverError::Tls)?;
        tls.name_of(&base).map_err(DriverError::Tls)?;
    } else if mix.assignments().any(may_name_others) {
        // Load the authorities now, so that no worker reads them later. Broken ones only matter if they are needed.
        let _kept = tls.config();
    }
    let resolve = Resolve::new(&drive.resolve);
    let addresses = resolve.addresses(&base).map_err(|source| {
        let base = base.clone();
        DriverError::Resolve { base, source }
    })?;
    Ok(Server {
        base,
        addresses,
        tls,
        resolve,
        sources: Sources::new(&drive.sources),
        protocol: drive.protocol,
        limits: drive.limits.of_requests(),
    })
}

/// Returns the ALPN offer for TLS. PostgreSQL rejects every offer but its own, and so do some SMTP and IMAP servers.
fn alpn(drive: &Assignment) -> &'static [&'static [u8]] {
    match drive.workload.speech {
        Speech::Http => drive.protocol.offer.alpn(),
        // gRPC runs only over HTTP/2.
        Speech::Grpc { .. } => Offer::Two.alpn(),
        Speech::WebSocket { .. } => Offer::One.alpn(),
        Speech::Postgres { .. } => &[b"postgresql"],
        Speech::Redis(_)
        | Speech::Smtp { .. }
        | Speech::Imap { .. }
        | Speech::Mqtt { .. }
        | Speech::Tcp
        | Speech::Udp => &[],
    }
}

/// Returns which requests are sent again when they fail, by their index in [`Workload::requests`]; empty if there are
/// none.
fn retried(workload: &Workload) -> Vec<bool> {
    let steps = || workload.setup.iter().chain(&workload.session.steps);
    if steps().all(|step| step.retry.is_none()) {
        return Vec::new();
    }
    let of_step = |step: &Step| std::iter::repeat_n(step.retry.is_some(), step.requests.len());
    steps().flat_map(of_step).collect()
}

/// Returns true if the workload may name another server, which may use TLS.
fn may_name_others(drive: &Assignment) -> bool {
    if drive.workload.scripted.is_some() {
        return true;
    }
    let mut targets = drive.workload.requests().map(|request| &request.target);
    drive.workload.speech.is_http() && targets.any(|target| !target.source().starts_with('/'))
}

pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, DriverError> {
    std::thread::Builder::new()
        .name(name)
        .spawn(run)
        .map_err(DriverError::Runtime)
}

/// Rejects populations that contradict themselves, or each other.
pub(crate) fn validate(mix: &Mix) -> Result<(), DriverError> {
    // A population may be so small a share of a load that it has no users.
    if mix.assignments().all(|drive| drive.users == 0) {
        return Err(DriverError::Load("it has no users"));
    }
    mix.assignments().try_for_each(validate_one)?;
    let is_sequence = |drive: &Assignment| matches!(drive.kind, LoadKind::Sequence { .. });
    if mix.is_several() && mix.assignments().any(is_sequence) {
        return Err(DriverError::Load("a sequence has no populations beside it"));
    }
    let speaks = |drive: &Assignment| std::mem::discriminant(&drive.workload.speech);
    if mix
        .assignments()
        .any(|drive| speaks(drive) != speaks(mix.first()))
    {
        return Err(DriverError::Load(
            "two of its populations speak different protocols",
        ));
    }
    let probes = mix
        .assignments()
        .filter(|drive| drive.workload.probe.is_some());
    if probes.count() > 1 {
        return Err(DriverError::Load("two of its populations send a probe"));
    }
    Ok(())
}

/// Rejects a load spec that contradicts itself.
pub(crate) fn validate_one(drive: &Assignment) -> Result<(), DriverError> {
    if !drive.part.is_sound() {
        return Err(DriverError::Load("its part of the users is none"));
    }
    if let LoadKind::Arrival { rate_per_s, .. } = drive.kind
        && !(rate_per_s.is_finite() && rate_per_s > 0.0)
    {
        return Err(DriverError::Load("its sessions never arrive"));
    }
    if matches!(drive.kind, LoadKind::Sequence { sessions: 0, .. }) {
        return Err(DriverError::Load("a sequence has at least one session"));
    }
    if !drive.stages.is_empty() && !lab_workload::are_sound(&drive.stages) {
        return Err(DriverError::Load("its stages are none"));
    }
    if drive
        .timeline
        .as_ref()
        .is_some_and(|of| !(of.scale.is_finite() && of.scale > 0.0))
    {
        return Err(DriverError::Load("its timeline stands still"));
    }
    if drive.window.is_zero() {
        return Err(DriverError::Load("its windows have no length"));
    }
    if !drive.user_extra.is_empty() && drive.user_extra.len() != drive.users as usize {
        return Err(DriverError::Load(
            "it has variables for another number of users",
        ));
    }
    if drive.workload.session.steps.is_empty() {
        return Err(DriverError::Load("its session has no steps"));
    }
    Ok(())
}
