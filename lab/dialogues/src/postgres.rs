//! PostgreSQL (<https://www.postgresql.org/docs/current/protocol.html>). A request is a query, or a statement with
//! values; its response is JSON: the rows and their count. `postgres-protocol` writes and reads the messages.

mod answer;
mod spelled;

use std::collections::HashSet;

use bytes::BytesMut;
use lab_workload::{ProtocolRequest, SignIn, Speech, Template, UserScope, Way, Workload};
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{
    AuthenticationSaslBody, AuthenticationSaslContinueBody, Message,
};
use postgres_protocol::message::frontend;

pub use answer::{PostgresAnswer, PostgresReady, PostgresResult};

use self::answer::words;
use lab_client::dialogue::{Dialogue, Out, Reply, Turn};
use lab_client::{RequestId, Side, Unmade};

/// Maximum rounds of a password hash that a server may request: a hundred times PostgreSQL's default. Each round takes
/// a microsecond of the worker.
const MAX_ROUNDS: u32 = 409_600;

/// The PostgreSQL dialogue.
pub struct Postgres {
    /// By the request's index.
    statements: Vec<Statement>,
    sign_in: SignIn,
    starttls: bool,
}

/// A statement of the workload.
struct Statement {
    /// Rendered for the request's `set`.
    sets: Template,
    sql: Template,
    values: Vec<Template>,
    way: Way,
    /// Whether the rows are captured or checked.
    is_read: bool,
}

/// Statements prepared on a connection: the requests' indexes.
pub type Prepared = HashSet<RequestId>;

/// A running sign-in or statement.
#[derive(Default)]
pub struct PostgresExchange {
    /// Data to send next.
    message: BytesMut,
    /// Sent before it, unless prepared on this connection.
    prepare: BytesMut,
    request: RequestId,
    /// Sent once TLS is established.
    startup: BytesMut,
    asks_for_tls: bool,
    opens: bool,
    username: String,
    password: String,
    scram: Option<ScramSha256>,
    answer: PostgresAnswer,
    refused: Option<Box<str>>,
    rolls_back: bool,
    value: String,
}

impl Postgres {
    /// Prepares the requests of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let statements = workload.requests().filter_map(|request| {
            let Some(ProtocolRequest::Statement { sql, values, way }) = request.said.as_deref()
            else {
                return None;
            };
            Some(Statement {
                sets: request.target.clone(),
                sql: sql.clone(),
                values: values.clone(),
                way: *way,
                is_read: !request.captures.is_empty() || !request.answer.is_empty(),
            })
        });
        let statements = statements.collect();
        let (sign_in, starttls) = match &workload.speech {
            Speech::Postgres { sign_in, starttls } => (sign_in.clone(), *starttls),
            _ => (SignIn::default(), false),
        };
        Self {
            statements,
            sign_in,
            starttls,
        }
    }
}

/// Reports a text that can't be sent: one with a zero byte, or of 2 GiB.
fn unsaid(error: impl std::fmt::Display) -> Unmade {
    Unmade::Failed(error.to_string().into())
}

fn rendered(
    template: Option<&Template>,
    scope: &mut UserScope,
    out: &mut String,
) -> Result<(), Unmade> {
    out.clear();
    match template {
        Some(template) => Ok(template.render(scope, out)?),
        None => Ok(()),
    }
}

impl PostgresExchange {
    fn begin(&mut self) {
        self.message.clear();
        self.prepare.clear();
        self.startup.clear();
        self.asks_for_tls = false;
        self.opens = false;
        self.scram = None;
        self.answer.begin(false);
        self.refused = None;
        self.rolls_back = false;
    }

