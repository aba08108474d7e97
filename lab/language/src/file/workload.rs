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
/// Texts of requests are templates: `{{ name }}` is a variable from `user:`, a capture, or `set:`. `index` and `users`
/// always exist, and `password` if the system gives one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "Plimsoll workload")]
pub struct WorkloadFile {
    /// Short name: lower-case letters, digits, and hyphens.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    pub(crate) workload: At<Scalar>,
    /// What the workload represents, in prose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) about: Option<At<Scalar>>,
    /// The protocol between users and system: `redis`, or `{ name: redis, password: "{{ password }}" }`. Default:
    /// `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<At<ProtocolFile>>,
    /// The minimum sensible number of users, if they act on each other: `plan` and `run` warn of a load with fewer. The
    /// 9 users that `neighbour(8)` needs are detected automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) least_users: Option<At<Scalar>>,
    /// Values that templates, waits, repeats, and sizes may name. A study may override them.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) parameters: Table<At<Scalar>>,
    /// Rows of a CSV file with a line of names, or of JSON Lines (`.jsonl`). The columns of a row are variables of its
    /// user or session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<At<DataFile>>,
    /// State that users share, by name: `{ order_no: { counter: { from: 1 } } }`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) shared: Table<At<SharedFile>>,
    /// Variables of each user, evaluated once in this order. A system with user accounts authenticates users by `name`
    /// (and `password`).
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) user: Table<At<Scalar>>,
    /// Steps before the measurement, as fast as the system allows. All users finish a step before the next one begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) setup: Vec<At<StepFile>>,
    /// The session that each user repeats.
    pub(crate) session: SessionFile,
    /// A single request that is measured beside the load and reported separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe: Option<ProbeFile>,
    /// The data that a session transfers, such as an attachment. Reports then show its rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transfer: Option<TransferFile>,
    /// Whether requests ask for compressed responses, unless they set it themselves. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compressed: Option<At<Scalar>>,
    /// The maximum number of redirects of a request, unless it sets its own. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) follow: Option<At<Scalar>>,
    /// The maximum size of a response's body, such as `1 GiB`; a larger one is an error. Default: 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) max_body: Option<At<Scalar>>,
    /// Cookies of each user, besides those that the server sets: `{ consent: "yes", session: "{{ sid }}" }`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) cookies: Table<At<Scalar>>,
    /// Whether requests start traces (W3C Trace Context, the header `traceparent`): `true`, or the part of them that
    /// does, such as `1%`. Examples of failed requests show their trace ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<At<Scalar>>,
    /// Keys by name, for `key('api')` and for signatures: `{ api: { file: api.pem }, hook: { secret: HOOK_KEY } }`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) keys: Table<At<KeyFile>>,
    /// The signature of all requests that don't set their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sign: Option<At<SignFile>>,
    /// The credentials of requests: OAuth 2 tokens, renewed before they expire, or responses to HTTP Digest challenges.
    /// Steps and requests with `auth: none` send none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<At<AuthFile>>,
}

/// The data that a session transfers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TransferFile {
    /// The source or destination, for reports: the name of a database or folder.
    #[schemars(with = "String")]
    pub(crate) place: At<Scalar>,
    /// The size, such as `2 MiB`.
    #[schemars(with = "Size")]
    pub(crate) bytes: At<Scalar>,
    /// The size of the chunks. Default: `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) chunk: Option<At<Scalar>>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SessionFile {
    /// The fixed cycle time, such as `12m`. After a cycle that overruns, the next starts at once, and the overrun is
    /// counted. By default, each cycle starts as soon as the previous one ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) pace: Option<At<Scalar>>,
    /// The user of each session: the `same` user again, with its cookies, its connection, and its captures, or a `new`
    /// one without them. Default: `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) visitor: Option<At<Scalar>>,
    /// `true`: all that is sent must follow from the seed. The time of day, signatures that contain the time or a
    /// random part, and shared state (`next`, `take`, pools) are then errors. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) repeatable: Option<At<Scalar>>,
    /// The action after a failed request, for steps that don't set it: `continue` goes on with the next step,
    /// `end_session` with the next session. Default: `continue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on_failure: Option<At<Scalar>>,
    /// In place of `steps`: a script in the form of k6 that plays the session, such as `shop.js`; relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) script: Option<At<Scalar>>,
    /// The exported function of the script that is a session. Default: `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) function: Option<At<Scalar>>,
    /// The steps of a cycle; required unless there is a `script`.
    #[schemars(with = "Option<Vec<StepFile>>")]
    pub(crate) steps: At<Vec<At<StepFile>>>,
}

