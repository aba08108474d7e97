//! Prepares a system before the load: provisions a trial's users and fills the initial state, by the requests and
//! commands of the study.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lab_archive::PreparationCause;
use lab_machine::http::{ANSWER, Ask, Client};
use lab_study::{Action, ActionRequest, BasicAuth, EACH, Piece, Preparation};
use lab_workload::template::{Escape, Symbols};
use lab_workload::{JsonPath, Parameters, Template, User, UserScope, Workload};

use crate::ConductError;
use crate::start::UserExtra;
use crate::stop::Stop;

/// Length of a response's start in a failure message.
const SHOWN: usize = 200;
/// Values that a trial fills in, in requests.
const FILLED_IN: [&str; 3] = ["port", "scratch", "secret"];

/// The users of a trial and the values for requests about them.
#[derive(Debug)]
pub(crate) struct Users<'a> {
    /// Those of each population, in their order.
    pub(crate) groups: Vec<Group<'a>>,
    /// Levels, parameters, and the preparation's own values.
    pub(crate) constants: Parameters,
    /// Values that the trial fills in, by name: port, scratch folder, secret.
    pub(crate) filled_in: [String; 3],
}

/// Users with the same workload.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) workload: &'a Workload,
    /// The first of them.
    pub(crate) first: User,
}

/// Sends requests and runs commands.
pub(crate) struct Preparing<'a> {
    pub(crate) users: &'a Users<'a>,
    pub(crate) client: Client,
    /// Runs the command at an index of the preparation to its end.
    pub(crate) run: &'a mut dyn FnMut(usize) -> Result<(), Stop>,
    /// The path of the list of users for a command.
    pub(crate) users_file: &'a Path,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Users<'_> {
    /// Number of users.
    fn count(&self) -> usize {
        self.groups
            .iter()
            .map(|group| group.first.users as usize)
            .sum()
    }

    /// A hash of the users' variables before any request: other values lead to another state.
    pub(crate) fn hash(&self) -> Result<String, String> {
        let mut words = String::new();
        for group in &self.groups {
            for index in 0..group.first.users {
                let scope = group.scope(group.workload, index, &[])?;
                for (name, _) in &group.workload.user {
                    words.push_str(&scope.get(name).unwrap_or_default());
                    words.push(' ');
                }
            }
        }
        Ok(blake3::hash(words.as_bytes()).to_hex().to_string())
    }
}

impl Group<'_> {
    /// The scope of a user, by its index in the group.
    fn scope(
        &self,
        workload: &Workload,
        index: u32,
        extra: &[(String, String)],
    ) -> Result<UserScope, String> {
        let user = User {
            index,
            ..self.first
        };
        let number = self.first.first.saturating_add(index);
        workload
            .scope(user, extra)
            .map_err(|error| workload.inputs.mask(&error.to_string()))
            .map_err(|error| format!("the variables of user {number} can't be made: {error}"))
    }

    /// The workload, whose users have the variables of the preparation too.
    fn extended(&self) -> Workload {
        let mut workload = self.workload.clone();
        let own = workload.variables.iter().cloned();
        let added = FILLED_IN.into_iter().chain([EACH]).map(str::to_owned);
        workload.variables = own.chain(added).collect::<Vec<_>>().into();
        workload
    }

    fn extra(&self, filled_in: &[String; 3], own: &[(String, String)]) -> Vec<(String, String)> {
        let names = FILLED_IN.iter().map(|name| (*name).to_owned());
        let filled = names.zip(filled_in.iter().cloned());
        // A variable of the workload takes precedence over a value that a trial fills in.
        let free = filled.filter(|(name, _)| !self.workload.variables.contains(name));
        own.iter().cloned().chain(free).collect()
    }
}

