//! Reports parts of requests that belong to another protocol.

use lab_workload::{Capture, CaptureSource, Expectation, Speech};

use super::request::Compiler;

use crate::file::{ExpectFile, RequestFile};
use crate::source::Span;
use lab_units::parts::{At, Scalar};

/// The key of an expected status among the parts of a request.
pub(super) const STATUS: &str = "expect: status";

const LEAVE_OUT: &str = "leave it out";

impl Compiler<'_> {
    /// Reports a part that is not allowed here, and what to write instead.
    pub(super) fn refuse_here<T>(&mut self, place: &Span, message: &str, help: &str) -> Option<T> {
        let problem = place.first_line().problem(message, "here");
        self.problems.push(problem.help(help));
        None
    }

    /// Reports a part that is not allowed here, without a replacement.
    pub(super) fn refuse<T>(&mut self, place: &Span, message: &str) -> Option<T> {
        self.refuse_here(place, message, LEAVE_OUT)
    }

    /// Reports parts that belong to another protocol.
    pub(super) fn refuse_foreign(&mut self, file: &RequestFile) -> Option<()> {
        let mail = file.mail.as_ref();
        let mail = mail.filter(|_| !matches!(self.speech, Speech::Smtp { .. }));
        let sql = file.statement.place();
        let sql = sql.filter(|_| !matches!(self.speech, Speech::Postgres { .. }));
        let call = file.call.place();
        let call = call.filter(|_| !matches!(self.speech, Speech::Grpc { .. }));
        let close = file.call.close.as_ref().map(|at| ("close", &at.span));
        let close = close.filter(|_| !matches!(self.speech, Speech::WebSocket { .. }));
        let raw = file.raw.place();
        let raw = raw.filter(|_| !matches!(self.speech, Speech::Tcp | Speech::Udp));
        let raw = raw.map(|(key, place)| (key, place, "TCP or UDP", "tcp"));
        let mqtt = file.mqtt.place();
        let mqtt = mqtt.filter(|_| !matches!(self.speech, Speech::Mqtt { .. }));
        let raw = raw.or(mqtt.map(|(key, place)| (key, place, "MQTT", "mqtt")));
        let call = call.map(|(key, place)| (key, place, "gRPC", "grpc"));
        let call = call.or(raw);
        let call = call.or(close.map(|(key, place)| (key, place, "WebSocket", "websocket")));
        let (key, place, whose, name) = match (mail, sql, call) {
            (Some(mail), ..) => ("mail", &mail.span, "SMTP", "smtp"),
            (None, Some((key, place)), _) => (key, place, "PostgreSQL", "postgresql"),
            (None, None, Some(call)) => call,
            (None, None, None) => return Some(()),
        };
        let message = format!("`{key}` is what a workload of {whose} sends");
        let help = format!("say `protocol: {name}` at the workload's beginning");
        self.refuse_here(place, &message, &help)
    }

    /// Reports a line where none is allowed.
    pub(super) fn refuse_line<T>(&mut self, line: &At<Scalar>) -> Option<T> {
        let (message, help) = match self.speech {
            Speech::Postgres { .. } => (
                "a request of PostgreSQL is a `query`",
                "write `query: SELECT …` in its place",
            ),
            Speech::Mqtt { .. } => (
                "a request of MQTT has no line",
                "write `publish`, `subscribe`, or `receive` in its place",
            ),
            Speech::Tcp | Speech::Udp => (
                "a request of TCP or UDP has no line",
                "write `send` in its place: `send: \"PING\\r\\n\"`",
            ),
            _ => (
                "a request of SMTP is a `mail`",
                "write `mail: { from: …, to: …, subject: …, text: … }`",
            ),
        };
        self.refuse_here(&line.span, message, help)
    }

    /// Returns the expectations and captures of a response outside HTTP.
    pub(super) fn answered(
        &mut self,
        file: &RequestFile,
    ) -> Option<(Vec<Expectation>, Vec<Capture>)> {
        let is_message = matches!(self.speech, Speech::WebSocket { .. });
        let has_code = matches!(self.speech, Speech::Smtp { .. });
        let answer = self.answer(file);
        let captures = self.captures(&file.capture);
        for (capture, (name, _)) in captures.iter().flatten().zip(file.capture.iter()) {
            use CaptureSource::{Cookie, Header, RequestPath, Status};
            let is_foreign = match &capture.source {
                Cookie(_) | Header(_) | RequestPath => true,
                Status => !has_code,
                _ => false,
            };
            if is_foreign {
                let (message, help) = match is_message {
                    true => (
                        "a message has only its text",
                        "write `body`, a JSON path, or a pattern",
                    ),
                    false => (
                        "only answers of HTTP have that; here they have a `body`",
                        LEAVE_OUT,
                    ),
                };
                return self.refuse_here(&name.span, message, help);
            }
        }
        if let Some(place) = expected_header(answer.as_deref(), file) {
            return self.refuse(
                place,
                match is_message {
                    true => "messages have no headers",
                    false => "only answers of HTTP have headers",
                },
            );
        }
        answer.zip(captures)
    }
}

/// Returns the first part of a request that belongs to HTTP only and is not in the protocol's `own` parts, by its key.
pub(super) fn part_of_web<'a>(
    file: &'a RequestFile,
    own: &[&str],
) -> Option<(&'static str, &'a Span)> {
    let header = file.headers.iter().next().map(|(name, _)| &name.span);
    let name = file.basic_auth.as_ref().map(|at| &at.username.span);
    let parts = [
        ("headers", header),
        ("cookies", file.cookies.iter().next().map(|one| &one.0.span)),
        ("json", file.json.as_ref().map(|at| &at.span)),
        ("form", file.form.as_ref().map(|at| &at.span)),
        ("bytes", file.bytes.as_ref().map(|at| &at.span)),
        ("xml", file.xml.as_ref().map(|at| &at.span)),
        ("text", file.text.as_ref().map(|at| &at.span)),
        ("multipart", file.multipart.as_ref().map(|at| &at.span)),
        ("body", file.body.as_ref().map(|at| &at.span)),
        ("basic_auth", name),
        ("sign", file.sign.as_ref().map(|at| &at.span)),
        ("auth", file.auth.as_ref().map(|at| &at.span)),
        ("compressed", file.compressed.as_ref().map(|at| &at.span)),
        ("follow", file.follow.as_ref().map(|at| &at.span)),
        ("events", file.events.as_ref().map(|at| &at.span)),
        (STATUS, expected_status(file)),
    ];
    let mut given = parts.into_iter().filter(|(key, _)| !own.contains(key));
    given.find_map(|(key, place)| Some((key, place?)))
}

/// Returns the place of an expected status, if there is one.
fn expected_status(file: &RequestFile) -> Option<&Span> {
    let statuses = match file.expect.as_ref()? {
        ExpectFile::Status(statuses) => statuses,
        ExpectFile::Answer(answer) => answer.status.as_ref()?,
    };
    statuses.as_slice().first().map(|at| &at.span)
}

/// Returns the place of an expected header, if there is one.
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
