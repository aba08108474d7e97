//! The groupware server that comes along: its settings as a study has them, and the command that
//! they come to. All that is known of it stands here.

use std::collections::BTreeMap;

use lab_language::{CellError, Optional, Setting, TextError, units};

use crate::command::{ADDRESS, CommandSpec, PROGRAM, PresetUse, Ready, StopSignal, USERS_PORT};
use crate::model::Cell;
use crate::preparation::{Action, ActionRequest, Keep, Piece, Preparation};

/// Where it listens for users of its own machine, and that with a port of its choice.
const HERE: &str = "127.0.0.1";
const LISTEN: &str = "127.0.0.1:0";
/// Most worker threads of a system.
/// As the server has it.
const HTTP_THREADS: std::ops::RangeInclusive<u64> = 1..=1024;
const REQUESTS_AT_ONCE: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Most padding of one mailbox.
/// As the server has it.
const MAX_PAD_BYTES: u64 = 1024 * 1024 * 1024;
/// Most messages that a mailbox is filled with.
const MAIL_MESSAGES: std::ops::RangeInclusive<u64> = 1..=100_000;
/// Most text of such a message; the server takes a little more.
const MAX_MESSAGE_BYTES: u64 = 15 * 1024 * 1024;
/// Users of one call; keeps a body within any server's usual limit of a megabyte.
const BATCH: u64 = 1000;
/// Padding of one call; any disk writes that within the time an answer may take.
const BATCH_PAD_BYTES: u64 = 256 << 20;
/// Messages of one call: some hundred megabytes.
const BATCH_MESSAGES: u64 = 5000;
/// Records of one user with its calendar, indexes and write-ahead log included.
const USER_DISK_BYTES: u64 = 64 << 10;
/// A message on disk beside its text: headers, list entry, half-empty pages. Boxes of 50 messages of
/// 10,000 bytes take 17.8 KB a message.
const MESSAGE_DISK_BYTES: u64 = 8 << 10;
/// Mean of a message where the study sets no size: the profile's sizes by their shares.
const MEAN_MESSAGE_BYTES: u64 = 98 << 10;

/// A setting of the groupware server.
#[derive(Debug, Clone, PartialEq, Default)]
struct GroupwareSpec {
    /// Worker threads; `None` = its own default.
    http_threads: Option<u32>,
    /// Requests worked on at once; `None` = its own default.
    requests_at_once: Option<u32>,
    /// Bytes by which each mailbox is padded before the trial.
    mailbox_pad_bytes: u64,
    /// Where it keeps its records.
    engine: Engine,
    /// How its lookup service keeps registrations; `None` = its own default.
    lookup_layout: Option<LookupLayout>,
    /// What is in each mailbox before the trial.
    mail: Option<MailSpec>,
}

/// How the lookup service of the groupware server keeps registrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookupLayout {
    /// All in one document, rewritten for each change.
    SingleDocument,
    /// A document for each, all of which a query reads.
    DocumentPerRegistration,
    /// A document for each, found by an index.
    Indexed,
}

impl LookupLayout {
    /// As settings and flags call it.
    fn name(self) -> &'static str {
        match self {
            Self::SingleDocument => "single-document",
            Self::DocumentPerRegistration => "document-per-registration",
            Self::Indexed => "indexed",
        }
    }
}

/// What is in each mailbox before a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MailSpec {
    /// Messages in the inbox.
    messages: u32,
    /// The text of each; `None` = the sizes of the server's own profile.
    message_bytes: Option<u64>,
}

/// A store engine of the groupware server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Engine {
    /// On disk, durable.
    #[default]
    Sqlite,
    /// Gone when the process ends.
    Memory,
}

/// The groupware server, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct GroupwareTemplate {
    pub(crate) http_threads: Option<Setting>,
    pub(crate) requests_at_once: Option<Setting>,
    pub(crate) mailbox_pad: Option<Setting>,
    pub(crate) engine: Option<Setting>,
    pub(crate) lookup_layout: Option<Setting>,
    pub(crate) mail_messages: Option<Setting>,
    pub(crate) mail_size: Option<Setting>,
    /// Whether users have a name, and so need accounts.
    pub(crate) has_names: bool,
    /// Whether users hand in mail over SMTP.
    pub(crate) takes_mail: bool,
}

impl GroupwareTemplate {
    /// The command that it is in `cell`; `far` where users come from other machines.
    pub(crate) fn spec(&self, cell: &Cell, far: bool) -> Result<CommandSpec, CellError> {
        let spec = self.settings(cell)?;
        let mut command = spec.command(self.has_names);
        if self.takes_mail {
            command.start.push("--smtp-listen".to_owned());
            command.start.push(format!("{HERE}:{USERS_PORT}"));
        }
        if far {
            for word in &mut command.start {
                *word = word.replace(HERE, ADDRESS);
            }
            // Users come as they are, and keep their sessions by cookies.
            let exposed = ["--expose-without-tls", "--plain-cookies"];
            command.start.extend(exposed.map(str::to_owned));
        }
        Ok(command)
    }

