//! A study file as written.

use std::borrow::Cow;

use lab_language::{
    At, Decode, Fields, Limit, OneOrMany, Problems, ProfileFile, Scalar, Span, Table, node::Node,
};
use lab_plan::{Decides, Named};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::abort::AbortFile;
use super::checks::ChecksFile;
use super::find::FindFile;
use super::load::LoadFile;
use super::matrix::MatrixFile;
use super::requires::RequiresFile;
use super::system::SystemFile;

/// A study: one file, one question.
///
/// Settings under `system` and `load` may name a factor of the matrix: `users: "{{ users }}"`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "Plimsoll study")]
pub(crate) struct StudyFile {
    /// Short name: lower-case letters, digits, and hyphens. It is also the name of the results' folder.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    pub(crate) study: At<Scalar>,
    /// The title of the report, one line.
    #[schemars(with = "String")]
    pub(crate) title: At<Scalar>,
    /// The question and its background, in prose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) about: Option<At<Scalar>>,
    /// The workload of the virtual users: `calendar` is `../workloads/calendar.workload.yaml`; a path is relative to
    /// this file's folder.
    #[schemars(with = "String")]
    pub(crate) workload: At<Scalar>,
    /// Factors and their levels; each combination is a cell. Default: one cell. `zip` lists groups of factors whose
    /// levels go together, such as `[[users, threads]]`; `exclude` and `include` list cells to skip or to add, such as
    /// `[{ users: 10 }]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<MatrixFile>")]
    pub(crate) matrix: Option<At<MatrixFile>>,
    /// Values for the workload's parameters, in place of its own.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) parameters: Table<At<Scalar>>,
    /// The system under test, unless there are `variants`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SystemFile>")]
    pub(crate) system: Option<At<SystemFile>>,
    /// Several systems by name, in place of `system`. They are the levels of a factor `variant`, and are compared with
    /// the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<SystemFile>>")]
    pub(crate) variants: Option<At<Table<At<SystemFile>>>>,
    /// The load on the system.
    #[schemars(with = "LoadFile")]
    pub(crate) load: At<LoadFile>,
    /// The search for the maximum number of users that the system sustains; the load then has no `users`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<FindFile>")]
    pub(crate) find: Option<At<FindFile>>,
    /// The number of blocks, which is the number of trials per cell. Default: 1. A comparison needs at least 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 1, max = 10000))]
    pub(crate) trials: Option<At<Scalar>>,
    /// The maximum number of repetitions of an invalid trial, at the end of its block, if the reason is outside of
    /// system and generator, such as other programs. Default: 3. No trial is ever repeated for its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 0, max = 10))]
    pub(crate) repeats: Option<At<Scalar>>,
    /// The order of the cells in a block: `shuffled` (by the seed) or `listed`. Default: `shuffled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrderName>")]
    pub(crate) order: Option<At<Scalar>>,
    /// The seed of all randomness. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub(crate) seed: Option<At<Scalar>>,
    /// Day 0 of the date functions, such as `2026-01-05`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    pub(crate) dates_from: Option<At<Scalar>>,
    /// Limits on figures of the server: `response_time`, `service_time`, `first_event`, `between_events`,
    /// `transaction_time`, `transaction_elapsed`, `error_rate`, `resends`, `throughput`, or `measure`, each with a list
    /// such as `["p(95) < 300ms"]`. `response_time{step:Log in}` judges one step,
    /// `transaction_time{transaction:Checkout}` one transaction, `measure{name:queued}` the numbers of a measure. Limits
    /// on times cover all requests: a failed one is slower than any limit, and counts as the timeout in an average.
    /// `resends` are requests sent a second time because the server had closed the connection before it responded:
    /// `["rate < 0.1%"]`. `error_rate` is always judged, by default with `rate < 1%`; `rate <= 100%` accepts everything.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Vec<Limit>>")]
    pub(crate) thresholds: Table<Vec<At<Scalar>>>,
    /// Ends a trial early, to protect the system: `["error_rate > 50%"]`, or with the duration of the violation
    /// (default: 10s), `[{ when: "response_time p(95) > 5s", for: 30s }]`. Over all requests: `error_rate`,
    /// `response_time`, `service_time`, `throughput`. An aborted trial is invalid, and isn't repeated; a search treats
    /// its load as not sustained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) abort_on: Option<Vec<AbortFile>>,
    /// Limits of the checks of the measurement, in place of the defaults: `other_programs: 40%` makes a trial beyond it
    /// invalid, `{ warn: 10%, invalid: 40% }` sets both limits. `plimsoll schema checks` lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checks: Option<ChecksFile>,
    /// The smallest relevant difference between cells, such as `5%`. Default: 2%. A comparison reports no smaller one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) smallest_difference: Option<At<Scalar>>,
    /// The measure that decides comparisons, such as `response_time.p95`: its verdict alone is the result of the run
    /// and of `plimsoll compare`. A part of the load or another quantile is named as
    /// `response_time{step:Log in}.p99.9`, `service_time{tag:checkout}.mean`, or `error_rate{population:readers}`. All
    /// others are then exploratory, and decide nothing. By default, p95 response time and throughput decide together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<DecidesText>")]
    pub(crate) decides: Option<At<Scalar>>,
    /// `true` runs the first cell of the study a second time in each block, as a control: differences between two runs
    /// of the same cell are noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) control: Option<At<Scalar>>,
    /// `true` runs the two variants at the same time, each with its own load generator, and compares them moment by
    /// moment: disturbances of the machine affect both. For machines with other users. Both may use the same cores, so
    /// that the loss of a core slows both; the load should leave some cores free. `apart` keeps each on a half of the
    /// cores, and swaps the halves by block: for loads that use all the CPU. A comparison needs at least 8 `trials`;
    /// figures are those of half a machine. `auto`, the default, runs them at the same time if the study compares
    /// exactly two variants and nothing else, and both fit on this machine at once; `false` runs them one after the
    /// other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>", extend("enum" = [true, false, "auto", "apart", null]))]
    pub(crate) duet: Option<At<Scalar>>,
    /// `true`: each trial also writes the data that its sessions transfer directly to the disk with the system's data,
    /// chunk by chunk, each synced. Reports then show how close the system is to the disk. The workload describes the
    /// data under `transfer`, and the load is a `sequence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) raw_baseline: Option<At<Scalar>>,
    /// `true` samples call stacks in each trial's hold: where the system spends its CPU time and what its threads wait
    /// for, by function, in `cpu.pb.gz` and `waits.pb.gz` of the trial's folder. The system must run on this machine,
    /// and the lab as root or with CAP_PERFMON; otherwise trials run without a profile and report why. One second in
    /// six is not sampled, to measure the cost of sampling. `{ rate: 199, frames: copies, budget: 2% }` sets the
    /// details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<ProfileFile>,
    /// Names of environment variables, parameters, and other keys whose values are secrets: they are masked in all
    /// stored and shown data. Variables, parameters, and `--set` values whose names look secret (`DB_PASSWORD`,
    /// `token`, `apiKey`) are masked without being listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secrets: Option<OneOrMany>,
    /// Programs that the study's systems need on this machine, and their packages. `plimsoll plan` and the start of a
    /// run check them, and print the command that installs what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requires: Option<RequiresFile>,
    /// CSV files of published figures to show beside the new ones, from `../published/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<OneOrMany>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "describes the schema only")]
enum OrderName {
    Shuffled,
    Listed,
}

/// What the schema lets a study name.
struct DecidesText;

impl JsonSchema for DecidesText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Decides".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "enum": Decides::names() },
                { "type": "string", "pattern": Named::PATTERN },
            ]
        })
    }
}