    /// Writes the statement's values, and its execution.
    fn execute(
        &mut self,
        name: &str,
        values: &[Template],
        scope: &mut UserScope,
    ) -> Result<(), Unmade> {
        let mut failed = None;
        let Self { message, value, .. } = self;
        let bound = frontend::bind(
            "",
            name,
            [],
            values,
            |template, out| match rendered(Some(template), scope, value) {
                Ok(()) => {
                    out.extend_from_slice(value.as_bytes());
                    Ok(IsNull::No)
                }
                Err(unmade) => {
                    failed = Some(unmade);
                    Err("a value can't be made".into())
                }
            },
            [],
            message,
        );
        if let Some(unmade) = failed {
            return Err(unmade);
        }
        bound.map_err(|_| unsaid("more values than a statement can have"))?;
        frontend::describe(b'P', "", message).map_err(unsaid)?;
        frontend::execute("", 0, message).map_err(unsaid)?;
        frontend::sync(message);
        Ok(())
    }

    /// Processes a server message during sign-in.
    fn signing_in(&mut self, message: Message) -> Result<(), String> {
        let say = &mut self.message;
        match message {
            Message::AuthenticationOk => {}
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(self.password.as_bytes(), say).map_err(words)?;
            }
            Message::AuthenticationMd5Password(body) => {
                let (name, password) = (self.username.as_bytes(), self.password.as_bytes());
                let hash = md5_hash(name, password, body.salt());
                frontend::password_message(hash.as_bytes(), say).map_err(words)?;
            }
            Message::AuthenticationSasl(body) => self.begin_scram(&body)?,
            Message::AuthenticationSaslContinue(body) => self.go_on_with_scram(&body)?,
            Message::AuthenticationSaslFinal(body) => {
                let scram = self.scram.as_mut().ok_or(OUT_OF_TURN)?;
                scram.finish(body.data()).map_err(words)?;
            }
            Message::AuthenticationGss
            | Message::AuthenticationKerberosV5
            | Message::AuthenticationScmCredential
            | Message::AuthenticationSspi
            | Message::AuthenticationGssContinue(_) => {
                return Err("the server asks for a sign-in other than by a password".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_scram(&mut self, body: &AuthenticationSaslBody) -> Result<(), String> {
        use fallible_iterator::FallibleIterator as _;
        let knows = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256));
        if !knows.map_err(words)? {
            return Err(format!("the server offers no {SCRAM_SHA_256}"));
        }
        let scram = ScramSha256::new(self.password.as_bytes(), ChannelBinding::unsupported());
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut self.message)
            .map_err(words)?;
        self.scram = Some(scram);
        Ok(())
    }

    fn go_on_with_scram(&mut self, body: &AuthenticationSaslContinueBody) -> Result<(), String> {
        let mut fields = body.data().split(|byte| *byte == b',');
        let rounds = fields.find_map(|field| field.strip_prefix(b"i="));
        let rounds = rounds.and_then(|digits| std::str::from_utf8(digits).ok());
        if rounds.is_none_or(|digits| digits.parse().is_ok_and(|n: u32| n > MAX_ROUNDS)) {
            return Err("the server asks for too much work on the password".to_owned());
        }
        let scram = self.scram.as_mut().ok_or(OUT_OF_TURN)?;
        scram.update(body.data()).map_err(words)?;
        frontend::sasl_response(scram.message(), &mut self.message).map_err(words)
    }

    /// Reads the response to the TLS request, of one byte.
    fn tls(&mut self, heard: &mut &[u8]) -> Result<Turn, String> {
        let Some((first, rest)) = heard.split_first() else {
            return Ok(Turn::Listen);
        };
        *heard = rest;
        self.asks_for_tls = false;
        match first {
            b'S' => {
                std::mem::swap(&mut self.message, &mut self.startup);
                Ok(Turn::Secure)
            }
            b'N' => Ok(Turn::Done(Reply {
                refused: Some("the server speaks no TLS".into()),
                ..Reply::default()
            })),
            _ => Err("what the server says is none of PostgreSQL".to_owned()),
        }
    }