/// A step: a wait, then one or more requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StepFile {
    /// The name in reports, unique in the session. Optional for steps of the setup.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) step: Option<At<Scalar>>,
    /// In place of `step`: the name of a transaction, unique in the session, whose `steps` are timed together. They may
    /// contain choices, groups, and further transactions, up to 8 deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) transaction: Option<At<Scalar>>,
    /// Tags that group steps, also those of other workloads: `[checkout]`, or several. Each has lower-case letters,
    /// digits, and hyphens. The report has figures of the steps of each tag, and `response_time{tag:checkout}` judges
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<OneOrMany>,
    /// The think time before the step: `5s..15s`, `10s`, `exponential(10s)`, `lognormal(10s, 0.5)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WaitTime>")]
    pub(crate) wait: Option<At<Scalar>>,
    /// The number of times in a row that the step runs, each with its wait. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) repeat: Option<At<Scalar>>,
    /// For steps of the setup: `true` runs the step only for the first user, on behalf of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) once: Option<At<Scalar>>,
    /// Runs the step or group only if this condition holds: `items | length > 0`. For the session only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) when: Option<At<Scalar>>,
    /// Repeats the step or group until this condition holds after a round, for at most `at_most` rounds. For the
    /// session only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) until: Option<At<Scalar>>,
    /// The maximum number of rounds of a loop with `until`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at_most: Option<At<Scalar>>,
    /// The maximum number of retries of a failed request: `3`, or `{ at_most: 3, wait: 1s }`. All attempts count as one
    /// request. For steps of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<At<RetryFile>>,
    /// Takes an entry from a queue into a variable before the first request: `{ order: orders, within: 5s }`. Without
    /// an entry in that time, the step is skipped. For steps of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<Scalar>>")]
    pub(crate) take: Option<At<Table<At<Scalar>>>>,
    /// Puts an entry into a queue when all of the step's requests met their `expect`: `{ orders: "{{ id }}" }`. For
    /// steps of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<Scalar>>")]
    pub(crate) put: Option<At<Table<At<Scalar>>>>,
    /// The action after a failed request, once its retries have failed, too: `continue` goes on with the next step,
    /// `end_session` with the next session. Default: as in the session. For steps of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on_failure: Option<At<Scalar>>,
    /// Variables that are set before the first request, for this step and later ones.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) set: Table<At<Scalar>>,
    /// The part of the sessions that run the step, such as `30%`. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<At<Scalar>>,
    /// Within `one_of`: how often it is chosen, relative to the weights of the others. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<At<Scalar>>,
    /// In place of a step: steps (or groups, with `steps`) of which each session runs one, chosen by weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StepFile>>")]
    pub(crate) one_of: Option<At<Vec<At<StepFile>>>>,
    /// In place of a step: a group of steps with a common share or weight, condition, or transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StepFile>>")]
    pub(crate) steps: Option<At<Vec<At<StepFile>>>>,
    /// The requests, sent one after the other, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<At<Vec<RequestItem>>>,
    /// Requests that are sent at the same time after those before have ended, like the images of a page: a list, or
    /// `{ at_once: 6, requests: […] }`. A transaction of the step's name measures the time of the step until the last
    /// of them has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ParallelFile>")]
    pub(crate) parallel: Option<At<ParallelFile>>,
    /// The only request.
    #[serde(flatten)]
    pub(crate) only: RequestFile,
}

/// A single request beside the load, sent with the variables of user 0.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ProbeFile {
    /// The interval between planned sends.
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
        let script: Option<At<Scalar>> = fields.optional("script", problems);
        let function = fields.optional("function", problems);
        let steps = match &script {
            Some(script) => Some(fields.optional("steps", problems).unwrap_or_else(|| At {
                value: Vec::new(),
                span: script.span.clone(),
            })),
            None => fields.required("steps", problems),
        };
        fields.finish(problems);
        Some(Self {
            script,
            function,
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