impl Decode for StudyFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a study", problems)?;
        let study = fields.required("study", problems);
        let title = fields.required("title", problems);
        let about = fields.optional("about", problems);
        let workload = fields.required("workload", problems);
        let matrix = fields.optional("matrix", problems);
        let parameters = fields.optional("parameters", problems);
        let system = fields.optional("system", problems);
        let variants = fields.optional("variants", problems);
        let systems = fields.named(&["system", "variants"]);
        let find = fields.optional("find", problems);
        let load = fields.required("load", problems);
        let trials = fields.optional("trials", problems);
        let repeats = fields.optional("repeats", problems);
        let order = fields.optional("order", problems);
        let seed = fields.optional("seed", problems);
        let dates_from = fields.optional("dates_from", problems);
        let thresholds = fields.optional("thresholds", problems);
        let abort_on = fields.optional("abort_on", problems);
        let checks = fields.optional("checks", problems);
        let smallest_difference = fields.optional("smallest_difference", problems);
        let decides = fields.optional("decides", problems);
        let control = fields.optional("control", problems);
        let duet = fields.optional("duet", problems);
        let raw_baseline = fields.optional("raw_baseline", problems);
        let profile = fields.optional("profile", problems);
        let secrets = fields.optional("secrets", problems);
        let requires = fields.optional("requires", problems);
        let published = fields.optional("published", problems);
        fields.finish(problems);
        one_of_two(node, &systems, problems);
        Some(Self {
            study: study?,
            title: title?,
            about,
            workload: workload?,
            matrix,
            parameters: parameters.unwrap_or_default(),
            system,
            variants,
            find,
            load: load?,
            trials,
            repeats,
            order,
            seed,
            dates_from,
            thresholds: thresholds.unwrap_or_default(),
            abort_on,
            checks,
            smallest_difference,
            decides,
            control,
            duet,
            raw_baseline,
            profile,
            secrets,
            requires,
            published,
        })
    }
}

/// A study has a system or variants, not both.
fn one_of_two(node: &Node, systems: &[Span], problems: &mut Problems) {
    let (problem, help) = match systems {
        [_] => return,
        [] => (
            node.span.first_line().problem(
                "a study needs `system` or `variants`",
                "a study begins here",
            ),
            "write `system: { groupware: {} }` for the server that comes along",
        ),
        [_, second, ..] => (
            second.problem("a study has `system` or `variants`", "the second one"),
            "one system is `system`; several, each with a name, are `variants`",
        ),
    };
    problems.push(problem.help(help));
}
