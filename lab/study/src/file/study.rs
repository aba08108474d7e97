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
    /// Short name: lower-case letters, digits, and hyphens. The folder of the results is named
    /// after it.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    pub(crate) study: At<Scalar>,
    /// One line for the head of the report.
    #[schemars(with = "String")]
    pub(crate) title: At<Scalar>,
    /// The question and its background, in prose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) about: Option<At<Scalar>>,
    /// What the virtual users do: `calendar` is `../workloads/calendar.workload.yaml`; a path is
    /// taken from this file's folder.
    #[schemars(with = "String")]
    pub(crate) workload: At<Scalar>,
    /// Factors and their levels; each combination is a cell. Without it there is one cell. Under
    /// `zip`, groups of factors whose levels go together, such as `[[users, threads]]`; under
    /// `exclude` and `include`, cells to leave out or to add, such as `[{ users: 10 }]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<MatrixFile>")]
    pub(crate) matrix: Option<At<MatrixFile>>,
    /// Values for the parameters of the workload, in place of its own.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) parameters: Table<At<Scalar>>,
    /// The system under test; or else `variants`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SystemFile>")]
    pub(crate) system: Option<At<SystemFile>>,
    /// Several systems by name, in place of `system`: they are the levels of a factor `variant`,
    /// and compared with the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<SystemFile>>")]
    pub(crate) variants: Option<At<Table<At<SystemFile>>>>,
    /// What it is to carry.
    #[schemars(with = "LoadFile")]
    pub(crate) load: At<LoadFile>,
    /// A search for the most users that the system carries; the load then has no `users`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<FindFile>")]
    pub(crate) find: Option<At<FindFile>>,
    /// Number of blocks: how often each cell runs. 1 unless said; a comparison needs at least 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 1, max = 10000))]
    pub(crate) trials: Option<At<Scalar>>,
    /// How often a trial is repeated, at the end of its block, that is no measurement for a reason
    /// outside system and generator, such as other programs. 3 unless said; none is ever repeated for its
    /// result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 0, max = 10))]
    pub(crate) repeats: Option<At<Scalar>>,
    /// Order of the cells in a block: `shuffled` (by the seed, unless said) or `listed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrderName>")]
    pub(crate) order: Option<At<Scalar>>,
    /// Seed of all randomness; 1 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub(crate) seed: Option<At<Scalar>>,
    /// Day 0 of the date functions, such as `2026-01-05`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    pub(crate) dates_from: Option<At<Scalar>>,
    /// Judgements on the server: `response_time`, `service_time`, `first_event`, `between_events`,
    /// `transaction_time`, `transaction_elapsed`, `error_rate`, `resends`, or `throughput`, each with a list such as
    /// `["p(95) < 300ms"]`. `response_time{step:Log in}` judges one step, `transaction_time{transaction:Checkout}` one transaction.
    /// Limits on times are about all requests: one that failed is slower than any limit, and in an
    /// average it counts as the timeout. `resends` are requests sent a second time because the server
    /// had closed the connection before it answered: `["rate < 0.1%"]`. `error_rate` is always judged: `rate < 1%` unless said, where
    /// `rate <= 100%` lets everything pass.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Vec<Limit>>")]
    pub(crate) thresholds: Table<Vec<At<Scalar>>>,
    /// Ends a trial early, to protect the system: `["error_rate > 50%"]`, or with how long it has to be so
    /// `[{ when: "response_time p(95) > 5s", for: 30s }]`; 10s unless said. Of all requests: `error_rate`,
    /// `response_time`, `service_time`, `throughput`. An aborted trial is no measurement, and isn't
    /// repeated; a search takes its load for one that is not carried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) abort_on: Option<Vec<AbortFile>>,
    /// Limits of the checks on the measurement, in place of the usual ones: `other_programs: 40%`
    /// is beyond what a trial is no measurement, `{ warn: 10%, invalid: 40% }` says both.
    /// `plimsoll schema checks` lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checks: Option<ChecksFile>,
    /// The smallest difference between cells that matters, such as `5%`; 2% unless said. A
    /// comparison speaks of nothing smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) smallest_difference: Option<At<Scalar>>,
    /// The measure that comparisons are decided by, such as `response_time.p95`: its verdict alone is
    /// the answer, of the run and of `plimsoll compare`. A part of the load or another quantile is named
    /// as `response_time{step:Log in}.p99.9`, `service_time{tag:checkout}.mean`, or
    /// `error_rate{population:readers}`. All others are exploratory then, and turn nothing. Unless said,
    /// p95 response and throughput decide together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<DecidesText>")]
    pub(crate) decides: Option<At<Scalar>>,
    /// `true` runs the first cell of the study a second time in each block, as a control: what
    /// differs between two runs of the same cell is noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) control: Option<At<Scalar>>,
    /// `true` runs the two variants at the same time, each with its own load generator, and compares
    /// them moment by moment: what disturbs the machine disturbs both. For machines that others use.
    /// Both may use the same cores, so that one which is taken away slows both; a load should leave some
    /// of them free. `apart` keeps each on a half of the cores, the halves swapped by block: for loads
    /// that take all the CPU there is. A comparison needs at least 8 `trials`; figures are those of half a
    /// machine. `auto`, which is the default, does so where exactly two variants are all that the study
    /// compares and both fit on this machine at once; `false` runs them one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>", extend("enum" = [true, false, "auto", "apart", null]))]
    pub(crate) duet: Option<At<Scalar>>,
    /// `true` has each trial also write what its sessions carry straight to the disk that holds the
    /// system's data, chunk by chunk, each synced: reports then tell how close the system comes to
    /// it. The workload says what that is under `transfer`, and the load is a `sequence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) raw_baseline: Option<At<Scalar>>,
    /// `true` samples in each trial where the system spends its CPU time and what its threads wait for: call stacks
    /// during the hold, by function, in `cpu.pb.gz` and `waits.pb.gz` of the trial's folder. The system must run on this machine, and the lab as root or with
    /// CAP_PERFMON; otherwise trials run without a profile and report why. One second in six is not sampled, to measure
    /// the cost of sampling. `{ rate: 199, frames: copies, budget: 2% }` sets the details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<ProfileFile>,
    /// Names of environment variables, parameters, and other keys whose values are secrets: they are
    /// masked in all that is kept and shown. Variables, parameters, and `--set` values whose names look
    /// like it (`DB_PASSWORD`, `token`, `apiKey`) are masked without being listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secrets: Option<OneOrMany>,
    /// Programs that its systems need on this machine, and the packages that bring them. `plimsoll plan` and the
    /// start of a run check them, and print the command that installs what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requires: Option<RequiresFile>,
    /// CSV files of published figures to set beside the new ones, from `../published/`.
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
