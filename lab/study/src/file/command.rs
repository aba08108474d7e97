//! A program of any kind as the system under test, as a study file writes it.

use lab_language::{
    At, Count, Decode, Fields, Problems, Scalar, Size, StorageFile, Table, Time, node::Node,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::preparation::{ActionFile, KeepFile};

/// Any program as the system under test. All texts may name factors, `{{ port }}` (a free port on
/// 127.0.0.1), and `{{ scratch }}` (a folder that is fresh for each trial).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CommandFile {
    /// The program and its arguments; no shell is between. It stays in the foreground, or it becomes a
    /// daemon: all that it starts belongs to it.
    #[schemars(with = "Vec<Scalar>", length(min = 1))]
    pub(crate) start: At<Vec<At<Scalar>>>,
    /// Environment variables, beside those of this process.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) env: Table<At<Scalar>>,
    /// The folder that it starts in; the scratch folder unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) folder: Option<At<Scalar>>,
    /// Files made in the scratch folder before it starts, by name: their text.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub(crate) files: Table<At<Scalar>>,
    /// The port that it listens on, where it can't be told one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) port: Option<At<Scalar>>,
    /// When it is ready; when its port accepts connections unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<ReadyFile>,
    /// A program with its arguments that runs before each start, to make every trial begin alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub(crate) reset: Option<At<Vec<At<Scalar>>>>,
    /// How it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopFile>,
    /// What gives the users their accounts before each trial: requests and commands, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) provision: Vec<ActionFile>,
    /// What fills the state that the load begins with, after that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) fill: Vec<ActionFile>,
    /// The state that trials begin with, where it is prepared once and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep_state: Option<KeepFile>,
    /// What the system keeps on disk for each user, such as `3 MB`, so that a full disk is foreseen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) disk_per_user: Option<At<Scalar>>,
    /// Of one of several `processes`: the agent on whose machine it runs, by name or label. The machine of the system
    /// unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on: Option<At<Scalar>>,
    /// Of one of several `processes`: settings of its machine's kernel, as a system has them.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) kernel: Table<At<Scalar>>,
    /// Of one of several `processes`: the cores of those that run on its machine, as a system has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<At<Scalar>>,
    /// Of one of several `processes`: where the data of those lies that run on its machine, as a system has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StorageFile>")]
    pub(crate) storage: Option<At<StorageFile>>,
}

/// When a program is ready: `http`, or `log`, or else its port.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ReadyFile {
    /// A path that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) http: Option<At<Scalar>>,
    /// The status that it answers with: `204`, `2xx`, `200..399`; 2xx unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<At<Scalar>>,
    /// A regular expression that its output matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) log: Option<At<Scalar>>,
    /// How long that may take; 30 s unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) within: Option<At<Scalar>>,
}

/// How a program is stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StopFile {
    /// `TERM` (unless said), `INT`, `QUIT`, or `HUP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) signal: Option<At<Scalar>>,
    /// How long it may take to end before it is killed; 10 s unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) grace: Option<At<Scalar>>,
}

impl Decode for CommandFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a command system", problems)?;
        let start = fields.required("start", problems);
        let env = fields.optional("env", problems);
        let folder = fields.optional("folder", problems);
        let files = fields.optional("files", problems);
        let port = fields.optional("port", problems);
        let ready = fields.optional("ready", problems);
        let reset = fields.optional("reset", problems);
        let stop = fields.optional("stop", problems);
        let provision: Option<Vec<_>> = fields.optional("provision", problems);
        let fill: Option<Vec<_>> = fields.optional("fill", problems);
        let keep_state = fields.optional("keep_state", problems);
        let disk_per_user = fields.optional("disk_per_user", problems);
        let on = fields.optional("on", problems);
        let kernel: Option<Table<_>> = fields.optional("kernel", problems);
        let cpus = fields.optional("cpus", problems);
        let storage = fields.optional("storage", problems);
        fields.finish(problems);
        Some(Self {
            start: start?,
            env: env.unwrap_or_default(),
            folder,
            files: files.unwrap_or_default(),
            port,
            ready,
            reset,
            stop,
            provision: provision.unwrap_or_default(),
            fill: fill.unwrap_or_default(),
            keep_state,
            disk_per_user,
            on,
            kernel: kernel.unwrap_or_default(),
            cpus,
            storage,
        })
    }
}

impl Decode for ReadyFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "the readiness of a command", problems)?;
        let file = Self {
            http: fields.optional("http", problems),
            status: fields.optional("status", problems),
            log: fields.optional("log", problems),
            within: fields.optional("within", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}

impl Decode for StopFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "the stop of a command", problems)?;
        let file = Self {
            signal: fields.optional("signal", problems),
            grace: fields.optional("grace", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}
