//! Steps that only some sessions run: shares, and weighted choices, flattened to a list of steps, each with its part of
//! a draw.

use lab_workload::{Chance, MAX_TRANSACTION_LEVELS, Round};

use super::request::Compiler;

use crate::file::StepFile;
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Scalar};

/// A step as written, and the conditions to run it.
#[derive(Clone)]
pub(super) struct Flat<'f> {
    pub(super) file: &'f At<StepFile>,
    pub(super) enclosing: Enclosing<'f>,
    /// Set if it only names some requests of the step before it.
    pub(super) name: Option<&'f At<Scalar>>,
}

/// The context of a step.
#[derive(Clone, Default)]
pub(super) struct Enclosing<'f> {
    pub(super) chance: Option<Chance>,
    /// The enclosing group, if that has a condition or a loop.
    pub(super) group: Option<&'f At<StepFile>>,
    /// The enclosing transactions, outer ones first, each with the [`Round`] that it spans.
    pub(super) transactions: Vec<(&'f At<StepFile>, Round)>,
}

impl Enclosing<'_> {
    /// Returns true if one draw or condition decides for all steps within.
    fn is_decided(&self) -> bool {
        self.chance.is_some() || self.group.is_some()
    }
}

/// Returns all steps in order, including those of choices; `None` if a problem was reported.
pub(super) fn flat<'f>(
    files: &'f [At<StepFile>],
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    entries(files, &Enclosing::default(), &mut 0, compiler)
}

/// Returns the steps of a list; `draws` is the number of draws so far.
fn entries<'f>(
    files: &'f [At<StepFile>],
    enclosing: &Enclosing<'f>,
    draws: &mut u32,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let mut steps = Some(Vec::new());
    for file in files {
        let found = match &file.value.one_of {
            Some(alternatives) => one_of((file, alternatives), enclosing, draws, compiler),
            None => entry(file, enclosing, draws, compiler),
        };
        match (&mut steps, found) {
            (Some(steps), Some(found)) => steps.extend(found),
            (steps, _) => *steps = None,
        }
    }
    steps
}

/// Returns the steps of a step or a group with a share.
fn entry<'f>(
    file: &'f At<StepFile>,
    enclosing: &Enclosing<'f>,
    draws: &mut u32,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let step = &file.value;
    let decides = step.share.as_ref().or(step.weight.as_ref());
    let decides = decides.map(|at| &at.span);
    let controlled = step.control().filter(|_| step.steps.is_some());
    if let Some(span) = decides.or(controlled).filter(|_| enclosing.is_decided()) {
        return nested(span, compiler);
    }
    if let Some(weight) = &step.weight {
        let help = "to do it in a part of the sessions, write `share: 30%`";
        return compiler.refuse_here(&weight.span, "a weight counts within `one_of`", help);
    }
    let mut enclosing = enclosing.clone();
    if let Some(share) = &step.share {
        let to = compiler.setting("share", share, |text| units::fraction(text, 0.0..=1.0))?;
        *draws += 1;
        enclosing.chance = Some(Chance {
            group: *draws,
            from: 0.0,
            to,
        });
    }
    members(file, enclosing, draws, compiler)
}

/// Returns the alternatives of a choice, each with its part of one draw.
fn one_of<'f>(
    (file, alternatives): (&'f At<StepFile>, &'f At<Vec<At<StepFile>>>),
    enclosing: &Enclosing<'f>,
    draws: &mut u32,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let alone = StepFile {
        one_of: file.value.one_of.clone(),
        ..StepFile::default()
    };
    if file.value != alone {
        let help = "waits and requests belong to the steps in it";
        let place = file.span.first_line();
        return compiler.refuse_here(&place, "`one_of` stands alone", help);
    }
    if enclosing.is_decided() {
        return nested(&alternatives.span, compiler);
    }
    if alternatives.value.is_empty() {
        let help = "list steps, each with a `weight`";
        return compiler.refuse_here(&alternatives.span, "`one_of` has no step", help);
    }
    let weights: Vec<Option<f64>> = alternatives
        .value
        .iter()
        .map(|step| match &step.value.weight {
            Some(at) => compiler.setting("weight", at, weight),
            None => Some(1.0),
        })
        .collect();
    let weights: Vec<f64> = weights.into_iter().collect::<Option<_>>()?;
    let total: f64 = weights.iter().sum();
    *draws += 1;
    let group = *draws;
    let mut steps = Vec::new();
    let mut before = 0.0;
    for (index, (step, weight)) in alternatives.value.iter().zip(&weights).enumerate() {
        if let Some(share) = &step.value.share {
            let help = "write `weight`, which is seen beside the other weights";
            return compiler.refuse_here(&share.span, "a step of `one_of` has no share", help);
        }
        let from = before / total;
        before += weight;
        let last = index + 1 == weights.len();
        let enclosing = Enclosing {
            chance: Some(Chance {
                group,
                from,
                to: if last { 1.0 } else { before / total },
            }),
            ..enclosing.clone()
        };
        steps.extend(members(step, enclosing, draws, compiler)?);
    }
    Some(steps)
}

