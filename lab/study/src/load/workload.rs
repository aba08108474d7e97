//! A workload file judged: names, waits, templates, captures.

use std::collections::HashMap;
use std::time::Duration;

use super::check_short_name;
use super::request::Compiler;
use crate::error::Problems;
use crate::file::{At, ProbeFile, RequestFile, RequestItem, Scalar, StepFile, Table, WorkloadFile};
use crate::model::{Probe, Request, Session, Step, Wait, Workload};
use crate::scope::PASSWORD;
use crate::template::{Escape, Template};
use crate::units;

/// Most steps of a session or setup.
const MAX_STEPS: usize = 1_000;
/// Most requests of a step.
const MAX_REQUESTS: usize = 100;
/// Most variables; their places are 16-bit numbers, and users are many.
const MAX_VARIABLES: usize = 1_000;
/// Names that templates know without a workload's doing.
const RESERVED: &[&str] = &[
    "index", "users", "loop", "true", "false", "none", "range", "dict",
];

/// The validated workload; `None` when a problem was noted.
pub(super) fn validate(file: &WorkloadFile, problems: &mut Problems) -> Option<Workload> {
    check_short_name("workload", &file.workload, problems);
    let variables = variables(file, problems)?;
    let user = user(&file.user, &variables, problems);
    let mut compiler = Compiler {
        variables: &variables,
        problems,
    };
    let setup = steps(&file.setup, "the setup", &mut compiler);
    let pace = file
        .session
        .pace
        .as_ref()
        .map(|pace| duration("pace", pace, &mut compiler));
    let session = steps(&file.session.steps.value, "the session", &mut compiler);
    if file.session.steps.value.is_empty() {
        let span = file.session.steps.span.first_line();
        compiler
            .problems
            .push(span.problem("a session has at least one step", "an empty list"));
    }
    check_names(&file.session.steps.value, compiler.problems);
    check_names(&file.setup, compiler.problems);
    let probe = file.probe.as_ref().map(|p| probe(p, &mut compiler));
    Some(Workload {
        name: file.workload.text(),
        about: file
            .about
            .as_ref()
            .map_or_else(String::new, |a| a.text().trim().to_owned()),
        user: user?,
        setup: setup?,
        session: Session {
            pace: transposed(pace)?,
            steps: session?,
        },
        probe: transposed(probe)?,
        variables: variables.into(),
    })
}

/// Absent is fine, present and wrong is not.
fn transposed<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
        None => Some(None),
    }
}

/// All variables by slot: `password`, those of `user:`, then captures and `set:` in file order.
fn variables(file: &WorkloadFile, problems: &mut Problems) -> Option<Vec<String>> {
    let mut names = vec![PASSWORD.to_owned()];
    let mut good = true;
    let mut add = |name: &At<String>| {
        good &= check_variable(name, problems);
        if !names.contains(&name.value) {
            names.push(name.value.clone());
        }
    };
    file.user.iter().for_each(|(name, _)| add(name));
    for step in file.setup.iter().chain(&file.session.steps.value) {
        step.set.iter().for_each(|(name, _)| add(name));
        step.only.capture.iter().for_each(|(name, _)| add(name));
        for item in step.requests.iter().flat_map(|r| &r.value) {
            if let RequestItem::Full(request) = item {
                request.capture.iter().for_each(|(name, _)| add(name));
            }
        }
    }
    if let Some(probe) = &file.probe {
        for (name, _) in probe.only.capture.iter() {
            let message = "a probe captures nothing: it would change user 0's session";
            problems.push(name.span.problem(message, "this capture"));
            good = false;
        }
    }
    if names.len() > MAX_VARIABLES {
        let message = format!("a workload has at most {MAX_VARIABLES} variables");
        problems.push(file.workload.span.problem(message, "in this workload"));
        good = false;
    }
    good.then_some(names)
}