    fn settings(&self, cell: &Cell) -> Result<GroupwareSpec, CellError> {
        let http_threads = self
            .http_threads
            .value(cell, |text| units::whole_number(text, HTTP_THREADS))?;
        let requests_at_once = self
            .requests_at_once
            .value(cell, |text| units::whole_number(text, REQUESTS_AT_ONCE))?;
        let pad = self
            .mailbox_pad
            .value(cell, |text| units::size(text, MAX_PAD_BYTES))?;
        let engine = self.engine.value(cell, engine)?;
        let lookup_layout = self.lookup_layout.value(cell, lookup_layout)?;
        let messages = self
            .mail_messages
            .value(cell, |text| units::whole_number(text, MAIL_MESSAGES))?;
        let message_bytes = self
            .mail_size
            .value(cell, |text| units::size(text, MAX_MESSAGE_BYTES))?;
        Ok(GroupwareSpec {
            http_threads: http_threads.map(|n| n as u32),
            requests_at_once: requests_at_once.map(|n| n as u32),
            mailbox_pad_bytes: pad.unwrap_or(0),
            engine: engine.unwrap_or_default(),
            lookup_layout,
            mail: messages.map(|n| MailSpec {
                messages: n as u32,
                message_bytes,
            }),
        })
    }
}

fn lookup_layout(text: &str) -> Result<LookupLayout, TextError> {
    let all = [
        LookupLayout::SingleDocument,
        LookupLayout::DocumentPerRegistration,
        LookupLayout::Indexed,
    ];
    units::one_named("layout", text, &all.map(|layout| (layout.name(), layout)))
}

/// A store engine.
fn engine(text: &str) -> Result<Engine, TextError> {
    const NAMES: [(&str, Engine); 2] = [("sqlite", Engine::Sqlite), ("memory", Engine::Memory)];
    units::one_named("engine", text, &NAMES)
}

impl GroupwareSpec {
    fn command(&self, has_names: bool) -> CommandSpec {
        let mut start: Vec<String> = [
            PROGRAM,
            "serve",
            "--listen",
            LISTEN,
            "--data",
            "{{ scratch }}",
            "--port-file",
            "{{ port_file }}",
            "--admin-token-file",
            "{{ secret_file }}",
        ]
        .map(str::to_owned)
        .into();
        start.extend(self.flags());
        CommandSpec {
            start,
            env: Vec::new(),
            folder: None,
            files: Vec::new(),
            port: None,
            ready: Ready::Http {
                path: "/healthz".to_owned(),
                status: 200..=200,
            },
            ready_within_ms: 30_000,
            reset: Vec::new(),
            stop_signal: StopSignal::Term,
            stop_grace_ms: 10_000,
            preparation: self.preparation(has_names),
            preset: Some(PresetUse {
                settings: self.words(),
                notes: self.notes(),
            }),
            name: None,
            before: Vec::new(),
        }
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        let mut flag = |name: &str, value: String| flags.extend([name.to_owned(), value]);
        if let Some(threads) = self.http_threads {
            flag("--http-threads", threads.to_string());
        }
        if let Some(requests) = self.requests_at_once {
            flag("--requests-at-once", requests.to_string());
        }
        if self.engine == Engine::Memory {
            flag("--engine", "memory".to_owned());
        }
        if self.mailbox_pad_bytes > 0 {
            flag("--mailbox-pad", self.mailbox_pad_bytes.to_string());
        }
        if let Some(layout) = self.lookup_layout {
            flag("--lookup-layout", layout.name().to_owned());
        }
        flags
    }

    fn preparation(&self, has_names: bool) -> Preparation {
        let mail = self.mail.filter(|_| has_names);
        let on_disk = self.engine != Engine::Memory;
        // Settings that leave no trace in the data, such as threads, are no part of its state.
        let alike = format!("{:?} {}", self.lookup_layout, self.mailbox_pad_bytes);
        Preparation {
            provision: has_names.then(|| self.register()).into_iter().collect(),
            fill: mail.map(|mail| mail.fill()).into_iter().collect(),
            keep: mail.filter(|_| on_disk).map(|_| Keep {
                folder: ".".to_owned(),
                alike: Some(alike),
            }),
            values: Cell::new(),
            disk_per_user: self.disk_per_user(),
        }
    }

    fn register(&self) -> Action {
        let pad = self.mailbox_pad_bytes;
        let padded = BATCH_PAD_BYTES.checked_div(pad).unwrap_or(BATCH);
        let body = format!(",\"app_passwords\":true,\"mailbox_pad_bytes\":{pad}}}");
        let each = [
            Piece::Literal("{\"name\":".to_owned()),
            Piece::Json("{{ name }}".to_owned()),
            Piece::Literal("}".to_owned()),
        ];
        let users = Piece::Literal("{\"users\":".to_owned());
        let body = vec![users, Piece::Each, Piece::Literal(body)];
        let mut request = call("/admin/users", padded.clamp(1, BATCH), each.into(), body);
        let password = ("password".to_owned(), "$.users[*].app_password".to_owned());
        request.capture.push(password);
        Action::Request(Box::new(request))
    }