/// Returns the step itself, or those of its group or transaction.
fn members<'f>(
    file: &'f At<StepFile>,
    mut enclosing: Enclosing<'f>,
    draws: &mut u32,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let Some(steps) = &file.value.steps else {
        if let Some(name) = &file.value.transaction {
            let help = "list them: `steps: [{ step: Cart, request: GET /cart }]`";
            return compiler.refuse_here(&name.span, "a transaction has `steps`", help);
        }
        let names = file.value.names_within().into_iter().map(Some);
        let flat = std::iter::once(None).chain(names).map(|name| Flat {
            file,
            enclosing: enclosing.clone(),
            name,
        });
        return Some(flat.collect());
    };
    let alone = StepFile {
        transaction: file.value.transaction.clone(),
        when: file.value.when.clone(),
        until: file.value.until.clone(),
        at_most: file.value.at_most.clone(),
        steps: file.value.steps.clone(),
        weight: file.value.weight.clone(),
        share: file.value.share.clone(),
        ..StepFile::default()
    };
    if file.value != alone || steps.value.is_empty() {
        let help = "a group has `steps`, perhaps the name of a `transaction`, a `share` or `weight`, `when`, and \
                    `until` with `at_most`; the rest belongs to its steps";
        return compiler.refuse_here(&steps.span, "this is no group of steps", help);
    }
    if file.value.control().is_some() {
        enclosing.group = Some(file);
    }
    if let Some(name) = &file.value.transaction {
        if enclosing.transactions.len() == MAX_TRANSACTION_LEVELS {
            let message = format!("transactions stand {MAX_TRANSACTION_LEVELS} deep at most");
            return compiler.refuse_here(&name.span, &message, "leave one of them out");
        }
        let each = match enclosing.group {
            Some(_) => Round::Group,
            None => Round::Session,
        };
        enclosing.transactions.push((file, each));
    }
    entries(&steps.value, &enclosing, draws, compiler)
}

fn nested<T>(span: &Span, compiler: &mut Compiler) -> Option<T> {
    let help = "give each step of the session one share, weight, or condition of a group";
    compiler.refuse_here(span, "choices don't stand within groups", help)
}

/// Returns all steps of a list, including those of choices, whatever their errors.
pub(super) fn leaves(files: &[At<StepFile>]) -> Vec<&At<StepFile>> {
    let mut found = Vec::new();
    let mut waiting: Vec<&At<StepFile>> = files.iter().rev().collect();
    while let Some(file) = waiting.pop() {
        let inner = file.value.one_of.as_ref().or(file.value.steps.as_ref());
        match inner {
            Some(inner) => waiting.extend(inner.value.iter().rev()),
            None => found.push(file),
        }
    }
    found
}

/// Parses a number above 0.
fn weight(text: &str) -> Result<f64, TextError> {
    match text.trim().parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight <= 1e9 => Ok(weight),
        _ => {
            let message = format!("`{}` is not a weight", text.trim());
            Err(TextError::new(message, 0..text.len()).help("write a number above 0, such as `3`"))
        }
    }
}

/// Reports a share, a choice, or a condition where none is allowed.
pub(super) fn refuse(files: &[At<StepFile>], compiler: &mut Compiler) {
    for file in files {
        super::shared::refuse(&file.value, compiler);
        if let Some(tag) = file
            .value
            .tags
            .iter()
            .flat_map(|tags| tags.as_slice())
            .next()
        {
            let help = "tags are of the steps of the session, whose times are judged";
            compiler.refuse_here::<()>(&tag.span, "a setup has no tags", help);
        }
        if let Some(parallel) = &file.value.parallel {
            let help = "its requests go out one after the other: list them as `requests`";
            compiler.refuse_here::<()>(&parallel.span, "a setup has no parallel requests", help);
        }
        let retry = file.value.retry.as_ref().map(|at| &at.span);
        let on_failure = file.value.on_failure.as_ref().map(|at| &at.span);
        if let Some(span) = file.value.control().or(retry).or(on_failure) {
            let help = "all users do all of the setup, once";
            let message = "a setup has no conditions, loops, retries, or reactions to failures";
            compiler.refuse_here::<()>(span, message, help);
        }
    }
    for name in files
        .iter()
        .filter_map(|file| file.value.transaction.as_ref())
    {
        let help = "transactions are of the steps of the session, whose times are judged";
        compiler.refuse_here::<()>(&name.span, "a setup has no transactions", help);
    }
    let spans = files.iter().filter_map(|file| {
        let step = &file.value;
        let span = step.one_of.as_ref().map(|at| &at.span);
        let span = span.or(step.share.as_ref().map(|at| &at.span));
        let span = span.or(step.weight.as_ref().map(|at| &at.span));
        span.or(step.steps.as_ref().map(|at| &at.span))
    });
    let spans: Vec<&Span> = spans.collect();
    for span in spans {
        let help = "all users do all of the setup";
        compiler.refuse_here::<()>(span, "a setup has no choices", help);
    }
}
