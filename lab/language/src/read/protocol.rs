//! The protocol of a workload, and requests of other protocols than HTTP.

use lab_workload::template::Escape;
use lab_workload::{ProtocolRequest, Request, SignIn, Speech, Template};

use super::foreign::{STATUS, part_of_web};
use super::names::unknown_name;
use super::request::Compiler;
use super::words::words;
use crate::file::{MailFile, ProtocolFile, RequestFile, SpeakingFile, WorkloadFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Scalar};

/// The supported protocols.
const NAMES: &[&str] = &[
    "grpc",
    "http",
    "imap",
    "mqtt",
    "postgresql",
    "redis",
    "smtp",
    "tcp",
    "udp",
    "websocket",
];

impl Compiler<'_> {
    /// Reads the protocol of a workload; `None` if a problem was reported.
    pub(super) fn speech(&mut self, file: &WorkloadFile) -> Option<Speech> {
        let Some(protocol) = &file.protocol else {
            return Some(Speech::Http);
        };
        let name = protocol.value.name();
        let sign_in = match &protocol.value {
            ProtocolFile::Name(_) => None,
            ProtocolFile::Full(full) => Some(&**full),
        };
        let name_text = name.text();
        if name_text.trim() != "grpc" {
            self.refuse_descriptors(sign_in)?;
        }
        if !["websocket", "grpc"].contains(&name_text.trim()) {
            self.refuse_handshake(sign_in)?;
        }
        if name_text.trim() != "mqtt" {
            self.refuse_client(sign_in)?;
        }
        if name_text.trim() != "http" && NAMES.contains(&name_text.trim()) {
            self.refuse_web(file)?;
        }
        match name_text.trim() {
            "grpc" => self.grpc(&protocol.span, sign_in),
            "websocket" => self.websocket(sign_in),
            "http" => match sign_in {
                None => Some(Speech::Http),
                Some(_) => self.refuse(
                    &protocol.span,
                    "HTTP signs nobody in by itself: a request does",
                ),
            },
            "redis" => {
                if let Some(at) = sign_in.and_then(|file| file.starttls.as_ref()) {
                    return self.refuse(&at.span, "Redis knows no `starttls`");
                }
                self.sign_in(sign_in).map(Speech::Redis)
            }
            known @ ("smtp" | "imap") => {
                if let Some(at) = sign_in.and_then(|file| file.database.as_ref()) {
                    return self.refuse(&at.span, "servers of mail know no `database`");
                }
                let (sign_in, starttls) = self.secured(sign_in)?;
                Some(match known {
                    "smtp" => Speech::Smtp { sign_in, starttls },
                    _ => Speech::Imap { sign_in, starttls },
                })
            }
            "postgresql" => self.postgres(&protocol.span, sign_in),
            "mqtt" => self.mqtt(sign_in),
            "tcp" | "udp" => self.plain(name, sign_in),
            other => {
                let (message, help) = unknown_name("protocol", other, NAMES);
                let text = name.text();
                let error = TextError::new(message, 0..text.len()).help(help);
                self.note("protocol", &name.span, &text, Err(error))
            }
        }
    }

    /// Reads the connections of PostgreSQL.
    fn postgres(&mut self, place: &Span, file: Option<&SpeakingFile>) -> Option<Speech> {
        let (sign_in, starttls) = self.secured(file)?;
        if sign_in.username.is_none() {
            let message = "PostgreSQL lets nobody in who has no name";
            let help = "write `protocol: { name: postgresql, username: … }`";
            return self.refuse_here(place, message, help);
        }
        Some(Speech::Postgres { sign_in, starttls })
    }

    /// Reads the sign-in, and whether TLS precedes it.
    pub(super) fn secured(&mut self, file: Option<&SpeakingFile>) -> Option<(SignIn, bool)> {
        let starttls = file.and_then(|file| file.starttls.as_ref());
        let starttls = starttls.map(|at| self.setting("starttls", at, units::switch));
        let sign_in = self.sign_in(file);
        Some((sign_in?, starttls.unwrap_or(Some(false))?))
    }

    fn sign_in(&mut self, file: Option<&SpeakingFile>) -> Option<SignIn> {
        let mut part = |what: &str, at: Option<&Option<At<Scalar>>>| match at {
            Some(Some(at)) => self.template(what, at, Escape::None).map(Some),
            _ => Some(None),
        };
        let username = part("username", file.map(|file| &file.username));
        let password = part("password", file.map(|file| &file.password));
        let database = part("database", file.map(|file| &file.database));
        Some(SignIn {
            username: username?,
            password: password?,
            database: database?,
        })
    }

    /// Reports settings of a workload that belong to HTTP only.
    fn refuse_web(&mut self, file: &WorkloadFile) -> Option<()> {
        let cookie = file.cookies.iter().next().map(|(_, value)| value.clone());
        let of = [
            ("compressed", &file.compressed),
            ("follow", &file.follow),
            ("trace", &file.trace),
            ("max_body", &file.max_body),
            ("cookies", &cookie),
        ];
        let found = of
            .into_iter()
            .find_map(|(key, at)| Some((key, at.as_ref()?)));
        match found {
            Some((key, at)) => self.refuse(&at.span, &format!("`{key}` is a setting of HTTP")),
            None => Some(()),
        }
    }

    /// Compiles a Redis command.
    pub(super) fn command(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        let text = line.text();
        let said = self.note("request", &line.span, &text, words(&text));
        let compiled = said.and_then(|said| {
            let compile = |word: &(usize, String)| self.word(line, word);
            said.iter().map(compile).collect::<Option<Vec<Template>>>()
        });
        self.request_with_content(compiled.map(ProtocolRequest::Words), file)
    }

    /// Compiles an IMAP command, and the text that is its last argument.
    pub(super) fn typed_line(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        let compiled = self.template("request", line, Escape::Quoted);
        let text = match &file.text {
            Some(text) => self.template("text", text, Escape::None).map(Some),
            None => Some(None),
        };
        let said = compiled.zip(text);
        self.request_with_content(
            said.map(|(line, text)| ProtocolRequest::Line { line, text }),
            file,
        )
    }

    /// Compiles a mail.
    pub(super) fn mail(&mut self, mail: &MailFile, file: &RequestFile) -> Option<Request> {
        let from = self.template("from", &mail.from, Escape::None);
        let to = mail.to.as_slice();
        let to: Vec<_> = to
            .iter()
            .map(|at| self.template("to", at, Escape::None))
            .collect();
        let to: Option<Vec<Template>> = to.into_iter().collect();
        let text = match (&mail.message, &mail.subject, &mail.text) {
            (Some(message), None, None) => self.template("message", message, Escape::None),
            (Some(message), ..) => {
                let what = "a `message` is all of a mail, its subject and text among it";
                self.refuse(&message.span, what)
            }
            (None, subject, text) => self.composed(
                (from.as_ref(), to.as_deref()),
                subject.as_ref(),
                text.as_ref(),
            ),
        };
        let said = from.zip(to).zip(text);
        let said = said.map(|((from, to), text)| ProtocolRequest::Mail { from, to, text });
        self.request_with_content(said, file)
    }

    /// Returns the text of a mail with the required headers.
    fn composed(
        &mut self,
        (from, to): (Option<&Template>, Option<&[Template]>),
        subject: Option<&At<Scalar>>,
        text: Option<&At<Scalar>>,
    ) -> Option<Template> {
        let mut part = |what: &str, at: Option<&At<Scalar>>| match at {
            Some(at) => self.template(what, at, Escape::None),
            None => Some(Template::literal("")),
        };
        let (subject, text) = (part("subject", subject), part("text", text));
        let id = Template::parse_with("{{ uuid() }}", self.symbols(), Escape::None).ok()?;
        let literal = Template::literal;
        let mut parts = vec![literal("From: <"), from?.clone(), literal(">\nTo: ")];
        for (at, to) in to?.iter().enumerate() {
            parts.push(literal(if at > 0 { ", <" } else { "<" }));
            parts.extend([to.clone(), literal(">")]);
        }
        parts.extend([literal("\nSubject: "), subject?]);
        parts.extend([literal("\nMessage-ID: <"), id]);
        parts.extend([literal("@plimsoll.invalid>\n\n"), text?]);
        Some(Template::concatenate(&parts))
    }

    /// Compiles a word of a line, which starts at this place in it.
    fn word(&mut self, line: &At<Scalar>, (place, word): &(usize, String)) -> Option<Template> {
        let parsed = Template::parse_with(word, self.symbols(), Escape::None);
        let parsed = parsed.map_err(|mut error| {
            error.at = place + error.at.start..place + error.at.end;
            error
        });
        self.note("request", &line.span, &line.text(), parsed)
    }

    /// Compiles a request with this content; checks all its settings for the response.
    pub(super) fn request_with_content(
        &mut self,
        said: Option<ProtocolRequest>,
        file: &RequestFile,
    ) -> Option<Request> {
        let own: &[&str] = match self.speech {
            Speech::Imap { .. } => &["text"],
            Speech::Smtp { .. } => &[STATUS],
            _ => &[],
        };
        let fits = match part_of_web(file, own) {
            Some((key, place)) => {
                self.refuse(place, &format!("`{key}` belongs to requests of HTTP"))
            }
            None => Some(()),
        };
        self.refuse_foreign(file)?;
        let (answer, captures) = self.answered(file)?;
        fits?;
        Some(Request {
            expect: self.statuses(file)?,
            answer,
            captures,
            ..Request::of_protocol(said?)
        })
    }
}