impl Preparing<'_> {
    /// Runs the whole preparation, and returns the variables that the responses add to each user's own.
    pub(crate) fn prepare(&mut self, preparation: &Preparation) -> Result<UserExtra, Stop> {
        let mut extra = vec![Vec::new(); self.users.count()];
        let provisions = preparation.provision.len();
        for (at, action) in preparation.actions().enumerate() {
            let failed = match at < provisions {
                true => "users were not provisioned",
                false => "the state was not filled",
            };
            self.act((at, action), &mut extra)
                .map_err(|stop| match stop {
                    Stop::Preparation(problem, cause) => {
                        Stop::Preparation(format!("{failed}: {problem}"), cause)
                    }
                    stop => stop,
                })?;
        }
        Ok(match extra.iter().all(Vec::is_empty) {
            true => UserExtra::new(),
            false => extra,
        })
    }

    fn act(&mut self, (at, action): (usize, &Action), extra: &mut UserExtra) -> Result<(), Stop> {
        match action {
            Action::Request(request) => self.request(request, extra),
            Action::Command(_) => {
                write_users(self.users_file, self.users, extra)?;
                (self.run)(at)
            }
        }
    }

    fn request(&mut self, spec: &ActionRequest, extra: &mut UserExtra) -> Result<(), Stop> {
        let mut left = &mut extra[..];
        for group in &self.users.groups {
            let users;
            (users, left) = left.split_at_mut(left.len().min(group.first.users as usize));
            self.of_group(spec, group, users)?;
        }
        Ok(())
    }

    /// The requests for the users of a group: its variables have other indices than another's.
    fn of_group(
        &mut self,
        spec: &ActionRequest,
        group: &Group<'_>,
        users: &mut [Vec<(String, String)>],
    ) -> Result<(), Stop> {
        let workload = group.extended();
        let compiled =
            Compiled::of(spec, &workload.variables, &self.users.constants).map_err(in_study)?;
        for (number, users) in users.chunks_mut(compiled.users_per_request).enumerate() {
            let first = number * compiled.users_per_request;
            let sent = self.batch(&compiled, (group, &workload), first, users);
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            sent.map_err(|(problem, cause)| {
                let problem = format!("{} {}: {problem}", spec.method, spec.target);
                Stop::Preparation(problem, cause)
            })?;
        }
        Ok(())
    }

    /// One request, for the users of a group from `first` on.
    fn batch(
        &mut self,
        compiled: &Compiled<'_>,
        (group, workload): (&Group<'_>, &Workload),
        first: usize,
        users: &mut [Vec<(String, String)>],
    ) -> Result<(), (String, PreparationCause)> {
        let of_study = |problem: String| (problem, PreparationCause::Study);
        let of_system = |problem: String| (problem, PreparationCause::System);
        let mut scopes = Vec::with_capacity(users.len());
        for (at, own) in users.iter().enumerate() {
            let index = u32::try_from(first + at).unwrap_or(u32::MAX);
            let extra = group.extra(&self.users.filled_in, own);
            let scope = group.scope(workload, index, &extra);
            scopes.push(scope.map_err(of_study)?);
        }
        let (path, headers, body) = compiled.render(&mut scopes).map_err(of_study)?;
        let ask = Ask {
            method: &compiled.spec.method,
            path: &path,
            headers: &headers,
            body: body.as_bytes(),
            within: ANSWER,
        };
        let answer = self
            .client
            .exchange(&ask, self.interrupt)
            .map_err(|e| of_system(e.to_string()))?;
        let expected = |range: &std::ops::RangeInclusive<u16>| range.contains(&answer.status);
        if !compiled.spec.expect.iter().any(expected) {
            let text = String::from_utf8_lossy(&answer.body);
            let start: String = text.chars().take(SHOWN).collect();
            let problem = format!("status {} ({})", answer.status, start.trim());
            return Err(of_system(problem));
        }
        compiled.capture(&answer.body, users).map_err(of_system)
    }
}

/// A request whose templates are compiled.
struct Compiled<'a> {
    spec: &'a ActionRequest,
    users_per_request: usize,
    target: Template,
    headers: Vec<(String, Template)>,
    /// Name and password.
    basic_auth: Option<[Template; 2]>,
    body: Vec<Part>,
    each: Vec<Part>,
    captures: Vec<(&'a str, JsonPath)>,
}

enum Part {
    Template(Template),
    Each,
}

