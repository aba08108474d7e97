//! A program of any kind as the system under test, as a study file writes it.

use lab_language::{
    At, Count, Decode, Fields, Problems, Scalar, Size, StorageFile, Table, Time, node::Node,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::preparation::{ActionFile, KeepFile};

/// Any program as the system under test. All texts may name factors, `{{ port }}` (a free port on 127.0.0.1), and
/// `{{ scratch }}` (a new folder for each trial).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CommandFile {
    /// The program and its arguments, without a shell. It stays in the foreground or becomes a daemon: all processes
    /// that it starts belong to it.
    #[schemars(with = "Vec<Scalar>", length(min = 1))]
    pub(crate) start: At<Vec<At<Scalar>>>,
    /// Environment variables, in addition to those of this process.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) env: Table<At<Scalar>>,
    /// The folder in which it starts. Default: the scratch folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) folder: Option<At<Scalar>>,
    /// Text files that are created in the scratch folder before the start, by name.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub(crate) files: Table<At<Scalar>>,
    /// The port of a program that can't be started with another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) port: Option<At<Scalar>>,
    /// The sign that it is ready. Default: its port accepts connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<ReadyFile>,
    /// A program with its arguments that runs before each start, so that all trials begin alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub(crate) reset: Option<At<Vec<At<Scalar>>>>,
    /// The way to stop it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopFile>,
    /// Requests and commands that create the users' accounts before each trial, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) provision: Vec<ActionFile>,
    /// Requests and commands that then create the state with which the load begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) fill: Vec<ActionFile>,
    /// The state with which trials begin, if it is prepared once and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep_state: Option<KeepFile>,
    /// The disk space that the system needs per user, such as `3 MB`, to predict a full disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) disk_per_user: Option<At<Scalar>>,
    /// For one of several `processes`: the agent on whose machine it runs, by name or label. Default: the machine of
    /// the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on: Option<At<Scalar>>,
    /// For one of several `processes`: kernel settings of its machine, as in `system`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) kernel: Table<At<Scalar>>,
    /// For one of several `processes`: the cores of all that run on its machine, as in `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<At<Scalar>>,
    /// For one of several `processes`: the data's location for all that run on its machine, as in `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StorageFile>")]
    pub(crate) storage: Option<At<StorageFile>>,
}

/// The sign that a program is ready: `http`, or `log`, or else its port.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ReadyFile {
    /// The path of a request that responds with `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) http: Option<At<Scalar>>,
    /// The expected status of the response: `204`, `2xx`, `200..399`. Default: `2xx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<At<Scalar>>,
    /// A regular expression that the output must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) log: Option<At<Scalar>>,
    /// The maximum time until it is ready. Default: 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) within: Option<At<Scalar>>,
}

/// The way to stop a program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StopFile {
    /// The signal: `TERM`, `INT`, `QUIT`, or `HUP`. Default: `TERM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) signal: Option<At<Scalar>>,
    /// The maximum time to exit before it is killed. Default: 10s.
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
