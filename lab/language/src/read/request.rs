//! Requests: method and target, headers, body, expectations on the response, captures.

use std::time::Duration;

use lab_workload::sign::Sign;
use lab_workload::template::{Escape, MAX_RENDERED_BYTES, Symbols};
use lab_workload::{
    Attached, Body, Capture, Credentials, Descriptors, JsonSchema, Key, OwnCookie, Request,
    SharedState, Speech, Template,
};

use super::header::{header_problem, is_cookie_name};
use super::method::method_problem;
use super::names::transposed;
use super::{body, capture, variable};
use crate::error::{Problem, Problems};
use crate::file::{ExpectFile, RequestFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Scalar, Table};
use lab_units::setting::Setting;
use lab_workload::Parameters as Cell;

/// Maximum redirects that a request follows: browsers stop after 20.
const MAX_FOLLOW: u64 = 50;

/// Defaults for the processing of responses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taking {
    pub(super) compressed: bool,
    pub(super) follow: u32,
}

/// Compiles requests for one workload.
pub(super) struct Compiler<'a> {
    pub(super) variables: &'a [String],
    pub(super) parameters: &'a Cell,
    /// Files whose content requests send.
    pub(super) files: &'a [Attached],
    /// The workload's keys.
    pub(super) keys: &'a [Key],
    /// Whether the seed must determine everything that is sent.
    pub(super) is_repeatable: bool,
    /// Schemas that responses are validated against.
    pub(super) schemas: &'a [JsonSchema],
    /// Descriptors of the services to call.
    pub(super) descriptors: Option<&'a Descriptors>,
    pub(super) problems: &'a mut Problems,
    pub(super) taking: Taking,
    /// Whether a failure ends a session, for steps without their own setting.
    pub(super) ends_session: bool,
    /// The cookies of all requests.
    pub(super) cookies: Vec<OwnCookie>,
    /// The default signature of requests.
    pub(super) sign: Option<Box<Sign<Template>>>,
    /// State that users share.
    pub(super) shared: &'a [SharedState],
    /// The credentials of requests without an `auth` key.
    pub(super) credentials: Option<Box<Credentials>>,
    /// The protocol of the requests.
    pub(super) speech: &'a Speech,
}

impl<'a> Compiler<'a> {
    /// Creates a compiler without further context.
    pub(super) fn new(
        variables: &'a [String],
        parameters: &'a Cell,
        problems: &'a mut Problems,
    ) -> Self {
        Self {
            variables,
            parameters,
            files: &[],
            schemas: &[],
            descriptors: None,
            problems,
            taking: Taking::default(),
            ends_session: false,
            cookies: Vec::new(),
            sign: None,
            shared: &[],
            credentials: None,
            speech: &Speech::Http,
            keys: &[],
            is_repeatable: false,
        }
    }

    /// Returns the names that templates may use.
    pub(super) fn symbols(&self) -> Symbols<'a> {
        Symbols {
            variables: self.variables,
            parameters: self.parameters,
            keys: self.keys,
            is_repeatable: self.is_repeatable,
        }
    }
}

