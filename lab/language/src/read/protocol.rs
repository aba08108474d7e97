//! What users speak, and requests of other protocols than HTTP.

use lab_workload::template::Escape;
use lab_workload::{Body, CaptureSource, Expectation, Request, Said, SignIn, Speech, Template};

use super::names::unknown_name;
use super::request::Compiler;
use super::words::words;
use crate::error::Problem;
use crate::file::WorkloadFile;
use crate::file::{At, ExpectFile, MailFile, ProtocolFile, RequestFile, Scalar, SpeakingFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;

/// What there is to speak.
const NAMES: &[&str] = &["http", "imap", "postgresql", "redis", "smtp", "websocket"];

impl Compiler<'_> {
    /// What a workload's users speak; `None` when a problem was noted.
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
        if name_text.trim() != "websocket" {
            self.refuse_handshake(sign_in)?;
        }
        match name_text.trim() {
            "websocket" => {
                self.refuse_web(file)?;
                self.websocket(sign_in)
            }
            "http" => match sign_in {
                None => Some(Speech::Http),
                Some(_) => self.refuse(
                    &protocol.span,
                    "HTTP signs nobody in by itself: a request does",
                ),
            },
            "redis" => {
                self.refuse_web(file)?;
                if let Some(at) = sign_in.and_then(|file| file.starttls.as_ref()) {
                    return self.refuse(&at.span, "Redis knows no `starttls`");
                }
                self.sign_in(sign_in).map(Speech::Redis)
            }
            known @ ("smtp" | "imap") => {
                self.refuse_web(file)?;
                if let Some(at) = sign_in.and_then(|file| file.database.as_ref()) {
                    return self.refuse(&at.span, "servers of mail know no `database`");
                }
                let (sign_in, starttls) = self.secured(sign_in)?;
                Some(match known {
                    "smtp" => Speech::Smtp { sign_in, starttls },
                    _ => Speech::Imap { sign_in, starttls },
                })
            }
            "postgresql" => {
                self.refuse_web(file)?;
                let (sign_in, starttls) = self.secured(sign_in)?;
                if sign_in.username.is_none() {
                    return self.refuse_nobody(&protocol.span);
                }
                Some(Speech::Postgres { sign_in, starttls })
            }
            other => {
                let (message, help) = unknown_name("protocol", other, NAMES);
                let text = name.text();
                let error = TextError::new(message, 0..text.len()).help(help);
                self.note("protocol", &name.span, &text, Err(error))
            }
        }
    }

    /// Who signs in, and whether TLS comes before.
    fn secured(&mut self, file: Option<&SpeakingFile>) -> Option<(SignIn, bool)> {
        let starttls = file.and_then(|file| file.starttls.as_ref());
        let starttls = starttls.map(|at| self.setting("starttls", at, units::switch));
        let sign_in = self.sign_in(file);
        Some((sign_in?, starttls.unwrap_or(Some(false))?))
    }

    /// A workload of PostgreSQL that says of nobody that they sign in.
    fn refuse_nobody<T>(&mut self, place: &Span) -> Option<T> {
        let message = "PostgreSQL lets nobody in who has no name";
        let problem = place.first_line().problem(message, "here");
        self.problems.push(Problem {
            help: Some("write `protocol: { name: postgresql, username: … }`".to_owned()),
            ..problem
        });
        None
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

    /// Settings of a workload that only requests of HTTP have.
    fn refuse_web(&mut self, file: &WorkloadFile) -> Option<()> {
        let of = [
            ("compressed", &file.compressed),
            ("follow", &file.follow),
            ("trace", &file.trace),
        ];
        match of
            .into_iter()
            .find_map(|(key, at)| Some((key, at.as_ref()?)))
        {
            Some((key, at)) => self.refuse(&at.span, &format!("`{key}` is a setting of HTTP")),
            None => Some(()),
        }
    }

    pub(super) fn refuse<T>(&mut self, place: &Span, message: &str) -> Option<T> {
        let problem = place.first_line().problem(message, "here");
        self.problems.push(Problem {
            help: Some("leave it out".to_owned()),
            ..problem
        });
        None
    }

    /// A command of Redis.
    pub(super) fn command(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        let text = line.text();
        let said = self.note("request", &line.span, &text, words(&text));
        let compiled = said.and_then(|said| {
            let compile = |word: &(usize, String)| self.word(line, word);
            said.iter().map(compile).collect::<Option<Vec<Template>>>()
        });
        self.request_saying(compiled.map(Said::Words), file)
    }

    /// A command of IMAP, and the text that is its last argument.
    pub(super) fn typed_line(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        let compiled = self.template("request", line, Escape::Quoted);
        let text = match &file.text {
            Some(text) => self.template("text", text, Escape::None).map(Some),
            None => Some(None),
        };
        let said = compiled.zip(text);
        self.request_saying(said.map(|(line, text)| Said::Line { line, text }), file)
    }

    /// A mail.
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
        let said = said.map(|((from, to), text)| Said::Mail { from, to, text });
        self.request_saying(said, file)
    }

    /// The text of a mail with the headers that it needs.
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

    /// A word of a line, which begins at this place in it.
    fn word(&mut self, line: &At<Scalar>, (place, word): &(usize, String)) -> Option<Template> {
        let parsed = Template::parse_with(word, self.symbols(), Escape::None);
        let parsed = parsed.map_err(|mut error| {
            error.at = place + error.at.start..place + error.at.end;
            error
        });
        self.note("request", &line.span, &line.text(), parsed)
    }

    /// A request that says this; all that is said of its answer is judged.
    pub(super) fn request_saying(
        &mut self,
        said: Option<Said>,
        file: &RequestFile,
    ) -> Option<Request> {
        let fits = self.refuse_parts(file);
        self.refuse_foreign(file)?;
        let answer = self.answer(file);
        let captures = self.captures(&file.capture);
        for (capture, (name, _)) in captures.iter().flatten().zip(file.capture.iter()) {
            use CaptureSource::{Cookie, Header, RequestPath, Status};
            let of_http = matches!(capture.source, Cookie(_) | Header(_) | RequestPath);
            if of_http || (matches!(capture.source, Status) && !self.has_codes()) {
                let message = "only answers of HTTP have that; here they have a `body`";
                return self.refuse(&name.span, message);
            }
        }
        if let Some(place) = expected_header(answer.as_deref(), file) {
            return self.refuse(place, "only answers of HTTP have headers");
        }
        fits?;
        Some(Request {
            method: String::new(),
            target: Template::literal(""),
            headers: Vec::new(),
            body: Body::Empty,
            basic_auth: None,
            expect: self.statuses(file)?,
            answer: answer?,
            captures: captures?,
            compressed: false,
            follow: 0,
            events: None,
            said: said.map(Box::new).map(Some)?,
        })
    }

    /// Whether answers have a code that `expect` judges.
    fn has_codes(&self) -> bool {
        matches!(self.speech, Speech::Http | Speech::Smtp { .. })
    }

    /// Parts that only requests of HTTP have.
    fn refuse_parts(&mut self, file: &RequestFile) -> Option<()> {
        let headers = file.headers.iter().next().map(|(name, _)| &name.span);
        let statuses = match &file.expect {
            Some(ExpectFile::Status(one)) => one.as_slice().first(),
            Some(ExpectFile::Answer(answer)) => answer
                .status
                .as_ref()
                .and_then(|one| one.as_slice().first()),
            None => None,
        };
        let text = file.text.as_ref();
        let text = text.filter(|_| !matches!(self.speech, Speech::Imap { .. }));
        let given = [
            ("headers", headers),
            ("json", file.json.as_ref().map(|at| &at.span)),
            ("form", file.form.as_ref().map(|at| &at.span)),
            ("bytes", file.bytes.as_ref().map(|at| &at.span)),
            ("xml", file.xml.as_ref().map(|at| &at.span)),
            ("text", text.map(|at| &at.span)),
            ("multipart", file.multipart.as_ref().map(|at| &at.span)),
            ("body", file.body.as_ref().map(|at| &at.span)),
            (
                "basic_auth",
                file.basic_auth.as_ref().map(|at| &at.username.span),
            ),
            ("compressed", file.compressed.as_ref().map(|at| &at.span)),
            ("follow", file.follow.as_ref().map(|at| &at.span)),
            ("events", file.events.as_ref().map(|at| &at.span)),
            (
                "expect: status",
                statuses.filter(|_| !self.has_codes()).map(|at| &at.span),
            ),
        ];
        let found = given.into_iter().find_map(|(key, span)| Some((key, span?)));
        match found {
            Some((key, span)) => {
                let message = format!("`{key}` belongs to requests of HTTP");
                self.refuse(span, &message)
            }
            None => Some(()),
        }
    }
}

/// Where a header is expected, if one is.
pub(super) fn expected_header<'a>(
    answer: Option<&[Expectation]>,
    file: &'a RequestFile,
) -> Option<&'a Span> {
    let header = |one: &Expectation| matches!(one, Expectation::Header { .. });
    answer.filter(|answer| answer.iter().any(header))?;
    let Some(ExpectFile::Answer(file)) = &file.expect else {
        return None;
    };
    file.header.iter().next().map(|(name, _)| &name.span)
}