    /// Reads all received messages; returns their result once it is known.
    fn hear(
        &mut self,
        prepared: &mut Prepared,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        while let Some(told) = self.answer.read(heard, &mut out.body)? {
            match told {
                PostgresResult::End(PostgresReady::InFailed) if !self.rolls_back => {
                    // Roll the failed transaction back: otherwise all later requests of the user would fail.
                    self.rolls_back = true;
                    self.answer.begin(false);
                    frontend::query("ROLLBACK", &mut self.message).map_err(words)?;
                    out.say.extend_from_slice(&self.message.split());
                }
                PostgresResult::End(ready) => {
                    return Ok(Turn::Done(Reply {
                        refused: self.refused.take(),
                        open: ready != PostgresReady::Idle,
                        ..Reply::default()
                    }));
                }
                PostgresResult::Refused { ends, why } if self.opens || ends => {
                    return Ok(Turn::Done(Reply {
                        refused: Some(why),
                        ends,
                        ..Reply::default()
                    }));
                }
                // Messages after the error are ignored up to the end.
                PostgresResult::Refused { why, .. } => {
                    self.refused.get_or_insert(why);
                }
                PostgresResult::Parsed => {
                    prepared.insert(self.request);
                }
                PostgresResult::WantsRows => {
                    return Err("COPY … FROM STDIN waits for rows, and there are none".to_owned());
                }
                PostgresResult::Other(message) if self.opens => {
                    self.signing_in(message)?;
                    out.say.extend_from_slice(&self.message.split());
                }
                PostgresResult::Other(_) => {}
            }
        }
        Ok(Turn::Listen)
    }
}

/// A valid PostgreSQL message out of sequence.
const OUT_OF_TURN: &str = "a message of the server comes out of turn";

impl Dialogue for Postgres {
    type Line = Prepared;
    type ExchangeState = PostgresExchange;

    fn open(&self, scope: &mut UserScope, talk: &mut PostgresExchange) -> Result<(), Unmade> {
        talk.begin();
        talk.opens = true;
        rendered(self.sign_in.username.as_ref(), scope, &mut talk.username)?;
        rendered(self.sign_in.password.as_ref(), scope, &mut talk.password)?;
        rendered(self.sign_in.database.as_ref(), scope, &mut talk.value)?;
        let database = match talk.value.is_empty() {
            true => &talk.username,
            false => &talk.value,
        };
        let settings = [
            ("user", talk.username.as_str()),
            ("database", database.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", "plimsoll"),
        ];
        frontend::startup_message(settings, &mut talk.startup).map_err(unsaid)?;
        talk.asks_for_tls = self.starttls;
        match self.starttls {
            true => frontend::ssl_request(&mut talk.message),
            false => std::mem::swap(&mut talk.message, &mut talk.startup),
        }
        Ok(())
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut PostgresExchange,
    ) -> Result<(), Unmade> {
        talk.begin();
        let statement = &self.statements[request as usize];
        talk.request = request;
        talk.answer.begin(statement.is_read);
        rendered(Some(&statement.sets), scope, &mut talk.value)?;
        rendered(Some(&statement.sql), scope, &mut talk.value)?;
        let name = match statement.way {
            Way::Simple => return frontend::query(&talk.value, &mut talk.message).map_err(unsaid),
            Way::Parsed => {
                frontend::parse("", &talk.value, [], &mut talk.message).map_err(unsaid)?;
                String::new()
            }
            Way::Prepared => {
                let name = format!("s{request}");
                frontend::parse(&name, &talk.value, [], &mut talk.prepare).map_err(unsaid)?;
                name
            }
        };
        talk.execute(&name, &statement.values, scope)
    }

    fn turn(
        &self,
        prepared: &mut Prepared,
        talk: &mut PostgresExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        if !talk.message.is_empty() {
            if !prepared.contains(&talk.request) {
                out.say.extend_from_slice(&talk.prepare);
            }
            out.say.extend_from_slice(&talk.message);
            talk.message.clear();
            return Ok(Turn::Listen);
        }
        match talk.asks_for_tls {
            true => talk.tls(heard),
            false => talk.hear(prepared, heard, out),
        }
    }

    fn spell(&self, side: Side, bytes: &[u8]) -> String {
        spelled::spelled(side, bytes)
    }
}
