//! The preparation of a system: its requests and commands, every name in them judged.

use lab_language::settings::Settings;
use lab_language::{
    TextError, has_gap, header_problem, method_problem, parsed, units, unknown_name,
};
use lab_workload::JsonPath;
use lab_workload::Template;
use lab_workload::template::{Escape, Symbols};

use super::argv::argv;
use crate::file::{ActionFile, At, Json, KeepFile, Scalar};
use crate::preparation::{
    ActionRequest, ActionTemplate, BasicAuth, EACH, Piece, PreparationTemplate, RequestTemplate,
    USERS_FILE_NAME,
};

/// The seed of the plan, which requests may name.
const SEED: &str = "seed";

/// A preparation, as written.
pub(super) struct Written<'a> {
    pub(super) provision: &'a [ActionFile],
    pub(super) fill: &'a [ActionFile],
    pub(super) keep: Option<&'a KeepFile>,
    pub(super) disk_per_user: Option<&'a At<Scalar>>,
}

/// The preparation; `None` when a problem was noted. `variables` are those of the workload's users.
pub(super) fn template(
    written: &Written<'_>,
    variables: &[String],
    settings: &mut Settings<'_>,
) -> Option<PreparationTemplate> {
    let provision = actions(written.provision, variables, settings);
    let fill = actions(written.fill, variables, settings);
    let folder = settings.optional("keep_state", written.keep.map(|keep| &keep.folder));
    let alike = settings.optional("alike", written.keep.and_then(|keep| keep.alike.as_ref()));
    let disk_per_user = settings.optional("disk_per_user", written.disk_per_user);
    Some(PreparationTemplate {
        provision: provision?,
        fill: fill?,
        folder: folder?,
        alike: alike?,
        disk_per_user: disk_per_user?,
    })
}

fn actions(
    files: &[ActionFile],
    variables: &[String],
    settings: &mut Settings<'_>,
) -> Option<Vec<ActionTemplate>> {
    let made: Vec<_> = files
        .iter()
        .map(|file| match &file.command {
            Some(words) => command(words, settings),
            None => Compiler::new(variables, settings).request(file),
        })
        .collect();
    made.into_iter().collect()
}

fn command(words: &At<Vec<At<Scalar>>>, settings: &mut Settings<'_>) -> Option<ActionTemplate> {
    let mut known = settings.known.to_vec();
    known.push(USERS_FILE_NAME.to_owned());
    let mut settings = Settings {
        known: &known,
        problems: &mut *settings.problems,
    };
    argv("command", words, &mut settings).map(ActionTemplate::Command)
}

/// Judges the texts of requests.
struct Compiler<'a, 's> {
    variables: &'a [String],
    /// The users' variables, and the names that a setting may use.
    known: Vec<String>,
    settings: &'a mut Settings<'s>,
}

impl<'a, 's> Compiler<'a, 's> {
    fn new(variables: &'a [String], settings: &'a mut Settings<'s>) -> Self {
        let mut known = variables.to_vec();
        known.extend_from_slice(settings.known);
        known.push(SEED.to_owned());
        Self {
            variables,
            known,
            settings,
        }
    }

    fn request(&mut self, file: &ActionFile) -> Option<ActionTemplate> {
        let (method, target) = self.line(file.request.as_ref()?)?;
        let mut headers = self.headers(file)?;
        let named = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
        if file.json.is_some() && !headers.iter().any(named) {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let basic_auth = self.basic_auth(file);
        let body = self.body(file);
        let each = match &file.each {
            Some(each) => self.json(&each.value),
            None => Some(Vec::new()),
        };
        let expect = self.expect(file);
        let capture = self.captures(file);
        let users = file.users_per_request.as_ref();
        let users_per_request = self.settings.optional("users_per_request", users)?;
        if let (Some(at), None) = (users, &file.each) {
            let problem = at
                .span
                .problem("a request for several users says what each is", "here");
            self.settings
                .problems
                .push(problem.help("add `each`, such as `each: { name: \"{{ name }}\" }`"));
            return None;
        }
        Some(ActionTemplate::Request(Box::new(RequestTemplate {
            request: ActionRequest {
                method,
                target,
                headers,
                basic_auth: basic_auth?,
                body: body?,
                each: each?,
                users_per_request: 1,
                expect: expect?,
                capture: capture?,
            },
            users_per_request,
        })))
    }

    fn line(&mut self, line: &At<Scalar>) -> Option<(String, String)> {
        let text = line.text();
        let (method, rest) = text.split_once(' ').unwrap_or((text.as_str(), ""));
        let target = rest.trim();
        let error = method_problem(method, rest).or_else(|| {
            let form = target.starts_with('/') || target.starts_with("{{");
            (!form || has_gap(target)).then(|| {
                TextError::new(format!("`{target}` is not a path"), 0..text.len())
                    .help("a path has no spaces, such as `POST /accounts/{{ name }}`")
            })
        });
        if let Some(error) = error {
            let problem = line.span.text_problem("request", &text, &error);
            self.settings.problems.push(problem);
            return None;
        }
        self.judged("request", line, &text, Escape::None)?;
        Some((method.to_owned(), target.to_owned()))
    }

    fn headers(&mut self, file: &ActionFile) -> Option<Vec<(String, String)>> {
        let mut headers = Vec::new();
        for (name, value) in file.headers.iter() {
            if let Some((message, help)) = header_problem(&name.value, &value.text()) {
                let noted = name.span.problem(message, "this header");
                self.settings.problems.push(noted.help(help));
                return None;
            }
            let text = self.judged("header", value, &value.text(), Escape::None)?;
            headers.push((name.value.clone(), text));
        }
        Some(headers)
    }

    fn basic_auth(&mut self, file: &ActionFile) -> Option<Option<BasicAuth>> {
        let Some(file) = &file.basic_auth else {
            return Some(None);
        };
        let mut part = |what, at: &At<Scalar>| self.judged(what, at, &at.text(), Escape::None);
        let username = part("username", &file.username);
        let password = part("password", &file.password);
        Some(Some(BasicAuth {
            username: username?,
            password: password?,
        }))
    }

    fn body(&mut self, file: &ActionFile) -> Option<Vec<Piece>> {
        match (&file.json, &file.text) {
            (Some(json), None) => self.json(&json.value),
            (None, Some(text)) => {
                let text = self.judged("text", text, &text.text(), Escape::None)?;
                Some(vec![Piece::Text(text)])
            }
            (None, None) => Some(Vec::new()),
            (Some(_), Some(text)) => {
                let message = "a request has one body; here are `json` and `text`";
                let problem = text.span.first_line().problem(message, "the second body");
                self.settings.problems.push(problem);
                None
            }
        }
    }

    fn json(&mut self, json: &Json) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        self.write(json, &mut pieces)?;
        Some(pieces)
    }

