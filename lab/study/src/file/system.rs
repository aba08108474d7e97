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

/// The system under test (`groupware`, `command`, `processes`, or `attach`), and what is set around it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SystemFile {
    /// The groupware server that comes with the lab, started as a process of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groupware: Option<GroupwareFile>,
    /// Any program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<CommandFile>,
    /// Several programs that are one system, by name: each is started when the one before is ready, all are
    /// watched, and users come to the last. Texts may also name the port of another one, `{{ db_port }}` that
    /// of `db`, and the address of its machine, `{{ db_address }}`. What prepares the system (`reset`, `provision`, `fill`, `keep_state`, `disk_per_user`) is
    /// said at the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Table<CommandFile>>")]
    pub(crate) processes: Option<At<Table<CommandFile>>>,
    /// A server that runs already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attach: Option<AttachFile>,
    /// Settings of the kernel during each trial: any file under /proc/sys, by its name
    /// (`net.ipv4.tcp_autocorking`) or its path, or a path under /sys. The old values are put back
    /// after the trial. `/dev/cpu_dma_latency: 0` keeps cores that have nothing to do from sleeping.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) kernel: Table<At<Scalar>>,
    /// Cores of the system: how many (`2`), or which (`"0-3"`, `"1,3"`). All that the load generator
    /// leaves unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<At<Scalar>>,
    /// The agent on whose machine the system runs: its name (`db-1`), or a label that it has (`site=eu`). Its
    /// owner says what may run there (`plimsoll agent --allow FILE`). This machine unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on: Option<At<Scalar>>,
    /// Where the system's data lies in each trial: a folder, and with it a file system, or a file system
    /// that is made for the trial. The folder of the run unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StorageFile>")]
    pub(crate) storage: Option<At<StorageFile>>,
    /// What a `command` speaks: `http` (unless said) or `https`. An attached system says it in its
    /// `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) scheme: Option<At<Scalar>>,
    /// TLS to the system, where it speaks `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFile>,
    /// Addresses of hosts, whatever the resolver has for them: `staging.example.org: 10.0.0.7`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub(crate) resolve: Table<At<Scalar>>,
    /// Which version of HTTP users speak with the system: `1` (unless said), `2`, or `auto`; with a
    /// mapping also whether they share connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpFile>,
    /// What the system itself counts, by names of yours: commands and addresses that say it are read during the hold.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<AskFile>")]
    pub(crate) ask: Table<AskFile>,
}

/// Settings of the groupware server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct GroupwareFile {
    /// Worker threads; the number of cores unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) http_threads: Option<At<Scalar>>,
    /// Most requests worked on at once, over all threads; as many as `http_threads` unless said, and
    /// without either there is no bound that a study meets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) requests_at_once: Option<At<Scalar>>,
    /// Padding of each mailbox, such as `30 MB`; none unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mailbox_pad: Option<At<Scalar>>,
    /// Where records are kept: `sqlite` (on disk, unless said) or `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) engine: Option<At<Scalar>>,
    /// How the lookup service keeps registrations: `single-document` (all in one, rewritten),
    /// `document-per-registration` (all read by a query), or `indexed` (unless said).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) lookup_layout: Option<At<Scalar>>,
    /// What each mailbox is filled with before the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mail: Option<MailFile>,
}

/// What each mailbox is filled with.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MailFile {
    /// Messages in the inbox, 1 to 100,000.
    #[schemars(with = "Count")]
    pub(crate) messages: At<Scalar>,
    /// The text of each message, such as `10 KB`; unless said, sizes are dealt out as Domino's
    /// `SendMessage profile` has them, 97 KB on average.
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
