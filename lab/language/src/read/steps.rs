//! Steps of a setup or session: waits, repeats, variables, requests.

use std::collections::HashMap;

use lab_workload::template::Escape;
use lab_workload::{Group, Request, Slot, Step, TOKEN_STEP, Template, Transaction, Wait};

use super::choice::{self, Enclosing, Flat};
use super::control;
use super::names::{check_short_name, switch};
use super::parallel::{name_of, refuse_name, request_item};
use super::request::Compiler;
use super::variable;
use crate::error::Problems;
use crate::file::{RequestFile, RequestItem, StepFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, OneOrMany, Scalar, Table};

/// Maximum steps of a session or setup.
const MAX_STEPS: usize = 1_000;
/// Maximum requests of a step.
const MAX_REQUESTS: usize = 100;

/// Maximum tags of a step.
const MAX_TAGS: usize = 10;
/// Maximum rounds of a step.
const MAX_REPEAT: u64 = 1_000_000;

/// Steps with their values and the place of the whole.
type Steps = At<Vec<At<StepFile>>>;

/// Parts of a session: its steps, their groups, and their transactions.
pub(super) type Parts = (Vec<Step>, Vec<Group>, Vec<Transaction>);

/// Compiles the steps of a session: at least one, each with a unique name.
pub(super) fn session(files: &Steps, compiler: &mut Compiler) -> Option<Parts> {
    if files.value.is_empty() {
        let span = files.span.first_line();
        compiler
            .problems
            .push(span.problem("a session has at least one step", "an empty list"));
        return None;
    }
    let leaves = choice::leaves(&files.value);
    for (i, file) in leaves
        .iter()
        .enumerate()
        .filter(|(_, f)| f.value.step.is_none() && f.value.transaction.is_none())
    {
        let message = format!("the {} step of the session has no name", nth(i));
        let mut problem = file.span.first_line().problem(message, "this step");
        problem.help = Some("name it as reports are to show it: `step: Log in`".to_owned());
        compiler.problems.push(problem);
    }
    check_names(&leaves, compiler);
    for once in leaves.iter().filter_map(|file| file.value.once.as_ref()) {
        let place = once.span.first_line();
        let mut problem = place.problem("a session has no step for one user only", "here");
        problem.help = Some("`once` belongs to steps of the setup".to_owned());
        compiler.problems.push(problem);
    }
    let steps = choice::flat(&files.value, compiler)?;
    let groups = control::groups(&steps, compiler);
    let transactions = control::transactions(&steps, compiler);
    let steps = compile(&steps, "the session", compiler);
    Some((steps?, groups?, transactions?))
}

/// Compiles the steps of a setup, which all users run.
pub(super) fn setup(files: &[At<StepFile>], compiler: &mut Compiler) -> Option<Vec<Step>> {
    choice::refuse(files, compiler);
    let flat = |file| Flat {
        file,
        enclosing: Enclosing::default(),
        name: None,
    };
    let steps: Vec<Flat> = files.iter().map(flat).collect();
    compile(&steps, "the setup", compiler)
}

