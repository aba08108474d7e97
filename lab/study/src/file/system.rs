//! The system under test as a study file writes it.

use lab_ask::AskFile;
use lab_language::{
    At, Container, Count, Decode, Fields, Problems, Scalar, StorageFile, Table, node::Node,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::attach::AttachFile;
use super::command::CommandFile;
use super::reach::{HttpFile, TlsFile};

/// The system under test (`groupware`, `command`, `processes`, or `attach`), and its environment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SystemFile {
    /// The lab's groupware server, started as a process of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groupware: Option<GroupwareFile>,
    /// Any program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<CommandFile>,
    /// Several programs that form one system, by name. Each starts when the one before is ready, all are monitored, and
    /// users connect to the last. Texts may also name the port of another one, `{{ db_port }}` for `db`, and the
    /// address of its machine, `{{ db_address }}`. The last has the settings that prepare the system (`reset`,
    /// `provision`, `fill`, `keep_state`, `disk_per_user`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<CommandFile>>")]
    pub(crate) processes: Option<At<Table<CommandFile>>>,
    /// A server that runs already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attach: Option<AttachFile>,
    /// Kernel settings during each trial: any file under /proc/sys, by its name (`net.ipv4.tcp_autocorking`) or its
    /// path, or a path under /sys. The old values are restored after the trial. `/dev/cpu_dma_latency: 0` keeps idle
    /// cores from sleeping.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) kernel: Table<At<Scalar>>,
    /// Cores of the system: how many (`2`), or which (`"0-3"`, `"1,3"`). Default: all that the load generator leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<At<Scalar>>,
    /// The agent on whose machine the system runs: its name (`db-1`), or one of its labels (`site=eu`). Its owner
    /// permits programs by `plimsoll agent --allow FILE`. Default: this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on: Option<At<Scalar>>,
    /// The location of the system's data in each trial: a folder, and with it a file system, or a file system that is
    /// created for the trial. Default: the folder of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StorageFile>")]
    pub(crate) storage: Option<At<StorageFile>>,
    /// The scheme of a `command`: `http` or `https`. Default: `http`. An attached system has it in its `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) scheme: Option<At<Scalar>>,
    /// TLS settings for a system with `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFile>,
    /// Addresses of hosts, which override the resolver: `staging.example.org: 10.0.0.7`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub(crate) resolve: Table<At<Scalar>>,
    /// The version of HTTP: `1`, `2`, or `auto`; or a mapping that also lets users share connections. Default: `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpFile>,
    /// Counters of the system itself, by names of your choice: commands and addresses that are read during the hold.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<AskFile>")]
    pub(crate) ask: Table<AskFile>,
}

/// Settings of the groupware server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct GroupwareFile {
    /// The number of worker threads. Default: the number of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) http_threads: Option<At<Scalar>>,
    /// The maximum number of concurrent requests, over all threads. Default: `http_threads`; without either, no bound
    /// that a study reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) requests_at_once: Option<At<Scalar>>,
    /// The padding of each mailbox, such as `30 MB`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mailbox_pad: Option<At<Scalar>>,
    /// The storage engine for records: `sqlite` (on disk) or `memory`. Default: `sqlite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) engine: Option<At<Scalar>>,
    /// The layout of registrations in the lookup service: `single-document` (all in one, rewritten),
    /// `document-per-registration` (all read by a query), or `indexed`. Default: `indexed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) lookup_layout: Option<At<Scalar>>,
    /// The mail in each mailbox before the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mail: Option<MailFile>,
}

/// The mail in each mailbox before the trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MailFile {
    /// The number of messages in the inbox, 1 to 100,000.
    #[schemars(with = "Count")]
    pub(crate) messages: At<Scalar>,
    /// The text size of each message, such as `10 KB`. Default: the distribution in Domino's `SendMessage profile`, 97
    /// KB on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Scalar>")]
    pub(crate) size: Option<At<Scalar>>,
}

impl Decode for MailFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "the mail of a groupware system", problems)?;
        let messages = fields.required("messages", problems);
        let size = fields.optional("size", problems);
        fields.finish(problems);
        Some(Self {
            messages: messages?,
            size,
        })
    }
}

impl Container for SystemFile {}

impl Decode for SystemFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a system", problems)?;
        let groupware = fields.optional("groupware", problems);
        let command = fields.optional("command", problems);
        let processes = fields.optional("processes", problems);
        let attach = fields.optional("attach", problems);
        let kernel = fields.optional("kernel", problems);
        let cpus = fields.optional("cpus", problems);
        let on = fields.optional("on", problems);
        let storage = fields.optional("storage", problems);
        let scheme = fields.optional("scheme", problems);
        let tls = fields.optional("tls", problems);
        let resolve = fields.optional("resolve", problems);
        let http = fields.optional("http", problems);
        let ask = fields.optional("ask", problems);
        let named = fields.named(&["groupware", "command", "processes", "attach"]);
        fields.finish(problems);
        match named.as_slice() {
            [_] => {}
            [] => {
                let problem = node.span.first_line().problem(
                    "a system needs `groupware`, `command`, `processes`, or `attach`",
                    "a system begins here",
                );
                problems
                    .push(problem.help("write `groupware: {}` for the server that comes along"));
            }
            [_, second, ..] => {
                let message = "a system is `groupware`, `command`, `processes`, or `attach`";
                let problem = second.problem(message, "the second one");
                problems
                    .push(problem.help("to compare several systems, name them under `variants`"));
            }
        }
        Some(Self {
            groupware,
            command,
            processes,
            attach,
            kernel: kernel.unwrap_or_default(),
            cpus,
            on,
            storage,
            scheme,
            tls,
            resolve: resolve.unwrap_or_default(),
            http,
            ask: ask.unwrap_or_default(),
        })
    }
}

impl Decode for GroupwareFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a groupware system", problems)?;
        let file = Self {
            http_threads: fields.optional("http_threads", problems),
            requests_at_once: fields.optional("requests_at_once", problems),
            mailbox_pad: fields.optional("mailbox_pad", problems),
            engine: fields.optional("engine", problems),
            lookup_layout: fields.optional("lookup_layout", problems),
            mail: fields.optional("mail", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}