impl<'a> Compiled<'a> {
    fn of(
        spec: &'a ActionRequest,
        variables: &[String],
        constants: &Parameters,
    ) -> Result<Self, String> {
        let symbols = Symbols {
            parameters: constants,
            ..Symbols::new(variables)
        };
        let template = |text: &str, escape| {
            Template::parse_with(text, symbols, escape).map_err(|e| e.to_string())
        };
        let part = |piece: &Piece| {
            Ok::<_, String>(match piece {
                Piece::Literal(text) => Part::Template(Template::literal(text)),
                Piece::Text(text) => Part::Template(template(text, Escape::None)?),
                Piece::Json(text) => Part::Template(template(text, Escape::JsonValue)?),
                Piece::Each => Part::Each,
            })
        };
        let header = |(name, text): &(String, String)| {
            Ok::<_, String>((name.clone(), template(text, Escape::None)?))
        };
        let basic_auth = |basic: &BasicAuth| {
            let username = template(&basic.username, Escape::None)?;
            Ok::<_, String>([username, template(&basic.password, Escape::None)?])
        };
        let capture = |(name, path): &'a (String, String)| {
            let path = JsonPath::parse(path).map_err(|e| e.to_string())?;
            Ok::<_, String>((name.as_str(), path))
        };
        Ok(Self {
            spec,
            users_per_request: spec.users_per_request.max(1) as usize,
            target: template(&spec.target, Escape::None)?,
            headers: spec.headers.iter().map(header).collect::<Result<_, _>>()?,
            basic_auth: spec.basic_auth.as_ref().map(basic_auth).transpose()?,
            body: spec.body.iter().map(part).collect::<Result<_, _>>()?,
            each: spec.each.iter().map(part).collect::<Result<_, _>>()?,
            captures: spec.capture.iter().map(capture).collect::<Result<_, _>>()?,
        })
    }

    /// Path, headers, and body for these users; at least one.
    #[expect(clippy::type_complexity, reason = "what a request consists of")]
    fn render(
        &self,
        scopes: &mut [UserScope],
    ) -> Result<(String, Vec<(String, String)>, String), String> {
        let mut list = String::from("[");
        if !self.each.is_empty() {
            for (at, scope) in scopes.iter_mut().enumerate() {
                list.push_str(if at > 0 { "," } else { "" });
                write(&self.each, "", scope, &mut list)?;
            }
        }
        list.push(']');
        let Some(scope) = scopes.first_mut() else {
            return Err("there are no users".to_owned());
        };
        let path = text(&self.target, scope)?;
        if path.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(format!("`{path}` is not a path"));
        }
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            let value = text(template, scope)?;
            if value.contains(char::is_control) {
                return Err(format!("the header {name} is not one line"));
            }
            headers.push((name.clone(), value));
        }
        if let Some([username, password]) = &self.basic_auth {
            let pair = format!("{}:{}", text(username, scope)?, text(password, scope)?);
            let value = format!("Basic {}", STANDARD.encode(pair));
            headers.push(("Authorization".to_owned(), value));
        }
        let mut body = String::new();
        write(&self.body, &list, scope, &mut body)?;
        Ok((path, headers, body))
    }

    /// Adds the values of a response to these users.
    fn capture(&self, body: &[u8], users: &mut [Vec<(String, String)>]) -> Result<(), String> {
        if self.captures.is_empty() {
            return Ok(());
        }
        let answer: serde_json::Value = serde_json::from_slice(body)
            .map_err(|e| format!("an answer that makes no sense ({e})"))?;
        for (name, path) in &self.captures {
            let values = path.query(&answer).all();
            if values.len() != users.len() {
                let (found, asked) = (values.len(), users.len());
                return Err(format!(
                    "an answer with {found} values of {name} for {asked} users"
                ));
            }
            for (user, value) in users.iter_mut().zip(values) {
                let text = match value {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                user.retain(|(known, _)| known != name);
                user.push(((*name).to_owned(), text));
            }
        }
        Ok(())
    }
}

fn write(
    parts: &[Part],
    list: &str,
    scope: &mut UserScope,
    out: &mut String,
) -> Result<(), String> {
    for part in parts {
        match part {
            Part::Template(template) => {
                template.render(scope, out).map_err(|e| e.to_string())?;
            }
            Part::Each => out.push_str(list),
        }
    }
    Ok(())
}

fn text(template: &Template, scope: &mut UserScope) -> Result<String, String> {
    let mut out = String::new();
    template
        .render(scope, &mut out)
        .map_err(|e| e.to_string())?;
    Ok(out)
}

fn in_study(problem: String) -> Stop {
    Stop::Preparation(problem, PreparationCause::Study)
}

/// Writes a file with one JSON object for each user: its index and its variables. A failed write is a failure of the
/// lab, and no trial could continue.
fn write_users(path: &Path, users: &Users<'_>, extra: &UserExtra) -> Result<(), Stop> {
    let failed = |source| {
        Stop::Fatal(ConductError::Scratch {
            path: path.to_path_buf(),
            source,
        })
    };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    let groups = users.groups.iter();
    let each = groups.flat_map(|group| (0..group.first.users).map(move |index| (group, index)));
    for ((group, index), own) in each.zip(extra) {
        let line = user_line(group, index, own).map_err(in_study)?;
        file.write_all(&line).map_err(failed)?;
    }
    file.flush().map_err(failed)
}

fn user_line(group: &Group<'_>, index: u32, own: &[(String, String)]) -> Result<Vec<u8>, String> {
    let workload = group.workload;
    let scope = group.scope(workload, index, own)?;
    let mut object = serde_json::Map::new();
    object.insert("index".to_owned(), scope.index().into());
    let names = workload.user.iter().map(|(name, _)| name.as_str());
    let captured = own.iter().map(|(name, _)| name.as_str());
    for name in names.chain(captured) {
        let value = scope.get(name).unwrap_or_default();
        object.insert(name.to_owned(), value.into());
    }
    let mut line = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}
