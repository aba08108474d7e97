//! The load of a study as written: how many users, or how many sessions, and for how long; or stages, in
//! which that changes.

use lab_language::{
    At, Container, Count, Decode, Fields, HoldTime, OneOrMany, Problems, Rate, Scalar, Time,
    node::Node,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::arrival::ArrivalFile;
use super::generators::GeneratorsFile;
use super::mix::PopulationFile;
use super::timeline::TimelineFile;

/// The load: `users` (each starts its next session when the last one ends), `arrival` (sessions start at a rate,
/// whatever the system does), or `sequence` (a fixed number of sessions, one after the other). With `stages`, users or the
/// rate change with time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LoadFile {
    /// Virtual users, 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users: Option<At<Scalar>>,
    /// Sessions that arrive at a rate. The rate replaces the workload's pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ArrivalFile>")]
    pub(crate) arrival: Option<At<ArrivalFile>>,
    /// Sessions of one user, one after the other. The trial ends with the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SequenceFile>")]
    pub(crate) sequence: Option<At<SequenceFile>>,
    /// Changes of the users, or of the arrival rate, with time: at most 100 stages, one after the other, in place of
    /// `users`, `ramp`, and `hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StageFile>>")]
    pub(crate) stages: Option<At<Vec<At<StageFile>>>>,
    /// A recording to replay: sessions arrive at its moments, in place of `users`, `ramp`, and `hold`. Connections are
    /// those of `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimelineFile>")]
    pub(crate) timeline: Option<At<TimelineFile>>,
    /// Populations that run at the same time, at most 20, each with a workload and a share, or with a load of its own.
    /// Their users are numbered consecutively: `index` of the second's first user is the number of users of the first.
    /// The probe is that of the first population whose workload has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<PopulationFile>>")]
    pub(crate) mix: Option<At<Vec<At<PopulationFile>>>>,
    /// The ramp: user i of N starts at ramp × i ÷ N, or the arrival rate rises linearly. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) ramp: Option<At<Scalar>>,
    /// The time at full load: `10m`, or `4 cycles` of the workload's pace. For a sequence: its maximum time (default:
    /// 10m), which `--speed` does not divide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HoldTime>")]
    pub(crate) hold: Option<At<Scalar>>,
    /// The maximum time of a response before it counts as an error, 10ms to 1h. Default: 60s. `--speed` does not divide
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) timeout: Option<At<Scalar>>,
    /// The maximum time of an operation in place of a timeout, 10ms to 1h. A longer one is no error but a bound on its
    /// step, which is reported as "over 5 min" and has no mean; the step isn't repeated any further in that session.
    /// `--speed` does not divide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) time_limit: Option<At<Scalar>>,
    /// The load generators: the number of processes on this machine, 1 to 64, or agents on other machines, such as
    /// `{ agents: 5 }`. Default: one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GeneratorsFile>")]
    pub(crate) generators: Option<At<GeneratorsFile>>,
    /// Connections that all users share, 1 to 1,000,000, for more users than possible connections. Each request takes
    /// the connection that has been free for longest, and waits if none is. Over HTTP/2, and so with gRPC, each carries
    /// many requests at a time, and users keep theirs. Default: one connection per user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) connections: Option<At<Scalar>>,
    /// Addresses of this machine that connections use as their source, in turn: `[10.0.0.7, 10.0.0.10-10.0.0.25]`. Each
    /// has its own ports. Default: the kernel's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<OneOrMany>,
}

/// A part of a load in which the level is constant (`for`), or changes linearly (`over`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StageFile {
    /// The name in reports, and in thresholds such as `response_time{stage:spike}`. Default: its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) stage: Option<At<Scalar>>,
    /// Virtual users, 0 to 1,000,000. Users that leave send nothing more; the last to join leaves first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users: Option<At<Scalar>>,
    /// Sessions that arrive per time: `1000/s`, `0/s`. Spacing and connections are those of `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Rate>")]
    pub(crate) rate: Option<At<Scalar>>,
    /// The level at the start of a change (`over`), as `users` or `rate` say it. Default: that of the stage before, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Scalar>")]
    pub(crate) from: Option<At<Scalar>>,
    /// The duration of the constant level.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) stays: Option<At<Scalar>>,
    /// The duration of the change to the level. Such a stage is no steady load: no threshold applies to it.
    #[serde(rename = "over", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) ramps: Option<At<Scalar>>,
}