impl Compiler<'_> {
    /// Reads how responses are processed; `None` if a problem was reported.
    pub(super) fn taking(
        &mut self,
        compressed: Option<&At<Scalar>>,
        follow: Option<&At<Scalar>>,
    ) -> Option<Taking> {
        let compressed = compressed.map(|at| self.setting("compressed", at, units::switch));
        let follow = follow.map(|at| {
            self.setting("follow", at, |text| {
                units::whole_number(text, 0..=MAX_FOLLOW)
            })
        });
        Some(Taking {
            compressed: compressed.unwrap_or(Some(self.taking.compressed))?,
            follow: follow.map_or(Some(self.taking.follow), |n| n.map(|n| n as u32))?,
        })
    }

    /// Reads a value of the file that may name parameters, but no user data.
    pub(super) fn setting<T>(
        &mut self,
        what: &str,
        at: &At<Scalar>,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let text = at.text();
        if !text.contains("{{") {
            return self.note(what, &at.span, &text, parse(&text));
        }
        let names: Vec<String> = self.parameters.keys().cloned().collect();
        let template = Template::parse_setting(&text, &names);
        let template = self.note(what, &at.span, &text, template)?;
        let setting = Setting {
            field: what.to_owned(),
            template,
            at: at.clone(),
        };
        let made = setting.value(self.parameters, parse);
        made.map_err(|error| {
            let message = format!("{what}: {}", error.cause.message);
            let label = format!("this is `{}`", error.text);
            self.problems.push(Problem {
                help: error.cause.help,
                ..at.span.first_line().problem(message, label)
            });
        })
        .ok()
    }

    /// Reads an optional setting.
    pub(super) fn optional<T>(
        &mut self,
        what: &str,
        at: &Option<At<Scalar>>,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Option<Option<T>> {
        transposed(at.as_ref().map(|at| self.setting(what, at, parse)))
    }

    /// Compiles a template of the file; `what` names it in errors.
    pub(super) fn template(
        &mut self,
        what: &str,
        at: &At<Scalar>,
        escape: Escape,
    ) -> Option<Template> {
        let text = at.written();
        let parsed = Template::parse_with(&text, self.symbols(), escape);
        self.note(what, &at.span, &text, parsed)
    }

    /// Returns the value, or reports its error at its place.
    pub(super) fn note<T>(
        &mut self,
        what: &str,
        span: &Span,
        text: &str,
        result: Result<T, impl Into<TextError>>,
    ) -> Option<T> {
        result
            .map_err(|error| {
                let problem = span.text_problem(what, text, &error.into());
                self.problems.push(problem);
            })
            .ok()
    }

    /// Compiles a request of the workload's protocol.
    pub(super) fn request(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        let timeout = self.timeout(file);
        let made = self.spoken(line, file);
        Some(Request {
            timeout: timeout?,
            ..made?
        })
    }

    /// Returns the time limit of a response; the inner `None` applies the limit of the load.
    fn timeout(&mut self, file: &RequestFile) -> Option<Option<Duration>> {
        self.optional("timeout", &file.timeout, units::timeout)
    }

    fn spoken(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        match self.speech {
            Speech::Http => {
                self.refuse_foreign(file)?;
                self.web_request(line, file)
            }
            Speech::WebSocket { .. } => self.message(Some(line), file),
            Speech::Grpc { descriptors, .. } => self.call(line, file, descriptors),
            Speech::Redis(_) => self.command(line, file),
            Speech::Imap { .. } => self.typed_line(line, file),
            Speech::Smtp { .. }
            | Speech::Postgres { .. }
            | Speech::Mqtt { .. }
            | Speech::Tcp
            | Speech::Udp => self.refuse_line(line),
        }
    }

    /// Compiles a request without a line; `None` if the file defines none.
    pub(super) fn lineless(&mut self, file: &RequestFile) -> Option<Option<Request>> {
        let is_message = matches!(self.speech, Speech::WebSocket { .. });
        if !is_message && !file.has_no_line() {
            return None;
        }
        let timeout = self.timeout(file);
        let made = match &file.mail {
            _ if is_message => self.message(None, file),
            mail => self.refuse_foreign(file).and_then(|()| match mail {
                Some(mail) => self.mail(&mail.value, file),
                None if file.raw.place().is_some() => self.raw(&file.raw, file),
                None if file.mqtt.place().is_some() => self.mqtt_request(&file.mqtt, file),
                None => self.statement(&file.statement, file),
            }),
        };
        let with = |(timeout, made)| Request { timeout, ..made };
        Some(timeout.zip(made).map(with))
    }

    /// Compiles a request with all its parts; every part is checked, whatever errors the others have.
    fn web_request(&mut self, line: &At<Scalar>, file: &RequestFile) -> Option<Request> {
        let start = self.request_line(line);
        let mut headers = self.headers(&file.headers);
        let cookies = self.cookies_of(file);
        let body = self.body(file);
        let kind = body.as_ref().and_then(|(_, kind)| kind.as_deref());
        if let (Some(kind), Some(headers)) = (kind, &mut headers)
            && !headers.iter().any(|(name, _)| is_content_type(name))
        {
            headers.push(("Content-Type".to_owned(), Template::literal(kind)));
        }
        let basic_auth = match &file.basic_auth {
            Some(basic) => {
                let name = self.template("username", &basic.username, Escape::None);
                let password = self.template("password", &basic.password, Escape::None);
                name.zip(password).map(Some)
            }
            None => Some(None),
        };
        let expect = self.statuses(file);
        let answer = self.answer(file);
        let captures = self.captures(&file.capture);
        let taking = self.taking(file.compressed.as_ref(), file.follow.as_ref());
        let events = self.events(file.events.as_ref());
        let sign = self.sign(file.sign.as_ref());
        let credentials = self.credentials_of(file, sign.as_ref().and_then(Option::as_deref));
        let (method, target) = start?;
        Some(Request {
            method,
            target,
            headers: headers?,
            cookies: cookies?,
            body: body?.0,
            basic_auth: basic_auth?,
            expect: expect?,
            answer: answer?,
            captures: captures?,
            compressed: taking?.compressed,
            follow: taking?.follow,
            timeout: None,
            events: events?,
            sign: sign?,
            credentials: credentials?,
            hides_answer: false,
            said: None,
        })
    }

    pub(super) fn request_line(&mut self, line: &At<Scalar>) -> Option<(String, Template)> {
        let text = line.text();
        let (method, rest) = text.split_once(' ').unwrap_or((text.as_str(), ""));
        if let Some(error) = method_problem(method, rest) {
            return self.note("request", &line.span, &text, Err::<_, TextError>(error));
        }
        let target = rest.trim();
        let place = text.len() - rest.trim_start().len();
        let form = ["/", "http://", "https://", "{{"]
            .iter()
            .any(|start| target.starts_with(start));
        if !form || has_gap(target) {
            let error = TextError::new(format!("`{target}` is not a target"), place..text.len())
                .help("a target is a path without spaces, such as `GET /mail/inbox?count=10`");
            return self.note("request", &line.span, &text, Err::<_, TextError>(error));
        }
        let parsed =
            Template::parse_with(target, self.symbols(), Escape::None).map_err(|mut error| {
                error.at = place + error.at.start..place + error.at.end;
                error
            });
        let target = self.note("request", &line.span, &text, parsed)?;
        Some((method.to_owned(), target))
    }

    /// Compiles the cookies of a table; `is_default` for those of the whole workload.
    pub(super) fn cookies(
        &mut self,
        table: &Table<At<Scalar>>,
        is_default: bool,
    ) -> Option<Vec<OwnCookie>> {
        let mut all = Vec::new();
        for (name, value) in table.iter() {
            if !is_cookie_name(&name.value) {
                let message = format!("`{}` is no name of a cookie", name.value.escape_debug());
                return self.refuse(&name.span, &message);
            }
            all.push(OwnCookie {
                name: name.value.clone(),
                value: self.template("cookie", value, Escape::None)?,
                is_default,
            });
        }
        Some(all)
    }

    /// Returns the cookies of a request: its own, and those of the workload that it doesn't override.
    fn cookies_of(&mut self, file: &RequestFile) -> Option<Vec<OwnCookie>> {
        let mut all = self.cookies(&file.cookies, false)?;
        for (_, header) in file
            .headers
            .iter()
            .filter(|(name, _)| name.value.eq_ignore_ascii_case("cookie"))
        {
            all.push(OwnCookie {
                name: String::new(),
                value: self.template("header", header, Escape::None)?,
                is_default: false,
            });
        }
        let own = |cookie: &&OwnCookie| all.iter().all(|own| own.name != cookie.name);
        let defaults: Vec<_> = self.cookies.iter().filter(own).cloned().collect();
        all.extend(defaults);
        Some(all)
    }

    /// Compiles all headers except `Cookie`.
    fn headers(&mut self, headers: &Table<At<Scalar>>) -> Option<Vec<(String, Template)>> {
        let mut compiled = Some(Vec::new());
        for (name, value) in headers
            .iter()
            .filter(|(name, _)| !name.value.eq_ignore_ascii_case("cookie"))
        {
            if let Some((message, help)) = header_problem(&name.value, &value.text()) {
                let noted = name.span.problem(message, "this header");
                self.problems.push(noted.help(help));
                compiled = None;
            }
            let template = self.template("header", value, Escape::None);
            if let Some(text) = template.as_ref().and_then(Template::as_literal)
                && http::HeaderValue::from_str(text).is_err()
            {
                let message = "a header's value is one line of visible characters";
                self.problems
                    .push(value.span.first_line().problem(message, "this value"));
            }
            match (&mut compiled, template) {
                (Some(list), Some(template)) => list.push((name.value.clone(), template)),
                (list, _) => *list = None,
            }
        }
        compiled
    }

    /// Compiles the body; returns its content type if it differs from the driver's default.
    fn body(&mut self, file: &RequestFile) -> Option<(Body, Option<String>)> {
        let given: Vec<(&str, &Span)> = [
            ("json", file.json.as_ref().map(|j| &j.span)),
            ("form", file.form.as_ref().map(|f| &f.span)),
            ("bytes", file.bytes.as_ref().map(|b| &b.span)),
            ("xml", file.xml.as_ref().map(|x| &x.span)),
            ("text", file.text.as_ref().map(|t| &t.span)),
            ("multipart", file.multipart.as_ref().map(|m| &m.span)),
            ("body", file.body.as_ref().map(|b| &b.span)),
        ]
        .into_iter()
        .filter_map(|(name, span)| span.map(|s| (name, s)))
        .collect();
        if let [(first, _), (second, span), ..] = given.as_slice() {
            let message = format!("a request has one body; here are `{first}` and `{second}`");
            self.problems
                .push(span.first_line().problem(message, "the second body"));
            return None;
        }
        if let Some(form) = &file.multipart {
            self.refuse_own_type(&file.headers)?;
            let (body, kind) = self.multipart(form)?;
            return Some((body, Some(kind)));
        }
        if let Some(content) = &file.body {
            let (body, kind) = self.content(&content.value)?;
            return Some((body, Some(kind)));
        }
        let kind = content_type(file).map(str::to_owned);
        self.text_body(file).map(|body| (body, kind))
    }

    /// Reports an explicit content type for a form with files: the type must contain the boundary.
    fn refuse_own_type(&mut self, headers: &Table<At<Scalar>>) -> Option<()> {
        let own = headers
            .iter()
            .find(|(name, _)| is_content_type(&name.value));
        let Some((name, _)) = own else {
            return Some(());
        };
        let message = "a form with files says its content type itself";
        self.problems.push(
            name.span
                .problem(message, "this header")
                .help("leave the header out"),
        );
        None
    }

    pub(super) fn text_body(&mut self, file: &RequestFile) -> Option<Body> {
        if let Some(json) = &file.json {
            return body::json(json, self.symbols(), self.problems).map(Body::Json);
        }
        if let Some(form) = &file.form {
            return self.form(&form.value).map(Body::Form);
        }
        if let Some(xml) = &file.xml {
            return self.template("xml", xml, Escape::Xml).map(Body::Text);
        }
        if let Some(bytes) = &file.bytes {
            let size = self.setting("bytes", bytes, |text| {
                units::size(text, MAX_RENDERED_BYTES as u64)
            })?;
            let text = format!("{{{{ text_of_size({size}) }}}}");
            let parsed = Template::parse_with(&text, self.symbols(), Escape::None);
            return self
                .note("bytes", &bytes.span, &text, parsed)
                .map(Body::Text);
        }
        match &file.text {
            Some(text) => self.template("text", text, Escape::None).map(Body::Text),
            None => Some(Body::Empty),
        }
    }

    fn form(&mut self, form: &Table<At<Scalar>>) -> Option<Vec<(String, Template)>> {
        let mut compiled = Some(Vec::new());
        for (name, value) in form.iter() {
            let mut encoded = name.value.clone();
            Escape::Form.apply(&mut encoded, 0);
            match (&mut compiled, self.template("form", value, Escape::Form)) {
                (Some(list), Some(template)) => list.push((encoded, template)),
                (list, _) => *list = None,
            }
        }
        compiled
    }

    pub(super) fn statuses(
        &mut self,
        file: &RequestFile,
    ) -> Option<Vec<std::ops::RangeInclusive<u16>>> {
        let expect = match &file.expect {
            Some(ExpectFile::Status(statuses)) => Some(statuses),
            Some(ExpectFile::Answer(answer)) => answer.status.as_ref(),
            None => None,
        };
        let Some(expect) = expect else {
            return Some(vec![200..=299]);
        };
        let parse = |status: &At<Scalar>| {
            let text = status.text();
            let parsed = units::statuses(&text);
            self.note("expect", &status.span, &text, parsed)
        };
        let ranges: Vec<_> = expect.as_slice().iter().map(parse).collect();
        let ranges: Option<Vec<_>> = ranges.into_iter().collect();
        // An empty list would reject every response, so it means the same as none.
        ranges.map(|r| if r.is_empty() { vec![200..=299] } else { r })
    }

    pub(super) fn captures(&mut self, captures: &Table<At<Scalar>>) -> Option<Vec<Capture>> {
        let mut compiled = Some(Vec::new());
        for (name, place) in captures.iter() {
            let text = place.text();
            let source = capture::source(&text, self.symbols());
            let source = self.note("capture", &place.span, &text, source);
            let slot = variable::slot(self.variables, &name.value);
            match (&mut compiled, slot, source) {
                (Some(list), Some(slot), Some(source)) => list.push(Capture {
                    variable: name.value.clone(),
                    slot,
                    source,
                }),
                (list, _, _) => *list = None,
            }
        }
        compiled
    }
}

fn is_content_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-type")
}

/// Returns the content type of bodies that are plain texts to the driver.
fn content_type(file: &RequestFile) -> Option<&'static str> {
    match (&file.bytes, &file.xml) {
        (Some(_), _) => Some("application/octet-stream"),
        (None, Some(_)) => Some("application/xml; charset=utf-8"),
        (None, None) => None,
    }
}

/// Returns true if a target has a space or control character outside of its `{{ … }}` and `{% … %}`.
#[must_use]
pub fn has_gap(target: &str) -> bool {
    let mut rest = target;
    loop {
        let code = ["{{", "{%", "{#"]
            .iter()
            .filter_map(|open| rest.find(open))
            .min();
        let (outside, inside) = rest.split_at(code.unwrap_or(rest.len()));
        if outside.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return true;
        }
        let end = match inside.as_bytes().get(1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(_) => "#}",
            None => return false,
        };
        match inside.split_once(end) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests;
