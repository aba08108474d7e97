//! The load spec: the workload, its server, the load, and the limits. Data only.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use lab_client::{BaseUrl, Nanos, Protocol, TlsOptions};
use lab_workload::timing::Profile;
use lab_workload::{LoadKind, Stage, Timeline, Visit, Workload, visits};
use serde::{Deserialize, Serialize};

use lab_workload::part::Part;

/// The maximum number of users; no machine has that many ports.
const MAX_USERS: u32 = 10_000_000;

/// The load spec of one trial; in a [`crate::Mix`], of one of its populations. The conductor sends this type to a
/// generator in another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The population's name, the prefix of its steps' names; empty if it is the only one.
    pub population: String,
    /// The number of users in the populations before it: its own are numbered from there.
    pub first: u32,
    /// The actions of the users, already at the plan's speed.
    #[serde(with = "workload")]
    pub workload: Arc<Workload>,
    /// The server.
    pub base: BaseUrl,
    /// The TLS options for an `https` server.
    pub tls: TlsOptions,
    /// Addresses of hosts, in lower case, that override the resolver.
    pub resolve: Vec<(String, IpAddr)>,
    /// Local addresses of connections, used in turn; they must be of the generator's machine. If empty, the system
    /// chooses.
    pub sources: Vec<IpAddr>,
    /// The HTTP version to request, and the sharing of connections. The number of shared ones is for all generators
    /// together.
    pub protocol: Protocol,
    /// The kind of load, which starts sessions.
    pub kind: LoadKind,
    /// The number of virtual users, at least one. For arrivals: the connections that their sessions share, each with a
    /// user's identity. For a sequence: one.
    pub users: u32,
    /// The part of the users that this program runs.
    pub part: Part,
    /// Further variables per user, such as a password from provisioning; either empty or one entry
    /// per user.
    pub user_extra: Vec<Vec<(String, String)>>,
    /// The study's seed.
    pub seed: u64,
    /// The block of this trial; with the seed and the user's index it fixes all randomness.
    pub block: u32,
    /// Day 0 of the date functions.
    pub base_date: Date,
    /// One worker thread per entry, pinned to that core; empty = one, unpinned.
    pub cores: Vec<usize>,
    /// Nothing under test runs on these cores. The workers take the highest priority, if allowed, so that they run
    /// before any other thread there.
    pub own_cores: bool,
    /// User i starts at `ramp × i ÷ users`; the rate of arrivals rises in a straight line.
    pub ramp: Duration,
    /// How long the full load lasts after the ramp, or all stages; a sequence ends earlier if all its sessions are
    /// done.
    pub hold: Duration,
    /// The changes of the load over time; empty if it is constant.
    pub stages: Vec<Stage>,
    /// The recording that sets the arrival times of sessions, if there is one; its rows are the workload's.
    pub timeline: Option<Timeline>,
    /// Length of a window of counts; above zero.
    pub window: Duration,
    /// Limits.
    pub limits: Limits,
}

impl Assignment {
    /// Returns the load spec of a generator with this part of the users and these cores. It has the further variables
    /// of its own users only.
    pub(crate) fn for_generator(&self, part: Part, cores: &[usize], own_cores: bool) -> Self {
        let mut user_extra = vec![Vec::new(); self.user_extra.len()];
        for user in part.users(self.users) {
            if let Some(extra) = self.user_extra.get(user as usize) {
                user_extra[user as usize].clone_from(extra);
            }
        }
        Self {
            user_extra,
            part,
            cores: cores.to_vec(),
            own_cores,
            ..self.clone()
        }
    }

    /// Returns why a load spec from another process is unusable; `None` if it is usable.
    pub(crate) fn nonsense(&self) -> Option<String> {
        if !self.part.is_sound() || self.users > MAX_USERS {
            return Some(format!("{} users, {:?}", self.users, self.part));
        }
        let known = self.user_extra.len();
        (known > 0 && known != self.users as usize)
            .then(|| "variables for another number of users".to_owned())
    }

    /// Returns the number of worker threads: one per core, but one in all for a sequence, whose users share its sessions.
    pub(crate) fn workers(&self) -> usize {
        match self.kind {
            LoadKind::Sequence { .. } => 1,
            LoadKind::Users | LoadKind::Arrival { .. } => self.cores.len().max(1),
        }
    }