    fn disk_per_user(&self) -> u64 {
        let mail = self.mail.map_or(0, |mail| {
            let text = mail.message_bytes.unwrap_or(MEAN_MESSAGE_BYTES);
            u64::from(mail.messages).saturating_mul(text.saturating_add(MESSAGE_DISK_BYTES))
        });
        let own = USER_DISK_BYTES.saturating_add(self.mailbox_pad_bytes);
        own.saturating_add(mail)
    }

    fn words(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
        set("system", "groupware".to_owned());
        let threads = match (self.http_threads, self.requests_at_once) {
            (Some(threads), _) => threads.to_string(),
            (None, Some(_)) => "one per core".to_owned(),
            (None, None) => "one per core, no bound".to_owned(),
        };
        set("http_threads", threads);
        if let Some(requests) = self.requests_at_once {
            set("requests_at_once", requests.to_string());
        }
        let engine = match self.engine {
            Engine::Memory => "memory",
            Engine::Sqlite => "sqlite",
        };
        set("engine", engine.to_owned());
        set("mailbox_pad_bytes", self.mailbox_pad_bytes.to_string());
        if let Some(mail) = self.mail {
            set("mail_messages", mail.messages.to_string());
            if let Some(bytes) = mail.message_bytes {
                set("mail_message_bytes", bytes.to_string());
            }
        }
        settings
    }

    fn notes(&self) -> Vec<String> {
        let pad = self.mailbox_pad_bytes;
        let mut notes = vec![match self.mail {
            _ if pad > 0 => format!("Each mailbox is padded by {pad} bytes before the trial."),
            Some(MailSpec { messages, .. }) => format!(
                "Each mailbox holds {messages} messages before the trial, which begins with a copy of \
                 data that was filled once."
            ),
            None => {
                "Mailboxes are not padded: they hold what the workload puts into them.".to_owned()
            }
        }];
        notes.extend(self.requests_at_once.map(|requests| {
            format!(
                "requests_at_once {requests}: at most that many requests are worked on at once. Unlike in \
                 a server that gives each request a thread, a thread works on another request while one \
                 waits for the disk, and sends responses outside of that bound."
            )
        }));
        let alike = self
            .http_threads
            .filter(|_| self.requests_at_once.is_none());
        notes.extend(alike.map(|threads| {
            format!(
                "http_threads {threads}: that many threads, and at most that many requests worked \
                 on at once. Unlike in a server that gives each request a thread, a thread serves \
                 the connections that the kernel gave it, works on another request while one waits \
                 for the disk, and sends responses outside of that bound."
            )
        }));
        notes
    }
}

impl MailSpec {
    fn fill(&self) -> Action {
        let users = (BATCH_MESSAGES / u64::from(self.messages).max(1)).clamp(1, BATCH);
        let each = vec![Piece::Json("{{ name }}".to_owned())];
        let profile = self.message_bytes.map_or(String::new(), |bytes| {
            format!(",\"profile\":[{{\"text_bytes\":{bytes},\"permille\":1000}}]")
        });
        let messages = self.messages;
        let body = vec![
            Piece::Literal("{\"users\":".to_owned()),
            Piece::Each,
            Piece::Literal(format!(",\"messages\":{messages},\"seed\":")),
            Piece::Json("{{ seed }}".to_owned()),
            Piece::Literal(",\"first\":".to_owned()),
            Piece::Json("{{ index }}".to_owned()),
            Piece::Literal(format!("{profile}}}")),
        ];
        Action::Request(Box::new(call("/admin/mail/fill", users, each, body)))
    }
}

/// A call of the admin API.
fn call(path: &str, users: u64, each: Vec<Piece>, body: Vec<Piece>) -> ActionRequest {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    ActionRequest {
        method: "POST".to_owned(),
        target: path.to_owned(),
        headers: vec![
            header("Content-Type", "application/json"),
            header("Authorization", "Bearer {{ secret }}"),
        ],
        basic_auth: None,
        body,
        each,
        users_per_request: u32::try_from(users).unwrap_or(1),
        expect: vec![200..=200],
        capture: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags() {
        let mut spec = GroupwareSpec::default();
        assert_eq!(spec.flags(), [] as [String; 0]);
        spec.http_threads = Some(80);
        spec.requests_at_once = Some(100);
        spec.engine = Engine::Memory;
        spec.mailbox_pad_bytes = 5;
        let expected = [
            "--http-threads",
            "80",
            "--requests-at-once",
            "100",
            "--engine",
            "memory",
            "--mailbox-pad",
            "5",
        ];
        assert_eq!(spec.flags(), expected);
    }
}
