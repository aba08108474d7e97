//! `ask` as a study file writes it.

use lab_language::{At, Decode, Fields, Problems, Scalar, Table, Time, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

/// A command or an address that is read during the hold for counters of the system itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AskFile {
    /// The counters of a common system: `postgresql`, `mysql`, `redis`, `jvm`, or `go`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PresetName>")]
    pub preset: Option<At<Scalar>>,
    /// A program with its arguments that prints the response, without a shell. With a preset, it replaces the preset's
    /// client, and the query is appended. Texts may use the names in a system's command, and `{{ pid }}`, the first
    /// process of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub command: Option<At<Vec<At<Scalar>>>>,
    /// An address with the response, such as `http://127.0.0.1:{{ port }}/metrics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub http: Option<At<Scalar>>,
    /// The format of the response: a `table` with a first row of names (commas or tabs), `lines` of a name and a
    /// number, `json`, or `prometheus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ReadName>")]
    pub read: Option<At<Scalar>>,
    /// Treats the response as states, such as what sessions wait for: each row of a table counts as the time `rows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<CountFile>,
    /// Names of the counters to keep; `*` matches any text. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub keep: Option<At<Vec<At<Scalar>>>>,
    /// Names of columns of a table that are labels although they are numbers. Those that end with `id` always are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub labels: Option<At<Vec<At<Scalar>>>>,
    /// Units of counters by their names, such as `total_exec_time: ms`: `s`, `ms`, `us`, `ns`, `bytes`, or any word.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub units: Table<At<Scalar>>,
    /// Counters of a JSON document by name, with the JSON path of each. Default: all numbers.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub paths: Table<At<Scalar>>,
    /// `false` replaces the texts of labels, such as those of queries, by a short hash in the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub text: Option<At<Scalar>>,
}

/// The sampling of states.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CountFile {
    /// The interval between samples, 100ms to 60s; each row counts as that time.
    #[schemars(with = "Time")]
    pub rows: At<Scalar>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "describes the schema only")]
enum PresetName {
    Postgresql,
    Mysql,
    Redis,
    Jvm,
    Go,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "describes the schema only")]
enum ReadName {
    Table,
    Lines,
    Json,
    Prometheus,
}

impl Decode for AskFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "an ask", problems)?;
        let file = Self {
            preset: fields.optional("preset", problems),
            command: fields.optional("command", problems),
            http: fields.optional("http", problems),
            read: fields.optional("read", problems),
            count: fields.optional("count", problems),
            keep: fields.optional("keep", problems),
            labels: fields.optional("labels", problems),
            units: fields.optional("units", problems).unwrap_or_default(),
            paths: fields.optional("paths", problems).unwrap_or_default(),
            text: fields.optional("text", problems),
        };
        let named = fields.named(&["command", "http"]);
        fields.finish(problems);
        if let [_, second, ..] = named.as_slice() {
            let problem = second.problem("an ask is a `command` or `http`", "the second one");
            problems.push(problem.help("write two asks, each with a name of its own"));
        }
        Some(file)
    }
}

impl Decode for CountFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "what is counted", problems)?;
        let rows = fields.required("rows", problems);
        fields.finish(problems);
        Some(Self { rows: rows? })
    }
}