    /// Returns the users of a worker, and the sessions that they share.
    pub(crate) fn left(&self, users: usize) -> (u32, u32) {
        let shared = match self.kind {
            LoadKind::Sequence {
                sessions,
                shared: true,
            } => sessions,
            LoadKind::Sequence { .. } | LoadKind::Users | LoadKind::Arrival { .. } => 0,
        };
        (u32::try_from(users).unwrap_or(u32::MAX), shared)
    }

    /// Returns when a user is active, in ns of the trial.
    pub(crate) fn visits(&self, index: u32) -> Vec<Visit> {
        if !self.stages.is_empty() {
            return visits(&self.stages, index);
        }
        vec![Visit {
            from: start_offset(self.ramp, index, self.users),
            until: Nanos::MAX,
        }]
    }

    /// Returns the arrival rate of sessions over time, for this rate at full load.
    pub(crate) fn profile(&self, rate_per_s: f64) -> Profile {
        match self.stages.is_empty() {
            true => Profile::ramp(rate_per_s, self.ramp),
            false => Profile::stages(&self.stages),
        }
    }

    /// Returns one worker's part of the shared connections.
    pub(crate) fn protocol_of_worker(&self, number: usize) -> Protocol {
        let of_program = Protocol {
            shared: self.protocol.shared.map(|all| self.part.share(all)),
            ..self.protocol
        };
        of_program.of_worker(number as u32, self.workers() as u32)
    }
}

/// The wire form of a workload: its templates as text.
mod workload {
    use super::*;
    use lab_workload::Message;
    use serde::{Deserializer, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(of: &Arc<Workload>, to: S) -> Result<S::Ok, S::Error> {
        let message = Message::new(of).map_err(ser::Error::custom)?;
        message.serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Arc<Workload>, D::Error> {
        let workload = Message::deserialize(from)?.workload();
        workload.map(Arc::new).map_err(de::Error::custom)
    }
}

/// Returns when user `index` of `users` starts, after the trial's 0.
fn start_offset(ramp: Duration, index: u32, users: u32) -> Nanos {
    let offset = ramp.as_nanos() * u128::from(index) / u128::from(users.max(1));
    Nanos::try_from(offset).unwrap_or(Nanos::MAX)
}

/// Limits of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From the send to the last byte of the response.
    pub request_timeout: Duration,
    /// For a new connection, TLS included. The request timeout runs meanwhile.
    pub connect_timeout: Duration,
    /// A step is not repeated any further in a session after a request of it timed out.
    pub timeout_ends_step: bool,
    /// The maximum size of a response body.
    pub max_response_bytes: u64,
    /// The maximum size of a response head, and of the trailer section of a chunked body.
    pub max_header_bytes: usize,
    /// A connection idle for longer is closed before its next use.
    pub keep_alive_idle: Duration,
    /// Users in setup at the same time, over all workers.
    pub setup_concurrency: u32,
    /// The maximum number of arrived sessions that wait for a connection, over all workers; further ones are dropped
    /// and counted.
    pub max_waiting: u32,
    /// The minimum time before a user's next request after three consecutive timeouts, connect failures, or resets,
    /// also in a workload without waits. Such pauses are counted.
    pub failure_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_millis(lab_workload::TIMEOUT_MS),
            connect_timeout: Duration::from_secs(10),
            timeout_ends_step: false,
            max_response_bytes: 64 << 20,
            max_header_bytes: 64 << 10,
            keep_alive_idle: Duration::from_secs(300),
            setup_concurrency: 64,
            max_waiting: 1_000_000,
            failure_pause: Duration::from_millis(100),
        }
    }
}

impl Limits {
    /// Those of them that bound a single request.
    pub(crate) fn of_requests(&self) -> lab_client::http::Limits {
        lab_client::http::Limits {
            request_timeout: self.request_timeout,
            connect_timeout: self.connect_timeout,
            max_response_bytes: self.max_response_bytes,
            max_header_bytes: self.max_header_bytes,
            keep_alive_idle: self.keep_alive_idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_start_evenly_over_the_ramp() {
        let ramp = Duration::from_secs(12);
        assert_eq!(start_offset(ramp, 0, 3), 0);
        assert_eq!(start_offset(ramp, 1, 3), 4_000_000_000);
        assert_eq!(start_offset(ramp, 2, 3), 8_000_000_000);
        assert_eq!(start_offset(Duration::MAX, 1, 2), Nanos::MAX);
    }
}
