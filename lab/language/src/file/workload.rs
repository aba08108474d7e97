//! The raw form of a workload file.

use schemars::JsonSchema;
use serde::Serialize;

use super::keys::KeyFile;
use super::parallel::ParallelFile;
use super::protocol::ProtocolFile;
use super::request::{RequestFile, RequestItem};
use super::retry::RetryFile;
use super::rows::DataFile;
use super::shapes::{Count, Size, Time, WaitTime};
use super::shared::SharedFile;
use super::sign::{AuthFile, SignFile};
use crate::error::Problems;
use crate::node::Node;
use crate::source::Span;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, OneOrMany, Scalar, Table};

/// A workload: what virtual users do.
///
/// Texts of requests are templates: `{{ name }}` is a variable of `user:`, of a capture, or of
/// `set:`; `index` and `users` are always there, and `password` where the system gives one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "Plimsoll workload")]
pub struct WorkloadFile {
    /// Short name: lower-case letters, digits, and hyphens.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    pub(crate) workload: At<Scalar>,
    /// What it stands for, in prose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) about: Option<At<Scalar>>,
    /// What its users speak with the system: `redis`, or `{ name: redis, password: "{{ password }}" }`;
    /// `http` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<At<ProtocolFile>>,
    /// Fewest users that it makes sense with, where they act on each other: `plan` and `run` warn of a load with
    /// fewer. That `neighbour(8)` needs 9 is known without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) least_users: Option<At<Scalar>>,
    /// Values that templates, waits, repeats, and sizes may name, and that a study may set
    /// otherwise.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) parameters: Table<At<Scalar>>,
    /// Rows of a CSV file with a line of names, or of JSON Lines (`.jsonl`): a row's columns are
    /// variables of the user or the session that it is given to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<At<DataFile>>,
    /// What users share with each other, by name: `{ order_no: { counter: { from: 1 } } }`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) shared: Table<At<SharedFile>>,
    /// Variables of each user, evaluated once in this order; a system that knows its users signs
    /// them in by `name` (and `password`).
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) user: Table<At<Scalar>>,
    /// Steps before measuring, as fast as the system allows. All users finish a step before the
    /// next begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) setup: Vec<At<StepFile>>,
    /// The session that each user repeats.
    pub(crate) session: SessionFile,
    /// A single request measured beside the load and reported apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe: Option<ProbeFile>,
    /// What a session carries from one end to the other, such as an attachment: reports then tell
    /// its rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transfer: Option<TransferFile>,
    /// Whether answers are asked for compressed, where a request doesn't say it; `false` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compressed: Option<At<Scalar>>,
    /// How many redirects a request follows that doesn't say it; none unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) follow: Option<At<Scalar>>,
    /// The longest body of an answer, such as `1 GiB`; 64 MiB unless said. A longer one is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) max_body: Option<At<Scalar>>,
    /// Cookies of each user besides those that the server sets: `{ consent: "yes", session: "{{ sid }}" }`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) cookies: Table<At<Scalar>>,
    /// Whether requests begin traces (W3C Trace Context, the header `traceparent`): `true`, or the part of
    /// them that does, such as `1%`. The ids of failed ones stand in their examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<At<Scalar>>,
    /// Keys by name, for `key('api')` and for what signs: `{ api: { file: api.pem }, hook: { secret: HOOK_KEY } }`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) keys: Table<At<KeyFile>>,
    /// What signs all requests that don't say it themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sign: Option<At<SignFile>>,
    /// The credentials of requests: OAuth 2 tokens, renewed before they expire, or answers to HTTP Digest challenges.
    /// Steps and requests with `auth: none` send none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<At<AuthFile>>,
}

/// What a session carries.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TransferFile {
    /// Where to, or where from: the name of a database or folder, for reports.
    #[schemars(with = "String")]
    pub(crate) place: At<Scalar>,
    /// Its size, such as `2 MiB`.
    #[schemars(with = "Size")]
    pub(crate) bytes: At<Scalar>,
    /// The size of the chunks that it goes in; `bytes` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) chunk: Option<At<Scalar>>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SessionFile {
    /// Fixed cycle time, such as `12m`; without it a cycle follows the one before at once. A cycle
    /// that overruns is followed at once, and counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) pace: Option<At<Scalar>>,
    /// Who comes in each session: the `same` user again, with its cookies, its connection, and what it
    /// captured; or somebody `new`, without. `same` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) visitor: Option<At<Scalar>>,
    /// Whether everything sent must follow from the seed: `true` makes the time of day, signatures that contain the
    /// time or a random part, and what users share (`next`, `take`, pools) errors. `false` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) repeatable: Option<At<Scalar>>,
    /// What a failed request changes, of all steps that don't say it: `continue` (unless said) goes on with the next
    /// step, `end_session` with the next session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on_failure: Option<At<Scalar>>,
    /// The steps of a cycle.
    #[schemars(with = "Vec<StepFile>", length(min = 1))]
    pub(crate) steps: At<Vec<At<StepFile>>>,
}