/// A fixed number of sessions, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SequenceFile {
    /// The number of sessions: of each user, or of all together if they are `shared`.
    #[schemars(with = "Count")]
    pub(crate) sessions: At<Scalar>,
    /// The number of users; all start at once. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users: Option<At<Scalar>>,
    /// `true`: the users share the sessions, and a free user takes the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) shared: Option<At<Scalar>>,
}

impl Container for LoadFile {}
impl Container for StageFile {}
impl Container for SequenceFile {}

impl Decode for LoadFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a load", problems)?;
        let file = Self {
            users: fields.optional("users", problems),
            arrival: fields.optional("arrival", problems),
            sequence: fields.optional("sequence", problems),
            stages: fields.optional("stages", problems),
            timeline: fields.optional("timeline", problems),
            mix: fields.optional("mix", problems),
            ramp: fields.optional("ramp", problems),
            hold: fields.optional("hold", problems),
            timeout: fields.optional("timeout", problems),
            time_limit: fields.optional("time_limit", problems),
            generators: fields.optional("generators", problems),
            connections: fields.optional("connections", problems),
            sources: fields.optional("sources", problems),
        };
        let named = fields.named(&["users", "arrival", "sequence"]);
        let beside_stages = fields.named(&["users", "sequence", "ramp", "hold"]);
        let beside_timeline = fields.named(&["users", "sequence", "stages", "ramp", "hold"]);
        let mix = fields.named(&["mix"]);
        let beside_mix = fields.named(&["sequence"]);
        let limits = fields.named(&["timeout", "time_limit"]);
        fields.finish(problems);
        if let [_, second, ..] = named.as_slice() {
            let message = "a load is `users`, `arrival`, or `sequence`";
            problems.push(second.problem(message, "the second one"));
        }
        if let [other, ..] = beside_stages.as_slice()
            && file.stages.is_some()
        {
            let message = "the stages of a load say its users or rates, and how long they last";
            problems.push(other.problem(message, "leave this out"));
        }
        if let [other, ..] = beside_timeline.as_slice()
            && file.timeline.is_some()
        {
            let message = "a timeline says when sessions arrive, and how long that lasts";
            problems.push(other.problem(message, "leave this out"));
        }
        if let ([mix], true) = (mix.as_slice(), file.timeline.is_some()) {
            // A recording has one moment for each session, and does not assign it to one of several populations.
            let message = "a timeline is replayed by one population of a mix";
            let mut problem = mix.problem(message, "leave this out, or the other");
            let help = "write `timeline` under the population that replays it; or let a column of the data say \
                        who comes, and steps ask for it: `when: kind == \"reader\"`";
            problem.help = Some(help.to_owned());
            problems.push(problem);
        }
        if let [sequence] = beside_mix.as_slice()
            && file.mix.is_some()
        {
            let message = "a sequence can't be combined with `mix`";
            problems.push(sequence.problem(message, "leave this out, or `mix`"));
        }
        if let [_, second, ..] = limits.as_slice() {
            let message = "what takes too long is an error (`timeout`) or a bound (`time_limit`)";
            problems.push(second.problem(message, "the second one"));
        }
        Some(file)
    }
}

impl Decode for StageFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a stage", problems)?;
        let file = Self {
            stage: fields.optional("stage", problems),
            users: fields.optional("users", problems),
            rate: fields.optional("rate", problems),
            from: fields.optional("from", problems),
            stays: fields.optional("for", problems),
            ramps: fields.optional("over", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}

impl Decode for SequenceFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a sequence", problems)?;
        let sessions = fields.required("sessions", problems);
        let users = fields.optional("users", problems);
        let shared = fields.optional("shared", problems);
        fields.finish(problems);
        Some(Self {
            sessions: sessions?,
            users,
            shared,
        })
    }
}
