//! Steps that only a part of the sessions does: shares, and choices by weight, flattened to a list
//! of steps that each know their part of a draw.

use lab_workload::Chance;

use super::request::Compiler;

use crate::file::{At, StepFile};
use crate::source::Span;
use crate::text_error::TextError;
use crate::units;

/// A step as written, and when it is done.
#[derive(Clone, Copy)]
pub(super) struct Flat<'f> {
    pub(super) file: &'f At<StepFile>,
    pub(super) chance: Option<Chance>,
    /// The group that it is in, where that has a condition or a loop.
    pub(super) group: Option<&'f At<StepFile>>,
}

/// All steps in order, those of choices among them; `None` when a problem was noted.
pub(super) fn flat<'f>(
    files: &'f [At<StepFile>],
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let mut steps = Some(Vec::new());
    let mut group = 0;
    for file in files {
        let found = match &file.value.one_of {
            Some(alternatives) => one_of(file, alternatives, &mut group, compiler),
            None => entry(file, &mut group, compiler),
        };
        match (&mut steps, found) {
            (Some(steps), Some(found)) => steps.extend(found),
            (steps, _) => *steps = None,
        }
    }
    steps
}

/// A step, or a group of them with a share.
fn entry<'f>(
    file: &'f At<StepFile>,
    group: &mut u32,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    if let Some(weight) = &file.value.weight {
        let help = "to do it in a part of the sessions, write `share: 30%`";
        return note(
            &weight.span,
            "a weight counts within `one_of`",
            help,
            compiler,
        );
    }
    let chance = match &file.value.share {
        None => None,
        Some(share) => {
            let to = compiler.setting("share", share, |text| units::fraction(text, 0.0..=1.0))?;
            *group += 1;
            Some(Chance {
                group: *group,
                from: 0.0,
                to,
            })
        }
    };
    members(file, chance, compiler)
}

/// The alternatives of a choice, each with its part of one draw.
fn one_of<'f>(
    file: &'f At<StepFile>,
    alternatives: &'f At<Vec<At<StepFile>>>,
    group: &mut u32,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let alone = StepFile {
        one_of: file.value.one_of.clone(),
        ..StepFile::default()
    };
    if file.value != alone {
        let help = "waits and requests belong to the steps in it";
        let place = file.span.first_line();
        return note(&place, "`one_of` stands alone", help, compiler);
    }
    if alternatives.value.is_empty() {
        let help = "list steps, each with a `weight`";
        return note(&alternatives.span, "`one_of` has no step", help, compiler);
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
    *group += 1;
    let mut steps = Vec::new();
    let mut before = 0.0;
    for (index, (step, weight)) in alternatives.value.iter().zip(&weights).enumerate() {
        if let Some(share) = &step.value.share {
            let help = "write `weight`, which is seen beside the other weights";
            return note(
                &share.span,
                "a step of `one_of` has no share",
                help,
                compiler,
            );
        }
        let from = before / total;
        before += weight;
        let last = index + 1 == weights.len();
        let chance = Chance {
            group: *group,
            from,
            to: if last { 1.0 } else { before / total },
        };
        steps.extend(members(step, Some(chance), compiler)?);
    }
    Some(steps)
}

/// The step itself, or those of its group.
fn members<'f>(
    file: &'f At<StepFile>,
    chance: Option<Chance>,
    compiler: &mut Compiler,
) -> Option<Vec<Flat<'f>>> {
    let Some(steps) = &file.value.steps else {
        let group = None;
        return Some(vec![Flat {
            file,
            chance,
            group,
        }]);
    };
    let alone = StepFile {
        when: file.value.when.clone(),
        until: file.value.until.clone(),
        at_most: file.value.at_most.clone(),
        steps: file.value.steps.clone(),
        weight: file.value.weight.clone(),
        share: file.value.share.clone(),
        ..StepFile::default()
    };
    if file.value != alone || steps.value.is_empty() {
        let help = "a group has `steps`, a `share` or `weight`, `when`, and `until` with `at_most`; the \
                    rest belongs to its steps";
        return note(&steps.span, "this is no group of steps", help, compiler);
    }
    for step in &steps.value {
        let step = &step.value;
        let nested = step.one_of.as_ref().map(|at| &at.span);
        let nested = nested.or(step.steps.as_ref().map(|at| &at.span));
        let nested = nested.or(step.share.as_ref().map(|at| &at.span));
        let nested = nested.or(step.weight.as_ref().map(|at| &at.span));
        if let Some(span) = nested {
            let help = "give each step of the session one share or weight";
            return note(span, "choices don't stand within groups", help, compiler);
        }
    }
    let group = Some(file).filter(|file| file.value.control().is_some());
    let member = |file| Flat {
        file,
        chance,
        group,
    };
    Some(steps.value.iter().map(member).collect())
}

/// All steps of a list, those of choices among them, whatever is wrong with them.
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

/// A number above 0.
fn weight(text: &str) -> Result<f64, TextError> {
    match text.trim().parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight <= 1e9 => Ok(weight),
        _ => {
            let message = format!("`{}` is not a weight", text.trim());
            Err(TextError::new(message, 0..text.len()).help("write a number above 0, such as `3`"))
        }
    }
}

/// Notes a share, a choice, or a condition where there is none.
pub(super) fn refuse(files: &[At<StepFile>], compiler: &mut Compiler) {
    for file in files {
        if let Some(tag) = file
            .value
            .tags
            .iter()
            .flat_map(|tags| tags.as_slice())
            .next()
        {
            let help = "tags are of the steps of the session, whose times are judged";
            note::<()>(&tag.span, "a setup has no tags", help, compiler);
        }
        let retry = file.value.retry.as_ref().map(|at| &at.span);
        if let Some(span) = file.value.control().or(retry) {
            let help = "all users do all of the setup, once";
            let message = "a setup has no conditions, loops, or retries";
            note::<()>(span, message, help, compiler);
        }
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
        note::<()>(span, "a setup has no choices", help, compiler);
    }
}

fn note<T>(span: &Span, message: &str, help: &str, compiler: &mut Compiler) -> Option<T> {
    let problem = span.first_line().problem(message, "here");
    compiler.problems.push(problem.help(help));
    None
}