/// A step: a wait, then one or more requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StepFile {
    /// Its name in reports, unique in the session. Steps of the setup may go without.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) step: Option<At<Scalar>>,
    /// In place of `step`: the name of a transaction, whose `steps` are timed together, unique in the session. Within
    /// them may stand choices, groups, and further transactions, up to 8 deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) transaction: Option<At<Scalar>>,
    /// What it has in common with other steps, of whatever workload: `[checkout]`, or several. The report has
    /// figures of the steps of each tag, and `response_time{tag:checkout}` judges them. Each is of lower-case
    /// letters, digits, and hyphens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<OneOrMany>,
    /// Think time before it: `5s..15s`, `10s`, `exponential(10s)`, `lognormal(10s, 0.5)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WaitTime>")]
    pub(crate) wait: Option<At<Scalar>>,
    /// How often it is done in a row, each time with its wait; 1 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) repeat: Option<At<Scalar>>,
    /// Of the setup: `true` where the first user does it for all, and nobody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) once: Option<At<Scalar>>,
    /// Of a step or group of the session: it is done where this condition holds, such as `items |
    /// length > 0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) when: Option<At<Scalar>>,
    /// Of a step or group of the session: it is done again until this condition holds after a round,
    /// `at_most` so often.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) until: Option<At<Scalar>>,
    /// Most rounds of a loop with `until`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at_most: Option<At<Scalar>>,
    /// Of a step of the session: how often a request that fails is sent again: `3`, or
    /// `{ at_most: 3, wait: 1s }`. All attempts are one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<At<RetryFile>>,
    /// Of a step of the session: the variable that it takes from a queue before its first request, and how long it waits
    /// for an entry before it is skipped: `{ order: orders, within: 5s }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<Scalar>>")]
    pub(crate) take: Option<At<Table<At<Scalar>>>>,
    /// Of a step of the session: the queue into which it puts an entry when all of its requests met their `expect`, and
    /// the entry: `{ orders: "{{ id }}" }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<Scalar>>")]
    pub(crate) put: Option<At<Table<At<Scalar>>>>,
    /// Of a step of the session: what a failed request changes, once its retries have failed, too. `continue` goes on with
    /// the next step, `end_session` with the next session. As the session says unless said here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on_failure: Option<At<Scalar>>,
    /// Variables set before its first request, for this step and later ones.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) set: Table<At<Scalar>>,
    /// The part of the sessions that does it, such as `30%`; all unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<At<Scalar>>,
    /// Within `one_of`: how often it is chosen, seen beside the weights of the others; 1 unless
    /// said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<At<Scalar>>,
    /// In place of a step: steps (or groups, with `steps`) of which each session does one, chosen by
    /// their weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StepFile>>")]
    pub(crate) one_of: Option<At<Vec<At<StepFile>>>>,
    /// In place of a step: a group of steps that have a share or weight, a condition, or a transaction together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StepFile>>")]
    pub(crate) steps: Option<At<Vec<At<StepFile>>>>,
    /// Its requests, one after the other, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<At<Vec<RequestItem>>>,
    /// Requests that go out at the same time once those before have ended, as a page's pictures do: a list, or
    /// `{ at_once: 6, requests: […] }`. The time of the step until the last of them has ended is that of a transaction of
    /// its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ParallelFile>")]
    pub(crate) parallel: Option<At<ParallelFile>>,
    /// Its only request.
    #[serde(flatten)]
    pub(crate) only: RequestFile,
}

/// A single request beside the load, sent with the variables of user 0.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ProbeFile {
    /// Planned sends are this far apart.
    #[schemars(with = "Time")]
    pub(crate) every: At<Scalar>,
    /// The request.
    #[serde(flatten)]
    pub(crate) only: RequestFile,
}

