//! SMTP (RFC 5321): a request delivers one mail, command by command. `smtp-proto` reads the replies.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lab_workload::{ProtocolRequest, SignIn, Speech, Template, UserScope, Workload};
use smtp_proto::Error;
use smtp_proto::response::parser::ResponseReceiver;

use lab_client::dialogue::{Dialogue, Out, Reply, Turn};
use lab_client::{RequestId, Side, Unmade};

/// A user's greeting: an address literal, since it has no domain name (RFC 5321, section 4.1.4).
const EHLO: &str = "EHLO [127.0.0.1]\r\n";
/// Longest line of a mail, in bytes, with a dot and the end of the line within 1000 (RFC 5321, section
/// 4.5.3.1.6).
const MAX_LINE: usize = 990;
const RESET: &str = "RSET\r\n";

/// The SMTP dialogue.
pub struct Smtp {
    /// By the request's index.
    mails: Vec<Mail>,
    sign_in: Option<SignIn>,
    starttls: bool,
}

/// A mail of the workload.
struct Mail {
    /// Rendered for the request's `set`.
    sets: Template,
    from: Template,
    to: Vec<Template>,
    text: Template,
}

/// Commands that are sent in sequence, each after the reply to the one before.
#[derive(Default)]
pub struct SmtpExchange {
    said: Vec<Command>,
    /// Number of commands with a reply.
    answered: usize,
    /// The next one is sent, and has no reply yet.
    waiting: bool,
    replies: SmtpReplies,
    /// The refusal, while the server resets the mail transaction.
    refused: Option<Reply>,
    value: String,
}

/// A command and its expected reply.
struct Command {
    text: String,
    /// The first digit of a positive reply.
    good: u16,
    /// TLS follows.
    secures: bool,
}

/// Reads replies incrementally.
#[derive(Default)]
pub struct SmtpReplies(ResponseReceiver);

impl SmtpReplies {
    /// Reads more of a reply. When it is complete, returns its code, and `text` has its lines.
    ///
    /// # Errors
    /// Describes data that is no reply.
    pub fn read(&mut self, heard: &mut &[u8], text: &mut Vec<u8>) -> Result<Option<u16>, String> {
        let mut bytes = heard.iter();
        let parsed = self.0.parse(&mut bytes);
        *heard = bytes.as_slice();
        match parsed {
            Ok(response) => {
                self.0 = ResponseReceiver::default();
                text.clear();
                if response.esc != [0; 3] {
                    let [class, subject, detail] = response.esc;
                    text.extend_from_slice(format!("{class}.{subject}.{detail} ").as_bytes());
                }
                text.extend_from_slice(response.message.as_bytes());
                Ok(Some(response.code))
            }
            Err(Error::NeedsMoreData { .. }) => Ok(None),
            Err(Error::ResponseTooLong) => Err("a reply has more than 4096 bytes".to_owned()),
            Err(error) => Err(format!("a reply is none of SMTP: {error}")),
        }
    }
}

impl Smtp {
    /// Prepares the requests of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let mails = workload.requests().filter_map(|request| {
            let Some(ProtocolRequest::Mail { from, to, text }) = request.said.as_deref() else {
                return None;
            };
            Some(Mail {
                sets: request.target.clone(),
                from: from.clone(),
                to: to.clone(),
                text: text.clone(),
            })
        });
        let mails = mails.collect();
        match &workload.speech {
            Speech::Smtp { sign_in, starttls } => Self {
                mails,
                sign_in: Some(sign_in.clone()),
                starttls: *starttls,
            },
            _ => Self {
                mails,
                sign_in: None,
                starttls: false,
            },
        }
    }
}

impl SmtpExchange {
    fn begin(&mut self) {
        self.said.clear();
        self.answered = 0;
        self.waiting = false;
        self.replies = SmtpReplies::default();
        self.refused = None;
    }

    fn say(&mut self, text: impl Into<String>, good: u16) {
        self.said.push(Command {
            text: text.into(),
            good,
            secures: false,
        });
    }

    fn render(&mut self, template: &Template, scope: &mut UserScope) -> Result<(), Unmade> {
        self.value.clear();
        Ok(template.render(scope, &mut self.value)?)
    }

    /// Returns a command with an address of the envelope.
    fn address(
        &mut self,
        command: &str,
        address: &Template,
        scope: &mut UserScope,
    ) -> Result<(), Unmade> {
        self.render(address, scope)?;
        let bad = |c: char| c.is_control() || c.is_whitespace() || "<>".contains(c);
        if self.value.contains(bad) {
            let text = format!(
                "`{}` is no address of an envelope",
                self.value.escape_debug()
            );
            return Err(Unmade::Failed(text.into()));
        }
        let line = format!("{command}:<{}>\r\n", self.value);
        self.say(line, 2);
        Ok(())
    }

    fn sign_in(&mut self, sign_in: &SignIn, scope: &mut UserScope) -> Result<(), Unmade> {
        let Some(username) = &sign_in.username else {
            return Ok(());
        };
        self.render(username, scope)?;
        let mut plain = format!("\0{}\0", self.value);
        if let Some(password) = &sign_in.password {
            self.render(password, scope)?;
            plain.push_str(&self.value);
        }
        self.say(format!("AUTH PLAIN {}\r\n", STANDARD.encode(plain)), 2);
        Ok(())
    }