fn check_variable(name: &At<String>, problems: &mut Problems) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = name.value.as_str();
    let is_word = text.chars().all(word) && text.starts_with(|c: char| !c.is_ascii_digit());
    let message = if RESERVED.contains(&text) {
        format!("`{text}` has a meaning of its own and can't be a variable")
    } else if text.is_empty() || !is_word || text.len() > 64 {
        format!("`{text}` can't be the name of a variable")
    } else {
        return true;
    };
    let mut problem = name.span.problem(message, "this name");
    problem.help = Some("use letters, digits, and underscores, such as `event_href`".to_owned());
    problems.push(problem);
    false
}

/// `user:` variables see those before them.
fn user(
    table: &Table<At<Scalar>>,
    variables: &[String],
    problems: &mut Problems,
) -> Option<Vec<(String, Template)>> {
    let mut compiled = Some(Vec::new());
    for (i, (name, value)) in table.iter().enumerate() {
        let known = known_before(table, i, variables);
        let mut compiler = Compiler {
            variables: &known,
            problems,
        };
        let what = format!("variable `{}`", name.value);
        match (&mut compiled, compiler.template(&what, value, Escape::None)) {
            (Some(list), Some(template)) => list.push((name.value.clone(), template)),
            (list, _) => *list = None,
        }
    }
    compiled
}

/// The variables with a value before the `count`-th of `user:` is worked out, at their slots.
fn known_before(table: &Table<At<Scalar>>, count: usize, variables: &[String]) -> Vec<String> {
    let earlier = |name: &String| table.iter().take(count).any(|(key, _)| key.value == *name);
    let own_password = table.iter().any(|(key, _)| key.value == PASSWORD);
    let known = |name: &String| earlier(name) || (name == PASSWORD && !own_password);
    // A name that no template can write keeps the slots of the others.
    variables
        .iter()
        .map(|n| if known(n) { n.clone() } else { String::new() })
        .collect()
}

fn check_names(steps: &[StepFile], problems: &mut Problems) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (at, name) in steps
        .iter()
        .enumerate()
        .filter_map(|(i, s)| Some((i, s.step.as_ref()?)))
    {
        let text = name.text();
        if text.trim().is_empty() || text.len() > 200 || text.contains(['\n', '\r', '\t', '\0']) {
            let message = "a step's name is one line of 1 to 200 characters";
            problems.push(name.span.first_line().problem(message, "this name"));
        }
        if let Some(before) = first.insert(text.clone(), at) {
            let message = format!(
                "two steps are called `{text}`: the {} and the {}",
                nth(before),
                nth(at)
            );
            let mut problem = name.span.first_line().problem(message, "the second one");
            problem.help = Some("reports tell steps by their names: number them".to_owned());
            problems.push(problem);
        }
    }
}