impl Decode for WorkloadFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a workload", problems)?;
        let workload = fields.required("workload", problems);
        let about = fields.optional("about", problems);
        let protocol = fields.optional("protocol", problems);
        let least_users = fields.optional("least_users", problems);
        let parameters = fields.optional("parameters", problems);
        let data = fields.optional("data", problems);
        let shared = fields.optional("shared", problems);
        let user = fields.optional("user", problems);
        let setup = fields.optional("setup", problems);
        let session = fields.required("session", problems);
        let probe = fields.optional("probe", problems);
        let transfer = fields.optional("transfer", problems);
        let compressed = fields.optional("compressed", problems);
        let follow = fields.optional("follow", problems);
        let max_body = fields.optional("max_body", problems);
        let cookies = fields.optional("cookies", problems);
        let trace = fields.optional("trace", problems);
        let keys = fields.optional("keys", problems);
        let sign = fields.optional("sign", problems);
        let auth = fields.optional("auth", problems);
        fields.finish(problems);
        Some(Self {
            compressed,
            follow,
            max_body,
            cookies: cookies.unwrap_or_default(),
            trace,
            keys: keys.unwrap_or_default(),
            sign,
            auth,
            workload: workload?,
            about,
            protocol,
            least_users,
            parameters: parameters.unwrap_or_default(),
            data,
            shared: shared.unwrap_or_default(),
            user: user.unwrap_or_default(),
            setup: setup.unwrap_or_default(),
            session: session?,
            probe,
            transfer,
        })
    }
}

impl StepFile {
    /// Returns its requests with more than a line.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestFile> {
        self.placed_requests().map(|(_, request)| request)
    }

    /// Returns the same requests, each with its index among all requests of the step.
    pub(crate) fn placed_requests(&self) -> impl Iterator<Item = (usize, &RequestFile)> {
        let listed = self.requests.iter().flat_map(|list| &list.value);
        let listed = listed.enumerate().filter_map(|(at, item)| match item {
            RequestItem::Full(request) => Some((at, &request.value)),
            RequestItem::Line(_) => None,
        });
        let before = match &self.requests {
            Some(list) => list.value.len(),
            None => usize::from(!self.only.is_empty()),
        };
        let parallel = self.parallel.iter().flat_map(|at| at.value.all());
        let parallel = parallel.map(move |(at, request)| (before + at, request));
        std::iter::once((0, &self.only))
            .chain(listed)
            .chain(parallel)
    }
}

impl Decode for SessionFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a session", problems)?;
        let pace = fields.optional("pace", problems);
        let visitor = fields.optional("visitor", problems);
        let repeatable = fields.optional("repeatable", problems);
        let on_failure = fields.optional("on_failure", problems);
        let steps = fields.required("steps", problems);
        fields.finish(problems);
        Some(Self {
            pace,
            visitor,
            repeatable,
            on_failure,
            steps: steps?,
        })
    }
}

impl StepFile {
    /// Returns the report names of its parallel requests: each once, in the order of the file.
    pub(crate) fn names_within(&self) -> Vec<&At<Scalar>> {
        let mut names: Vec<&At<Scalar>> = Vec::new();
        let parallel = self.parallel.iter().flat_map(|at| at.value.all());
        for name in parallel.filter_map(|(_, request)| request.name.as_ref()) {
            if !names.iter().any(|other| other.text() == name.text()) {
                names.push(name);
            }
        }
        names
    }
}

impl Container for StepFile {}

impl Decode for StepFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a step", problems)?;
        let step = Self {
            step: fields.optional("step", problems),
            tags: fields.optional("tags", problems),
            wait: fields.optional("wait", problems),
            repeat: fields.optional("repeat", problems),
            once: fields.optional("once", problems),
            when: fields.optional("when", problems),
            until: fields.optional("until", problems),
            at_most: fields.optional("at_most", problems),
            retry: fields.optional("retry", problems),
            take: fields.optional("take", problems),
            put: fields.optional("put", problems),
            on_failure: fields.optional("on_failure", problems),
            set: fields.optional("set", problems).unwrap_or_default(),
            share: fields.optional("share", problems),
            weight: fields.optional("weight", problems),
            one_of: fields.optional("one_of", problems),
            transaction: fields.optional("transaction", problems),
            steps: fields.optional("steps", problems),
            requests: fields.optional("requests", problems),
            parallel: fields.optional("parallel", problems),
            only: RequestFile::from_fields(&mut fields, problems),
        };
        fields.finish(problems);
        Some(step)
    }
}

impl StepFile {
    /// Returns the place of its condition or loop, if it has one.
    pub(crate) fn control(&self) -> Option<&Span> {
        let of = [&self.when, &self.until, &self.at_most];
        of.into_iter().flatten().map(|at| &at.span).next()
    }
}

impl Decode for TransferFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a transfer", problems)?;
        let place = fields.required("place", problems);
        let bytes = fields.required("bytes", problems);
        let chunk = fields.optional("chunk", problems);
        fields.finish(problems);
        Some(Self {
            place: place?,
            bytes: bytes?,
            chunk,
        })
    }
}

impl Decode for ProbeFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a probe", problems)?;
        let every = fields.required("every", problems);
        let only = RequestFile::from_fields(&mut fields, problems);
        fields.finish(problems);
        Some(Self {
            every: every?,
            only,
        })
    }
}
