//! IMAP (RFC 3501 and 9051). A request is one command as typed after its tag, optionally with a text as its last
//! argument; its response is all data that the server sends for it, as JSON.

mod answer;
mod data;

use std::fmt::Write as _;

use lab_workload::{ProtocolRequest, SignIn, Speech, Template, UserScope, Workload};

pub use answer::{ImapAnswer, ImapResult};

use self::answer::TAG;
use lab_client::dialogue::{Dialogue, Out, Reply, Turn};
use lab_client::{RequestId, Side, Unmade};

/// The IMAP dialogue.
pub struct Imap {
    /// By the request's index.
    commands: Vec<PreparedCommand>,
    sign_in: SignIn,
    starttls: bool,
}

/// A command of the workload.
struct PreparedCommand {
    /// Rendered for the request's `set`.
    sets: Template,
    line: Template,
    text: Option<Template>,
    /// Whether the response is captured or checked.
    is_read: bool,
}

/// Commands that are sent in sequence, each after the response to the one before.
#[derive(Default)]
pub struct ImapExchange {
    said: Vec<Command>,
    /// Number of commands with a response.
    answered: usize,
    /// The next one is sent, and has no response yet.
    waits: bool,
    answer: ImapAnswer,
    value: String,
}

/// A command without its tag.
#[derive(Default)]
struct Command {
    /// Sent after the tag, with the end of the line.
    line: String,
    /// Sent when the server requests it, with the end of the line.
    text: Option<String>,
    /// TLS follows.
    secures: bool,
    /// It signs a user in: skipped on a preauthenticated connection.
    signs_in: bool,
}

impl Imap {
    /// Prepares the requests of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let commands = workload.requests().filter_map(|request| {
            let Some(ProtocolRequest::Line { line, text }) = request.said.as_deref() else {
                return None;
            };
            Some(PreparedCommand {
                sets: request.target.clone(),
                line: line.clone(),
                text: text.clone(),
                is_read: !request.captures.is_empty() || !request.answer.is_empty(),
            })
        });
        let commands = commands.collect();
        let (sign_in, starttls) = match &workload.speech {
            Speech::Imap { sign_in, starttls } => (sign_in.clone(), *starttls),
            _ => (SignIn::default(), false),
        };
        Self {
            commands,
            sign_in,
            starttls,
        }
    }
}

impl ImapExchange {
    fn begin(&mut self, is_read: bool) {
        self.said.clear();
        self.answered = 0;
        self.waits = false;
        self.answer.begin(is_read);
    }

    fn render(&mut self, template: &Template, scope: &mut UserScope) -> Result<(), Unmade> {
        self.value.clear();
        Ok(template.render(scope, &mut self.value)?)
    }

    /// Quotes an argument of a command.
    fn quoted(
        &mut self,
        template: Option<&Template>,
        scope: &mut UserScope,
    ) -> Result<String, Unmade> {
        self.value.clear();
        if let Some(template) = template {
            self.render(template, scope)?;
        }
        one_line(&self.value)?;
        let escaped = self.value.replace('\\', "\\\\").replace('"', "\\\"");
        Ok(format!("\"{escaped}\""))
    }

    /// Sends the next command.
    fn say(&mut self, out: &mut Out) -> Turn {
        self.waits = true;
        out.say.extend_from_slice(TAG);
        out.say
            .extend_from_slice(self.said[self.answered].line.as_bytes());
        Turn::Listen
    }

    /// Sends the text that the server requests.
    fn go_on(&mut self, out: &mut Out) -> Result<Turn, String> {
        let command = self.said.get_mut(self.answered);
        let Some(text) = command.and_then(|command| command.text.take()) else {
            return Err("the server waits for more than was said".to_owned());
        };
        out.say.extend_from_slice(text.as_bytes());
        Ok(Turn::Listen)
    }
}

/// Rejects text that would contain a second command.
fn one_line(text: &str) -> Result<(), Unmade> {
    match text.contains(['\r', '\n', '\0']) {
        true => {
            let text = format!("`{}` has more than one line", text.escape_debug());
            Err(Unmade::Failed(text.into()))
        }
        false => Ok(()),
    }
}

/// Returns the result of a refused command or connection.
fn refused(told: &str) -> Turn {
    Turn::Done(Reply {
        refused: Some(told.into()),
        ..Reply::default()
    })
}

impl Dialogue for Imap {
    type Line = ();
    type ExchangeState = ImapExchange;

    fn open(&self, scope: &mut UserScope, talk: &mut ImapExchange) -> Result<(), Unmade> {
        talk.begin(false);
        if self.starttls {
            talk.said.push(Command {
                line: "STARTTLS\r\n".to_owned(),
                secures: true,
                ..Command::default()
            });
        }
        if let Some(name) = &self.sign_in.username {
            let name = talk.quoted(Some(name), scope)?;
            let password = talk.quoted(self.sign_in.password.as_ref(), scope)?;
            talk.said.push(Command {
                line: format!("LOGIN {name} {password}\r\n"),
                signs_in: true,
                ..Command::default()
            });
        }
        // The server greets first.
        talk.waits = true;
        talk.answer.greeting();
        Ok(())
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut ImapExchange,
    ) -> Result<(), Unmade> {
        let asked = &self.commands[request as usize];
        talk.begin(asked.is_read);
        talk.render(&asked.sets, scope)?;
        talk.render(&asked.line, scope)?;
        one_line(talk.value.trim())?;
        let mut line = talk.value.trim().to_owned();
        let text = match &asked.text {
            Some(text) => {
                talk.render(text, scope)?;
                let text = lines(&talk.value);
                // Writing to a string can't fail.
                let _infallible = write!(line, " {{{}}}", text.len());
                Some(text + "\r\n")
            }
            None => None,
        };
        line.push_str("\r\n");
        talk.said.push(Command {
            line,
            text,
            ..Command::default()
        });
        Ok(())
    }

    fn turn(
        &self,
        (): &mut (),
        talk: &mut ImapExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        while talk.waits {
            let Some(told) = talk.answer.read(heard)? else {
                return Ok(Turn::Listen);
            };
            match told {
                ImapResult::Goes => return talk.go_on(out),
                ImapResult::No(why) => return Ok(refused(&why)),
                ImapResult::Greeting { is_known } => {
                    talk.waits = false;
                    if is_known {
                        talk.said.retain(|command| !command.signs_in);
                    }
                }
                ImapResult::Ok => {
                    talk.waits = false;
                    talk.answered += 1;
                    if talk.said[talk.answered - 1].secures {
                        return Ok(Turn::Secure);
                    }
                }
            }
        }
        if talk.answered < talk.said.len() {
            return Ok(talk.say(out));
        }
        talk.answer.end(&mut out.body);
        Ok(Turn::Done(Reply {
            ends: talk.answer.ends(),
            ..Reply::default()
        }))
    }

    fn spell(&self, _: Side, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        match text.split_once(" LOGIN \"") {
            Some((tag, _)) => format!("{tag} LOGIN ***"),
            None => text.trim_end().replace('\r', ""),
        }
    }
}

/// Converts line ends to those of mails.
fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    for line in text.lines() {
        out.push_str(line);
        out.push_str("\r\n");
    }
    out
}
