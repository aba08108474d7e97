//! The session that a script plays, as steps and measures of a workload: its call sites count its requests.

use std::collections::BTreeMap;

use lab_script::{Program, Site, SiteKind};
use lab_workload::{
    ALL_CHECKS_MEASURE, CHECK_MEASURE, MAX_SCRIPT_MEASURES, MAX_SCRIPT_NAMES, Measure, MetricKind,
    OTHER_STEP, Request, Round, SCRIPT_STEP, SESSION, ScriptLimits, ScriptSource, Scripted,
    Session, Step, Template, Transaction, Visitor,
};

use crate::names::{checks, metrics};

/// Most redirects that its requests follow.
const FOLLOWED: u32 = 10;
/// Longest name of a step.
const MAX_NAME: usize = 100;

/// Returns the session of a function: a step for each name of requests, and one for the script itself.
#[must_use]
pub fn session_of(program: &Program, function: &str) -> (Session, Scripted) {
    let (mut names, of_sites) = named_sites(program);
    let by_name = (0..).zip(&names).map(|(at, name)| (name.clone(), at));
    let by_name = by_name.collect();
    names.push(OTHER_STEP.to_owned());
    let mut steps: Vec<Step> = names.iter().map(|name| step(name)).collect();
    let (checks, metrics, measures) = measures(program);
    steps.push(Step {
        measures,
        ..Step::of(SCRIPT_STEP, Vec::new())
    });
    let session = Session {
        pace: None,
        transactions: transactions(program, steps.len()),
        steps,
        groups: Vec::new(),
        visitor: Visitor::Same,
    };
    let sources = program.sources().iter().map(|source| ScriptSource {
        name: source.name.clone(),
        content: source.text.clone(),
    });
    let scripted = Scripted {
        sources: sources.collect(),
        function: function.to_owned(),
        exports: program.functions().to_vec(),
        data: None,
        steps: of_sites,
        names: by_name,
        checks,
        metrics,
        speed: 1.0,
        limits: ScriptLimits::default(),
    };
    (session, scripted)
}

/// Returns the names of requests, and the step of each call site.
fn named_sites(program: &Program) -> (Vec<String>, Vec<u32>) {
    let mut names: Vec<String> = Vec::new();
    let mut place = |name: &str| -> u32 {
        let name = shown(name);
        let known = names.iter().position(|known| *known == name);
        let at = known.unwrap_or_else(|| {
            if names.len() < MAX_SCRIPT_NAMES && !name.is_empty() {
                names.push(name);
                names.len() - 1
            } else {
                usize::MAX
            }
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    };
    let sites = program.sites().iter();
    let mut of_sites: Vec<u32> = sites
        .map(|site| match site.kind {
            SiteKind::Request | SiteKind::Batch => place(&name_of(site)),
            _ => u32::MAX,
        })
        .collect();
    for name in program.tag_names() {
        place(name);
    }
    let other = names.len() as u32;
    for step in &mut of_sites {
        *step = (*step).min(other);
    }
    (names, of_sites)
}

/// Returns the name of a call site: its own, or its place if the script computes the address.
fn name_of(site: &Site) -> String {
    let what = match site.kind {
        SiteKind::Batch => "batch",
        _ => "request",
    };
    match site.name.as_str() {
        "" => format!("{what} at {}:{}", site.file, site.line),
        name => name.to_owned(),
    }
}

/// Returns a name that reports can show.
fn shown(name: &str) -> String {
    let line: String = name.chars().filter(|c| !c.is_control()).collect();
    line.trim().chars().take(MAX_NAME).collect()
}

/// Returns the step that counts the requests of a name. Its request is never rendered.
fn step(name: &str) -> Step {
    let (method, target) = name.split_once(' ').unwrap_or(("GET", name));
    let is_method = method.bytes().all(|b| b.is_ascii_uppercase());
    let target = if is_method { target } else { name };
    Step::of(
        name,
        vec![Request {
            method: if is_method { method } else { "GET" }.to_owned(),
            expect: vec![200..=399],
            follow: FOLLOWED,
            ..Request::get(Template::literal(target))
        }],
    )
}

/// Returns the transactions of the groups, each by its name.
fn transactions(program: &Program, steps: usize) -> Vec<Transaction> {
    let mut names: Vec<String> = Vec::new();
    for site in program.sites() {
        let own = (site.kind == SiteKind::Group).then_some(&site.name);
        for name in site.group.iter().chain(own) {
            let is_new = !names.contains(name) && name != SESSION;
            if is_new && !name.trim().is_empty() && shown(name) == *name {
                names.push(name.clone());
            }
        }
    }
    let transaction = |name| Transaction {
        name,
        steps: 0..steps,
        each: Round::Session,
    };
    names.into_iter().map(transaction).collect()
}

type Places = BTreeMap<String, u32>;

/// Returns the kind of each metric, by the name of its measure.
#[must_use]
pub fn metric_kinds(program: &Program) -> BTreeMap<String, MetricKind> {
    let metrics = metrics(program).into_iter();
    metrics.map(|one| (shown(&one.name), one.kind)).collect()
}

/// Returns the measures of the script's step: all checks, each check, each metric.
fn measures(program: &Program) -> (Places, Places, Vec<Measure>) {
    let measure = |name: String, unit: &str| Measure {
        name,
        unit: unit.to_owned(),
        request: 0,
        slot: 0,
        value: None,
    };
    let mut measures = vec![measure(ALL_CHECKS_MEASURE.to_owned(), "")];
    let mut add = |name: String, unit: &str| {
        let place = measures.len() as u32;
        measures.push(measure(name, unit));
        place
    };
    let mut of_checks = Places::new();
    for name in checks(program).into_iter().take(MAX_SCRIPT_MEASURES / 2) {
        let place = add(format!("{CHECK_MEASURE}{}", shown(&name)), "");
        of_checks.insert(name, place);
    }
    let mut of_metrics = Places::new();
    let metrics = metrics(program).into_iter();
    for one in metrics.take(MAX_SCRIPT_MEASURES / 2 - 1) {
        let place = add(shown(&one.name), if one.is_time { "ms" } else { "" });
        of_metrics.insert(one.name, place);
    }
    (of_checks, of_metrics, measures)
}
