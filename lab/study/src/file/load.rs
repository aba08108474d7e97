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

/// What the system is to carry: `users` (each begins its next session when its last is over),
/// `arrival` (sessions begin at a rate, whatever the system does), or `sequence` (sessions of one
/// user, one after the other). With `stages`, users or the rate change with time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LoadFile {
    /// Virtual users, 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users: Option<At<Scalar>>,
    /// Sessions that arrive at a rate. The pace of the workload is not kept: the rate stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ArrivalFile>")]
    pub(crate) arrival: Option<At<ArrivalFile>>,
    /// Sessions of one user, one after the other; the trial ends with the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SequenceFile>")]
    pub(crate) sequence: Option<At<SequenceFile>>,
    /// How users, or the rate of arrivals, change with time, one stage after the other, at most 100; in
    /// the place of `users`, `ramp`, and `hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StageFile>>")]
    pub(crate) stages: Option<At<Vec<At<StageFile>>>>,
    /// A recording that is replayed: sessions arrive at its moments, in the place of `users`, `ramp`, and
    /// `hold`. Connections are those of `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimelineFile>")]
    pub(crate) timeline: Option<At<TimelineFile>>,
    /// Populations that are there at the same time, at most 20, each with a workload and a share, or with a
    /// load of its own. Their users are numbered through: `index` of the second's first user is the number
    /// of users of the first. A probe is that of the first whose workload has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<PopulationFile>>")]
    pub(crate) mix: Option<At<Vec<At<PopulationFile>>>>,
    /// User i of N starts at ramp × i ÷ N; the rate of arrivals rises in a straight line. None
    /// unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) ramp: Option<At<Scalar>>,
    /// The time at full load: `10m`, or `4 cycles` of the workload's pace. Of a sequence, the time
    /// that it may take (10m unless said), which no speed divides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HoldTime>")]
    pub(crate) hold: Option<At<Scalar>>,
    /// How long an answer may take before it counts as an error, 10ms to 1h; 60s unless said. No
    /// speed divides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) timeout: Option<At<Scalar>>,
    /// In the place of a timeout, 10ms to 1h: an operation that takes longer is no error but a bound
    /// on its step, which is told as "over 5 min" and has no mean; the step isn't repeated any
    /// further in that session. No speed divides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) time_limit: Option<At<Scalar>>,
    /// What drives it: so many processes of this machine, 1 to 64, or agents on other machines, such as
    /// `{ agents: 5 }`. One process unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GeneratorsFile>")]
    pub(crate) generators: Option<At<GeneratorsFile>>,
    /// Connections that all users share, 1 to 1,000,000, where there are more users than connections to be
    /// had: each request takes the one that has been free for longest, and waits where none is. Over HTTP/2,
    /// and so with gRPC, each carries many requests at a time, and users stay with theirs. Each user has
    /// one of its own unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) connections: Option<At<Scalar>>,
    /// Addresses of this machine that connections come from, in turn: `[10.0.0.7, 10.0.0.10-10.0.0.25]`.
    /// Each has ports of its own. What the system chooses unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<OneOrMany>,
}

/// A part of a load in which the level stays (`for`), or changes in a straight line from that of the stage
/// before, or from 0 (`over`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StageFile {
    /// Its name in reports, and in thresholds such as `response_time{stage:spike}`; its number unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) stage: Option<At<Scalar>>,
    /// Virtual users, 0 to 1,000,000. Those who leave send nothing any more; who came last leaves first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users: Option<At<Scalar>>,
    /// Sessions that arrive per time: `1000/s`, `0/s`. Spacing and connections are those of `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Rate>")]
    pub(crate) rate: Option<At<Scalar>>,
    /// How long the level stays.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) stays: Option<At<Scalar>>,
    /// How long it takes to get there. Such a stage is no steady load, and no threshold is about it.
    #[serde(rename = "over", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) ramps: Option<At<Scalar>>,
}

/// Sessions of one user, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SequenceFile {
    /// How many.
    #[schemars(with = "Count")]
    pub(crate) sessions: At<Scalar>,
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
            let message = "a sequence is one user, and a mix is of several populations";
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
        fields.finish(problems);
        Some(Self {
            sessions: sessions?,
        })
    }
}
