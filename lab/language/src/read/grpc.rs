//! gRPC: the services of a workload, and the calls of its requests.

use lab_workload::template::Escape;
use lab_workload::{
    Call, CaptureSource, Descriptors, Events, Field, GRPC_STATUSES, MessageKind, Method,
    ProtocolRequest, Request, Speech, Template,
};

use super::body;
use super::events::Listening;
use super::foreign::{STATUS, expected_header, part_of_web};
use super::names::unknown_name;
use super::request::Compiler;
use crate::file::{ExpectFile, RequestFile, SpeakingFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Json, Scalar, Table};

/// Maximum messages of a request.
const MAX_MESSAGES: usize = 10_000;
/// Metadata that every call has.
const OWN: &[&str] = &[
    "content-type",
    "te",
    "host",
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
];

impl Compiler<'_> {
    /// Reads the services to call, and the metadata of all calls.
    pub(super) fn grpc(&mut self, place: &Span, file: Option<&SpeakingFile>) -> Option<Speech> {
        let (Some(file), Some(descriptors)) = (file, self.descriptors) else {
            let help = "write `protocol: { name: grpc, descriptors: shop.proto }`";
            return self.refuse_here(place, "gRPC needs to know the services", help);
        };
        let of_others = [
            &file.username,
            &file.password,
            &file.database,
            &file.starttls,
            &file.path,
            &file.subprotocol,
        ];
        if let Some(at) = of_others.into_iter().flatten().next() {
            let help = "write metadata: `headers: { Authorization: \"Bearer {{ token }}\" }`";
            return self.refuse_here(&at.span, "this is no part of gRPC", help);
        }
        Some(Speech::Grpc {
            metadata: self.metadata(&file.headers)?,
            descriptors: descriptors.clone(),
        })
    }

    /// Reports descriptors in a workload without gRPC.
    pub(super) fn refuse_descriptors(&mut self, file: Option<&SpeakingFile>) -> Option<()> {
        let named = file.and_then(|file| file.descriptors.as_ref());
        match named.and_then(|named| named.as_slice().first()) {
            Some(at) => self.refuse_here(&at.span, "only gRPC has descriptors", "leave it out"),
            None => Some(()),
        }
    }

    fn metadata(&mut self, file: &Table<At<Scalar>>) -> Option<Vec<(String, Template)>> {
        let mut all = Vec::new();
        for (name, value) in file.iter() {
            let lower = name.value.to_ascii_lowercase();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if lower.is_empty() || !lower.chars().all(fits) {
                let message = format!("`{}` is no name of metadata", name.value);
                let help = "names are of letters, digits, `-`, `_`, and `.`";
                return self.refuse_here(&name.span, &message, help);
            }
            if OWN.contains(&lower.as_str()) {
                let message = format!("`{}` is written by the driver itself", name.value);
                return self.refuse_here(&name.span, &message, "leave it out");
            }
            all.push((lower, self.template("metadata", value, Escape::None)?));
        }
        Some(all)
    }

    /// Compiles a call.
    pub(super) fn call(
        &mut self,
        line: &At<Scalar>,
        file: &RequestFile,
        descriptors: &Descriptors,
    ) -> Option<Request> {
        self.refuse_parts_of_http(file)?;
        self.refuse_foreign(file)?;
        let method = self.method(line, descriptors)?;
        let said = self.called(&method, line, file);
        let events = self.listening(file.events.as_ref(), Listening::Messages);
        let expect = self.grpc_statuses(file);
        let answer = self.answer(file);
        let captures = self.captures(&file.capture);
        for (capture, (name, _)) in captures.iter().flatten().zip(file.capture.iter()) {
            use CaptureSource::{Cookie, Header, RequestPath};
            if matches!(capture.source, Cookie(_) | Header(_) | RequestPath) {
                let help = "write `body`, a JSON path, or a pattern";
                return self.refuse_here(&name.span, "a call is answered by messages", help);
            }
        }
        if let Some(place) = expected_header(answer.as_deref(), file) {
            return self.refuse_here(place, "calls have no headers to expect", "leave it out");
        }
        let (said, events) = (said?, events?);
        self.refuse_stream(&method, file, events.as_ref())?;
        Some(Request {
            expect: expect?,
            answer: answer?,
            captures: captures?,
            events,
            ..Request::of_protocol(ProtocolRequest::Call(said))
        })
    }

    fn method(&mut self, line: &At<Scalar>, descriptors: &Descriptors) -> Option<Method> {
        let text = line.text();
        let found = descriptors.method(&text).ok_or_else(|| {
            let names = descriptors.methods();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (message, help) = match names.is_empty() {
                true => (
                    "there are no services".to_owned(),
                    "name other descriptors".to_owned(),
                ),
                false => unknown_name("method", text.trim(), &names),
            };
            TextError::new(message, 0..text.len()).help(help)
        });
        self.note("request", &line.span, &text, found)
    }

    /// Compiles the messages and settings of a call.
    fn called(&mut self, method: &Method, line: &At<Scalar>, file: &RequestFile) -> Option<Call> {
        let mut messages = Vec::new();
        match (&file.json, &file.call.messages) {
            (Some(_), Some(both)) => {
                let help = "write one of them";
                return self.refuse_here(
                    &both.span,
                    "`messages` stand in the place of `json`",
                    help,
                );
            }
            (Some(one), None) => messages.push(self.call_message(&method.says, one)?),
            (None, Some(many)) => {
                if many.value.len() > MAX_MESSAGES {
                    let message = format!("a request says at most {MAX_MESSAGES} messages");
                    return self.refuse_here(&many.span, &message, "let a step be repeated");
                }
                for one in &many.value {
                    messages.push(self.call_message(&method.says, one)?);
                }
            }
            // The default is one message without fields.
            (None, None) if !method.says_many => messages.push(Template::literal("{}")),
            (None, None) => {}
        }
        let deadline = file.call.deadline.as_ref();
        let deadline = deadline.map(|at| {
            self.setting("deadline", at, |text| {
                let time = units::duration(text, units::MAX_WAIT)?;
                match time.as_millis() {
                    0 => Err(TextError::new("it is zero", 0..text.len())),
                    _ => Ok(time),
                }
            })
        });
        let open = file.call.stays_open.as_ref();
        let open = open.map(|at| self.setting("stays_open", at, units::switch));
        let call = Call {
            method: line.text().trim().trim_start_matches('/').to_owned(),
            messages,
            metadata: self.metadata(&file.headers)?,
            deadline: match deadline {
                Some(deadline) => Some(deadline?),
                None => None,
            },
            stays_open: open.unwrap_or(Some(false))?,
        };
        Some(call)
    }

    /// Compiles a message: it may only have fields of its type, and a constant one must be valid as a whole.
    fn call_message(&mut self, kind: &MessageKind, json: &At<Json>) -> Option<Template> {
        let of = kind.as_field();
        self.fields(&of, &json.value)?;
        let symbols = self.symbols();
        let template = body::message(json, &of, symbols, self.problems)?;
        if let Some(Err(error)) = template
            .as_literal()
            .map(|text| kind.encode(text, &mut Vec::new()))
        {
            let help = "write it as Protocol Buffers map it to JSON";
            return self.refuse_here(&json.span, &error, help);
        }
        Some(template)
    }

    /// Checks that all fields belong to their messages.
    fn fields(&mut self, of: &Field, json: &Json) -> Option<()> {
        let (table, kind) = match (json, of) {
            (Json::List(all), _) => {
                let all: Vec<Option<()>> = all.iter().map(|one| self.fields(of, one)).collect();
                return all.into_iter().collect();
            }
            (Json::Table(table), Field::Map(inner)) => {
                let values = table.iter().map(|(_, value)| self.fields(inner, value));
                let all: Vec<Option<()>> = values.collect();
                return all.into_iter().collect();
            }
            (Json::Table(table), Field::Message(kind)) => (table, kind),
            _ => return Some(()),
        };
        for (name, value) in table.iter() {
            let Some(of) = kind.field(&name.value) else {
                let names = kind.fields();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let (message, help) = match names.is_empty() {
                    true => (
                        format!("`{}` has no fields", kind.name()),
                        "leave it out".to_owned(),
                    ),
                    false => unknown_name("field", &name.value, &names),
                };
                return self.refuse_here(&name.span, &message, &help);
            };
            self.fields(&of, value)?;
        }
        Some(())
    }

    /// Reports stream settings of a method without streams.
    fn refuse_stream(
        &mut self,
        method: &Method,
        file: &RequestFile,
        events: Option<&Events>,
    ) -> Option<()> {
        if let Some(messages) = file.call.messages.as_ref().filter(|_| !method.says_many) {
            let help = "write `json`";
            return self.refuse_here(&messages.span, "this method takes one message", help);
        }
        if let Some(open) = file.call.stays_open.as_ref().filter(|_| !method.says_many) {
            let message = "this method takes one message, and nothing more is said on its call";
            return self.refuse_here(&open.span, message, "leave it out");
        }
        let Some(at) = &file.events else {
            return Some(());
        };
        if !method.hears_many {
            let message = "this method answers with one message";
            return self.refuse_here(&at.span, message, "leave `events` out");
        }
        if events.is_some_and(|events| events.count == Some(0)) && !method.says_many {
            let message = "a call of which no message is awaited would end at once";
            return self.refuse_here(&at.span, message, "leave `events` out");
        }
        Some(())
    }

    /// Parses the expected statuses of a call.
    fn grpc_statuses(&mut self, file: &RequestFile) -> Option<Vec<std::ops::RangeInclusive<u16>>> {
        let expect = match &file.expect {
            Some(ExpectFile::Status(statuses)) => statuses.as_slice(),
            Some(ExpectFile::Answer(answer)) => answer
                .status
                .as_ref()
                .map(|one| one.as_slice())
                .unwrap_or_default(),
            None => &[],
        };
        if expect.is_empty() {
            return Some(vec![0..=0]);
        }
        let parse = |at: &At<Scalar>| {
            let text = at.text();
            self.note("expect", &at.span, &text, status(&text))
        };
        let all: Vec<Option<_>> = expect.iter().map(parse).collect();
        all.into_iter().collect()
    }

    /// Reports parts that belong to HTTP only.
    fn refuse_parts_of_http(&mut self, file: &RequestFile) -> Option<()> {
        match part_of_web(file, &["headers", "json", "events", STATUS]) {
            Some((_, span)) => {
                let help = "a call says messages: `json`, or a list of `messages`";
                self.refuse_here(span, "this belongs to requests of HTTP", help)
            }
            None => Some(()),
        }
    }
}

/// Parses a status by its name or number.
fn status(text: &str) -> Result<std::ops::RangeInclusive<u16>, TextError> {
    let name = text.trim();
    let by_name = |one: &&str| one.eq_ignore_ascii_case(name);
    let known = GRPC_STATUSES.iter().position(by_name);
    let known = known.or_else(|| name.parse().ok().filter(|at| *at < GRPC_STATUSES.len()));
    match known {
        Some(at) => Ok(at as u16..=at as u16),
        None => {
            let (message, help) = unknown_name("status", name, &GRPC_STATUSES);
            Err(TextError::new(message, 0..text.len()).help(help))
        }
    }
}