    /// Appends the pieces of a value. Depth is bounded by the reader of the file.
    fn write(&mut self, json: &Json, out: &mut Vec<Piece>) -> Option<()> {
        match json {
            Json::Null => literal("null", out),
            Json::Scalar(at) => match &at.value {
                Scalar::Text(text) if is_each(text) => out.push(Piece::Each),
                Scalar::Text(text) if text.contains('{') => {
                    let text = self.judged("in the JSON body", at, text, Escape::JsonValue)?;
                    out.push(Piece::Json(text));
                }
                Scalar::Text(text) => literal(&quoted(text), out),
                _ => literal(&at.text(), out),
            },
            Json::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    literal(if i > 0 { "," } else { "[" }, out);
                    self.write(item, out)?;
                }
                literal(if items.is_empty() { "[]" } else { "]" }, out);
            }
            Json::Table(table) => {
                literal("{", out);
                for (i, (key, value)) in table.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    literal(&format!("{comma}{}:", quoted(&key.value)), out);
                    self.write(value, out)?;
                }
                literal("}", out);
            }
        }
        Some(())
    }

    fn expect(&mut self, file: &ActionFile) -> Option<Vec<std::ops::RangeInclusive<u16>>> {
        let (mut ranges, problems) = (Vec::new(), &mut *self.settings.problems);
        for status in file.expect.iter().flat_map(|expect| expect.as_slice()) {
            ranges.push(parsed(status, "expect", units::statuses, problems)?);
        }
        if ranges.is_empty() {
            ranges.push(200..=299);
        }
        Some(ranges)
    }

    fn captures(&mut self, file: &ActionFile) -> Option<Vec<(String, String)>> {
        let mut captures = Vec::new();
        for (name, path) in file.capture.iter() {
            if !self.variables.contains(&name.value) {
                let names: Vec<&str> = self.variables.iter().map(String::as_str).collect();
                let (message, help) = unknown_name("variable", &name.value, &names);
                let problem = name.span.problem(message, "no variable of the workload");
                self.settings.problems.push(problem.help(help));
                return None;
            }
            let read = |text: &str| match JsonPath::parse(text) {
                Ok(_) => Ok(text.to_owned()),
                Err(error) => Err(TextError::new(error.to_string(), 0..text.len())
                    .help("write a JSON path, such as `$.users[*].password`")),
            };
            let path = parsed(path, "capture", read, self.settings.problems)?;
            captures.push((name.value.clone(), path));
        }
        Some(captures)
    }

    /// The text, if it is a template of known names.
    fn judged(
        &mut self,
        what: &str,
        at: &At<Scalar>,
        text: &str,
        escape: Escape,
    ) -> Option<String> {
        let symbols = Symbols::new(&self.known);
        match Template::parse_with(text, symbols, escape) {
            Ok(_) => Some(text.to_owned()),
            Err(error) => {
                let problem = at.span.text_problem(what, text, &error.into());
                self.settings.problems.push(problem);
                None
            }
        }
    }
}

fn is_each(text: &str) -> bool {
    let inside = text.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
    inside.is_some_and(|name| name.trim() == EACH)
}

fn literal(text: &str, out: &mut Vec<Piece>) {
    match out.last_mut() {
        Some(Piece::Literal(before)) => before.push_str(text),
        _ => out.push(Piece::Literal(text.to_owned())),
    }
}

fn quoted(text: &str) -> String {
    let mut out = text.to_owned();
    Escape::JsonValue.apply(&mut out, 0);
    out
}