fn nth(at: usize) -> String {
    let n = at + 1;
    let ending = match (n % 10, n % 100) {
        (1, x) if x != 11 => "st",
        (2, x) if x != 12 => "nd",
        (3, x) if x != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

fn steps(files: &[StepFile], of: &str, compiler: &mut Compiler) -> Option<Vec<Step>> {
    if files.len() > MAX_STEPS {
        let message = format!("{of} has {} steps; {MAX_STEPS} are the most", files.len());
        let place = files[MAX_STEPS]
            .only
            .request
            .as_ref()
            .map(|r| r.span.first_line());
        let span = place.or_else(|| files[MAX_STEPS].step.as_ref().map(|s| s.span.first_line()));
        compiler.problems.push(match span {
            Some(span) => span.problem(message, "the first one too many"),
            None => crate::error::Problem::without_place("", message),
        });
        return None;
    }
    let compiled: Vec<Option<Step>> = files
        .iter()
        .enumerate()
        .map(|(i, file)| step(file, of, i, compiler))
        .collect();
    compiled.into_iter().collect()
}

fn step(file: &StepFile, of: &str, at: usize, compiler: &mut Compiler) -> Option<Step> {
    let wait = match &file.wait {
        Some(wait) => {
            let text = wait.text();
            compiler.note("wait", &wait.span, &text, units::wait(&text))
        }
        None => Some(Wait::None),
    };
    let repeat = match &file.repeat {
        Some(repeat) => {
            let text = repeat.text();
            compiler.note(
                "repeat",
                &repeat.span,
                &text,
                units::whole_number(&text, 1..=10_000),
            )
        }
        None => Some(1),
    };
    let sets = sets(&file.set, compiler);
    let requests = requests(file, of, at, compiler);
    let (sets, mut requests) = (sets?, requests?);
    if let Some(first) = requests.first_mut().filter(|_| !sets.is_empty()) {
        first.target = first.target.clone().setting(sets);
    }
    let name = match &file.step {
        Some(name) => name.text().trim().to_owned(),
        None => requests.first().map_or_else(String::new, |r| {
            format!("{} {}", r.method, r.target.source())
        }),
    };
    Some(Step {
        name,
        wait: wait?,
        repeat: repeat? as u32,
        requests,
    })
}

fn sets(
    table: &Table<At<Scalar>>,
    compiler: &mut Compiler,
) -> Option<Vec<(crate::Slot, Template)>> {
    let mut compiled = Some(Vec::new());
    for (name, value) in table.iter() {
        let slot = compiler.variables.iter().position(|v| *v == name.value);
        let template =
            compiler.template(&format!("variable `{}`", name.value), value, Escape::None);
        match (&mut compiled, slot, template) {
            (Some(list), Some(slot), Some(template)) => list.push((slot as crate::Slot, template)),
            (list, _, _) => *list = None,
        }
    }
    compiled
}

/// The requests of a step: its own, or those of its list.
fn requests(file: &StepFile, of: &str, at: usize, compiler: &mut Compiler) -> Option<Vec<Request>> {
    let place = || {
        let named = file
            .step
            .as_ref()
            .or(file.wait.as_ref())
            .map(|s| s.span.first_line());
        named.or_else(|| file.set.iter().next().map(|(key, _)| key.span.clone()))
    };
    let which = format!("the {} step of {of}", nth(at));
    let mut say = |message: String, span: Option<crate::source::Span>| {
        compiler.problems.push(match span {
            Some(span) => span.problem(message, "here"),
            None => crate::error::Problem::without_place("", message),
        });
    };
    match (&file.requests, &file.only.request) {
        (Some(list), _) if !file.only.is_empty() => {
            say(
                format!("{which} has `requests` and parts of a single request"),
                Some(list.span.first_line()),
            );
            None
        }
        (Some(list), _) if list.value.is_empty() || list.value.len() > MAX_REQUESTS => {
            say(
                format!("a step has 1 to {MAX_REQUESTS} requests"),
                Some(list.span.first_line()),
            );
            None
        }
        (Some(list), _) => {
            let all: Vec<_> = list
                .value
                .iter()
                .map(|item| request_item(item, &which, compiler))
                .collect();
            all.into_iter().collect()
        }
        (None, Some(line)) => compiler.request(line, &file.only).map(|r| vec![r]),
        (None, None) => {
            say(format!("{which} has no request"), place());
            None
        }
    }
}

fn request_item(item: &RequestItem, which: &str, compiler: &mut Compiler) -> Option<Request> {
    match item {
        RequestItem::Line(line) => compiler.request(line, &RequestFile::default()),
        RequestItem::Full(file) => match &file.request {
            Some(line) => compiler.request(line, file),
            None => {
                let message = format!("a request of {which} has no `request` line");
                compiler
                    .problems
                    .push(crate::error::Problem::without_place("", message));
                None
            }
        },
    }
}

fn probe(file: &ProbeFile, compiler: &mut Compiler) -> Option<Probe> {
    let every = duration("every", &file.every, compiler);
    match &file.only.request {
        Some(line) => {
            let request = compiler.request(line, &file.only);
            Some(Probe {
                request: request?,
                every: every?,
            })
        }
        None => {
            let message = "a probe needs the key `request`";
            compiler.problems.push(
                file.every
                    .span
                    .problem(message, "`request` is missing here"),
            );
            None
        }
    }
}

/// A duration that is not zero.
fn duration(what: &str, at: &At<Scalar>, compiler: &mut Compiler) -> Option<Duration> {
    let text = at.text();
    let parsed = units::duration(&text, units::MAX_WAIT).and_then(|d| match d.is_zero() {
        true => Err(crate::TextError::new("it is zero", 0..text.len())),
        false => Ok(d),
    });
    compiler.note(what, &at.span, &text, parsed)
}