    /// Processes the reply to the last command.
    fn answered(&mut self, code: u16, text: &[u8]) -> Option<Turn> {
        self.waiting = false;
        if let Some(reply) = self.refused.take() {
            return Some(Turn::Done(reply));
        }
        let command = &self.said[self.answered];
        self.answered += 1;
        if code / 100 == command.good {
            return command.secures.then_some(Turn::Secure);
        }
        let reply = Reply {
            status: Some(code),
            refused: Some(format!("{code} {}", String::from_utf8_lossy(text)).into()),
            // The server closes the connection (RFC 5321, section 3.8).
            ends: code == 421,
            ..Reply::default()
        };
        let is_last = self.answered == self.said.len();
        if is_last || reply.ends || !self.said[0].text.starts_with("MAIL") {
            return Some(Turn::Done(reply));
        }
        // Resets the transaction for the next mail.
        self.refused = Some(reply);
        None
    }
}

impl Dialogue for Smtp {
    type Line = ();
    type ExchangeState = SmtpExchange;

    fn open(&self, scope: &mut UserScope, talk: &mut SmtpExchange) -> Result<(), Unmade> {
        talk.begin();
        // The server greets first.
        talk.say("", 2);
        talk.say(EHLO, 2);
        if self.starttls {
            talk.said.push(Command {
                text: "STARTTLS\r\n".to_owned(),
                good: 2,
                secures: true,
            });
            talk.say(EHLO, 2);
        }
        match &self.sign_in {
            Some(sign_in) => talk.sign_in(sign_in, scope),
            None => Ok(()),
        }
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut SmtpExchange,
    ) -> Result<(), Unmade> {
        talk.begin();
        let mail = &self.mails[request as usize];
        talk.render(&mail.sets, scope)?;
        talk.address("MAIL FROM", &mail.from, scope)?;
        for to in &mail.to {
            talk.address("RCPT TO", to, scope)?;
        }
        talk.say("DATA\r\n", 3);
        talk.render(&mail.text, scope)?;
        let text = dotted(&talk.value);
        talk.say(text, 2);
        Ok(())
    }

    fn turn(
        &self,
        (): &mut (),
        talk: &mut SmtpExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        if talk.waiting {
            let Some(code) = talk.replies.read(heard, &mut out.body)? else {
                return Ok(Turn::Listen);
            };
            if let Some(turn) = talk.answered(code, &out.body) {
                return Ok(turn);
            }
            if talk.refused.is_none() && talk.answered == talk.said.len() {
                return Ok(Turn::Done(Reply {
                    status: Some(code),
                    ..Reply::default()
                }));
            }
        }
        talk.waiting = true;
        let next = match talk.refused {
            Some(_) => RESET,
            None => &talk.said[talk.answered].text,
        };
        out.say.extend_from_slice(next.as_bytes());
        Ok(Turn::Listen)
    }

    fn spell(&self, _: Side, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        match text.strip_prefix("AUTH PLAIN ") {
            Some(_) => "AUTH PLAIN ***".to_owned(),
            None => text.trim_end().replace('\r', ""),
        }
    }
}

/// Converts a text to SMTP lines, with dot-stuffing and the final dot (RFC 5321, section 4.5.2). Lines beyond the
/// length that servers must accept are broken.
fn dotted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 32 + 5);
    for line in text.lines() {
        let mut rest = line;
        loop {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_LINE));
            let dot = if piece.starts_with('.') { "." } else { "" };
            // Writing to a string can't fail.
            let _infallible = write!(out, "{dot}{piece}\r\n");
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    out.push_str(".\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_mail_and_dots_are_doubled() {
        for (text, expected) in [
            ("", ".\r\n"),
            ("a", "a\r\n.\r\n"),
            ("a\n\n.b\r\n..\n", "a\r\n\r\n..b\r\n...\r\n.\r\n"),
            (".\r\n", "..\r\n.\r\n"),
        ] {
            assert_eq!(dotted(text), expected, "{text:?}");
        }
        let long = dotted(&"é".repeat(10_000));
        let lines: Vec<&str> = long.split_inclusive("\r\n").collect();
        assert!(lines.len() > 20 && lines.iter().all(|line| line.len() <= 1000));
        assert_eq!(long.matches('é').count(), 10_000);
    }

    #[test]
    fn replies_may_have_lines_and_come_in_pieces() {
        let bytes = b"250-mail.example\r\n250-SIZE 1000\r\n250 HELP\r\n550 5.1.1 nobody\r\n";
        for piece in [1, 3, 100] {
            let (mut replies, mut text, mut told) =
                (SmtpReplies::default(), Vec::new(), Vec::new());
            for mut heard in bytes.chunks(piece) {
                while let Some(code) = replies.read(&mut heard, &mut text).unwrap() {
                    told.push((code, String::from_utf8(text.clone()).unwrap()));
                }
            }
            let expected = [
                (250, "mail.example\nSIZE 1000\nHELP".to_owned()),
                (550, "5.1.1 nobody".to_owned()),
            ];
            assert_eq!(told, expected, "by {piece}");
        }
        let mut replies = SmtpReplies::default();
        assert!(
            replies
                .read(&mut &b"SSH-2.0\r\n"[..], &mut Vec::new())
                .is_err()
        );
        let mut replies = SmtpReplies::default();
        let long = [b"250 ".to_vec(), vec![b'x'; 5000]].concat();
        assert!(replies.read(&mut &long[..], &mut Vec::new()).is_err());
    }
}
