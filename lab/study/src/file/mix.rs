//! The populations of a load as written.

use lab_language::{
    At, Container, Count, Decode, Fields, Problems, Scalar, Span, Table, Time, node::Node,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::arrival::ArrivalFile;
use super::timeline::TimelineFile;

/// Users of one kind beside those of others. `share` is its part of the load's users, rate, or stages; `users`,
/// `arrival`, or `timeline` is a load of its own.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PopulationFile {
    /// The name in reports, before the names of its steps, and in thresholds such as
    /// `response_time{population:readers}`: lower-case letters, digits, and hyphens. All random draws of its users
    /// follow from this name and the study's seed, whatever the other populations are.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    pub(crate) population: At<Scalar>,
    /// The workload of its users, named like the study's `workload`. Default: that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) workload: Option<At<Scalar>>,
    /// The part of the load, relative to the other shares, 1 to 10,000: 80 beside 20, or 4 beside 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) share: Option<At<Scalar>>,
    /// The population's own virtual users, 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users: Option<At<Scalar>>,
    /// Sessions that arrive at a rate of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ArrivalFile>")]
    pub(crate) arrival: Option<At<ArrivalFile>>,
    /// Sessions that arrive as recorded, from the beginning of the load on, ramp included. Those after its end are
    /// skipped. Connections are those of `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimelineFile>")]
    pub(crate) timeline: Option<At<TimelineFile>>,
    /// The delay between the start of the load and that of the population; its ramp is as long as the load's. For a
    /// population with `users` or `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) after: Option<At<Scalar>>,
    /// Values for the parameters of its workload, in place of the study's.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) parameters: Table<At<Scalar>>,
}

impl Container for PopulationFile {}

impl Decode for PopulationFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a population", problems)?;
        let population = fields.required("population", problems);
        let workload = fields.optional("workload", problems);
        let share = fields.optional("share", problems);
        let users = fields.optional("users", problems);
        let arrival = fields.optional("arrival", problems);
        let timeline = fields.optional("timeline", problems);
        let after = fields.optional("after", problems);
        let parameters = fields.optional("parameters", problems);
        let loads = [
            fields.named(&["share", "users", "arrival"]),
            // An `arrival` may set its connections.
            fields.named(&["share", "users", "timeline"]),
        ];
        fields.finish(problems);
        let second = |loads: &Vec<Span>| loads.get(1).cloned();
        if let Some(second) = loads.iter().find_map(second) {
            let message = "a population has a `share` of the load, or `users`, an `arrival`, or a \
                           `timeline` of its own";
            problems.push(second.problem(message, "the second one"));
        }
        Some(Self {
            population: population?,
            workload,
            share,
            users,
            arrival,
            timeline,
            after,
            parameters: parameters.unwrap_or_default(),
        })
    }
}