/// Reports names that can't be displayed, and duplicate names.
pub(super) fn check_names(steps: &[&At<StepFile>], compiler: &mut Compiler) {
    let mut first: HashMap<String, usize> = HashMap::new();
    let names = steps.iter().enumerate().flat_map(|(at, step)| {
        let own = step.value.step.iter();
        let names = own.chain(step.value.names_within());
        names.map(move |name| (at, name)).collect::<Vec<_>>()
    });
    for (at, name) in names {
        let text = name.text();
        if text.trim().is_empty() || text.len() > 200 || text.contains(['\n', '\r', '\t', '\0']) {
            let message = "a step's name is one line of 1 to 200 characters";
            let place = name.span.first_line();
            compiler.problems.push(place.problem(message, "this name"));
        } else if text == TOKEN_STEP && compiler.has_tokens() {
            let message =
                format!("`{TOKEN_STEP}` is the step as which token requests of `auth` count");
            compiler.refuse_here::<()>(&name.span, &message, "give this step another name");
        }
        if let Some(before) = first.insert(text.clone(), at) {
            let message = format!(
                "two steps are called `{text}`: the {} and the {}",
                nth(before),
                nth(at)
            );
            let mut problem = name.span.first_line().problem(message, "the second one");
            problem.help = Some("reports tell steps by their names: number them".to_owned());
            compiler.problems.push(problem);
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

/// Compiles steps; `of` names their owner in errors.
fn compile(files: &[Flat], of: &str, compiler: &mut Compiler) -> Option<Vec<Step>> {
    if let Some(first) = files.get(MAX_STEPS) {
        let message = format!("{of} has {} steps; {MAX_STEPS} are the most", files.len());
        let problem = first
            .file
            .span
            .first_line()
            .problem(message, "the first one too many");
        compiler.problems.push(problem);
        return None;
    }
    let mut compiled: Vec<Option<Step>> = Vec::with_capacity(files.len());
    let mut number = 0;
    for flat in files {
        let before = compiled.last().and_then(Option::as_ref);
        let step = match flat.name {
            Some(name) => before.map(|step| name_of(step, name)),
            None => {
                number += 1;
                step(flat, of, number - 1, compiler)
            }
        };
        compiled.push(step);
    }
    compiled.into_iter().collect()
}

fn step(flat: &Flat, of: &str, at: usize, compiler: &mut Compiler) -> Option<Step> {
    let place = flat.file.span.first_line();
    let file = &flat.file.value;
    let wait = match &file.wait {
        Some(wait) => {
            let variables = compiler.variables;
            compiler.setting("wait", wait, |text| {
                seconds(text, variables).unwrap_or_else(|| units::wait(text))
            })
        }
        None => Some(Wait::None),
    };
    let repeat = match &file.repeat {
        Some(repeat) => compiler.setting("repeat", repeat, |text| {
            units::whole_number(text, 1..=MAX_REPEAT)
        }),
        None => Some(1),
    };
    let once = switch(file.once.as_ref(), compiler.problems);
    let control = control::control(file, compiler);
    let retry = control::retry(file, compiler);
    let ends_session =
        control::ends_session(file.on_failure.as_ref(), compiler.ends_session, compiler);
    let sets = sets(&file.set, compiler);
    let queued = compiler.queued(file);
    let tags = tags(file.tags.as_ref(), compiler.problems);
    let which = format!("the {} step of {of}", nth(at));
    let unnamed = own_requests(file).all(|request| refuse_name(request, compiler.problems));
    let requests = requests(file, &which, &place, compiler);
    let (sets, mut requests) = (sets?, requests?);
    let parallel = compiler.parallel(file, &which, &mut requests);
    let measures = compiler.measures(file, &mut requests);
    if let Some(first) = requests.first_mut().filter(|_| !sets.is_empty()) {
        first.target = first.target.clone().setting(sets);
    }
    let name = match (&file.step, requests.first()) {
        (Some(name), _) => name.text().trim().to_owned(),
        (None, Some(first)) => first.line(),
        (None, None) => which,
    };
    let parallel = parallel?.filter(|_| unnamed);
    Some(Step {
        name,
        parallel,
        tags: tags?,
        wait: wait?,
        repeat: repeat? as u32,
        requests,
        chance: flat.enclosing.chance,
        once,
        control: control?.map(Box::new),
        retry: retry?,
        ends_session: ends_session?,
        measures: measures?,
        queued: queued?,
    })
}

/// Parses `seconds(pause)`: a wait given by a variable. `None` for other waits.
fn seconds(text: &str, variables: &[String]) -> Option<Result<Wait, TextError>> {
    let (_, name) = units::call(text.trim()).filter(|(name, _)| *name == "seconds")?;
    let name = name.trim();
    let slot = variable::slot(variables, name);
    let wait = slot.filter(|_| !name.is_empty());
    let wait = wait.map(|slot| Wait::Seconds(slot, 1.0));
    Some(wait.ok_or_else(|| {
        let message = format!("there is no variable `{name}`");
        TextError::new(message, units::whole(text))
            .help("a column of the rows, or a value that an earlier request captures, says how many seconds")
    }))
}

fn sets(table: &Table<At<Scalar>>, compiler: &mut Compiler) -> Option<Vec<(Slot, Template)>> {
    let mut compiled = Some(Vec::new());
    for (name, value) in table.iter() {
        let slot = variable::slot(compiler.variables, &name.value);
        let template =
            compiler.template(&format!("variable `{}`", name.value), value, Escape::None);
        match (&mut compiled, slot, template) {
            (Some(list), Some(slot), Some(template)) => list.push((slot, template)),
            (list, _, _) => *list = None,
        }
    }
    compiled
}

/// Returns the tags of a step; `None` if a problem was reported.
fn tags(file: Option<&OneOrMany>, problems: &mut Problems) -> Option<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    for at in file.iter().flat_map(|tags| tags.as_slice()) {
        check_short_name("tag", at, problems);
        let tag = at.text();
        if tags.len() == MAX_TAGS || tags.contains(&tag) {
            let message = format!("a step has each tag once, and {MAX_TAGS} at most");
            problems.push(at.span.first_line().problem(message, "this one"));
            return None;
        }
        tags.push(tag);
    }
    Some(tags)
}

/// Compiles the requests of a step: its own, or those of its list.
fn requests(
    file: &StepFile,
    which: &str,
    place: &Span,
    compiler: &mut Compiler,
) -> Option<Vec<Request>> {
    let problem = match (&file.requests, &file.only.request) {
        (Some(list), _) if !file.only.is_empty() => {
            let message = format!("{which} has `requests` and parts of a single request");
            list.span.first_line().problem(message, "the list")
        }
        (Some(list), _) if list.value.is_empty() || list.value.len() > MAX_REQUESTS => {
            let message = format!("a step has 1 to {MAX_REQUESTS} requests");
            list.span.first_line().problem(message, "the list")
        }
        (Some(list), _) => {
            return compiler.listed(&file.only, |compiler| {
                let items = list.value.iter();
                let all: Vec<_> = items
                    .map(|item| request_item(item, which, compiler))
                    .collect();
                all.into_iter().collect()
            })?;
        }
        (None, Some(line)) => return compiler.request(line, &file.only).map(|r| vec![r]),
        (None, None)
            if file.only.has_no_line() || compiler.has_messages_without_line(&file.only) =>
        {
            return compiler.lineless(&file.only)?.map(|r| vec![r]);
        }
        (None, None) if file.parallel.is_some() && file.only.is_empty() => return Some(Vec::new()),
        (None, None) => place.problem(format!("{which} has no request"), "this step"),
    };
    compiler.problems.push(problem);
    None
}

/// Returns the step's sequential requests.
fn own_requests(file: &StepFile) -> impl Iterator<Item = &RequestFile> {
    let listed = file.requests.iter().flat_map(|list| &list.value);
    let listed = listed.filter_map(|item| match item {
        RequestItem::Full(request) => Some(&request.value),
        RequestItem::Line(_) => None,
    });
    std::iter::once(&file.only).chain(listed)
}
