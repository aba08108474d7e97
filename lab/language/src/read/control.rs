//! Parts of a session that depend on responses: `when`, `until`, `retry`, `visitor`.

use std::ops::Range;

use lab_workload::{
    Control, Group, Retry, Round, SESSION, Template, Transaction, Until, Visitor, Wait,
};

use super::choice::Flat;
use super::request::Compiler;

use crate::file::{RetryFile, StepFile};
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, Scalar};

/// Maximum rounds of a loop.
const MAX_ROUNDS: u64 = 100_000;
/// Maximum retries of a request.
const MAX_RETRIES: u64 = 1_000;

/// Returns the control of a step or group; the inner `None` if it has none.
pub(super) fn control(file: &StepFile, compiler: &mut Compiler) -> Option<Option<Control>> {
    if file.control().is_none() {
        return Some(None);
    }
    let when = match &file.when {
        Some(when) => compiler.condition("when", when).map(Some),
        None => Some(None),
    };
    let until = match (&file.until, &file.at_most) {
        (None, None) => Some(None),
        (Some(until), Some(at_most)) => until_bound(until, at_most, compiler).map(Some),
        (Some(until), None) => {
            let help = "say how often it may be done: `at_most: 100`";
            compiler.refuse_here(&until.span, "a loop needs a bound", help)
        }
        (None, Some(at_most)) => {
            let help = "to do a step a number of times, write `repeat: 5`; a loop has `until`, too";
            compiler.refuse_here(&at_most.span, "`at_most` is the bound of a loop", help)
        }
    };
    if let (Some(repeat), Some(_)) = (&file.repeat, &file.until) {
        let help = "`at_most` bounds the loop: leave `repeat` out";
        return compiler.refuse_here(&repeat.span, "a step has `repeat` or `until`", help);
    }
    Some(Some(Control {
        when: when?,
        until: until?,
    }))
}

fn until_bound(until: &At<Scalar>, at_most: &At<Scalar>, compiler: &mut Compiler) -> Option<Until> {
    let condition = compiler.condition("until", until);
    let at_most = compiler.setting("at_most", at_most, |text| {
        units::whole_number(text, 1..=MAX_ROUNDS)
    });
    Some(Until {
        condition: condition?,
        at_most: at_most? as u32,
    })
}

/// Returns the retry setting of a step; the inner `None` if it has none.
pub(super) fn retry(file: &StepFile, compiler: &mut Compiler) -> Option<Option<Retry>> {
    let Some(retry) = &file.retry else {
        return Some(None);
    };
    let (at_most, full) = match &retry.value {
        RetryFile::Times(times) => (times, None),
        RetryFile::Full(full) => (&full.at_most, Some(full)),
    };
    let at_most = compiler.setting("retry", at_most, |text| {
        units::whole_number(text, 1..=MAX_RETRIES)
    });
    let Some(full) = full else {
        return Some(Some(Retry::new(at_most? as u32, Wait::None)));
    };
    let wait = match &full.wait {
        Some(wait) => compiler.setting("wait", wait, units::wait),
        None => Some(Wait::None),
    };
    let multiplier = full.multiplier.as_ref();
    let multiplier = multiplier.map_or(Some(1.0), |at| compiler.setting("multiplier", at, growth));
    let max_wait = compiler.optional("max_wait", &full.max_wait, units::timeout);
    let retry_after = full.retry_after.as_ref();
    let answers = retry_after.map(|at| (at, compiler.setting("retry_after", at, units::switch)));
    if let Some((at, Some(true))) = answers
        && !compiler.speech.is_http()
    {
        let message = "`retry_after` belongs to requests of HTTP";
        let help = "only their answers have headers: leave it out, and say how long to `wait`";
        return compiler.refuse_here(&at.span, message, help);
    }
    Some(Some(Retry {
        at_most: at_most? as u32,
        wait: wait?,
        multiplier: multiplier?,
        max_wait: max_wait?,
        retry_after: answers.map_or(Some(false), |(_, is_asked)| is_asked)?,
    }))
}

/// Parses the growth factor from one wait to the next.
fn growth(text: &str) -> Result<f64, TextError> {
    match text.trim().parse::<f64>() {
        Ok(growth) if (1.0..=100.0).contains(&growth) => Ok(growth),
        _ => {
            let message = format!("`{}` is not a multiplier", text.trim());
            Err(TextError::new(message, 0..text.len())
                .help("write a number from 1 to 100, such as `2`"))
        }
    }
}

/// Returns whether a session ends after a failed request of a step; `all` is the default of steps.
pub(super) fn ends_session(
    on_failure: Option<&At<Scalar>>,
    all: bool,
    compiler: &mut Compiler,
) -> Option<bool> {
    const NAMES: [(&str, bool); 2] = [("continue", false), ("end_session", true)];
    let Some(at) = on_failure else {
        return Some(all);
    };
    let named = |text: &str| units::one_named("reaction", text, &NAMES);
    compiler.setting("on_failure", at, named)
}

/// Returns the groups of a session's steps that have a condition or a loop.
pub(super) fn groups(steps: &[Flat], compiler: &mut Compiler) -> Option<Vec<Group>> {
    let mut ranges: Vec<(Range<usize>, &At<StepFile>)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Some(group) = step.enclosing.group else {
            continue;
        };
        match ranges.last_mut() {
            Some((range, of)) if std::ptr::eq(*of, group) => range.end = at + 1,
            _ => ranges.push((at..at + 1, group)),
        }
    }
    let compiled: Vec<Option<Group>> = ranges
        .into_iter()
        .map(|(steps, file)| {
            let control = control(&file.value, compiler)??;
            Some(Group { steps, control })
        })
        .collect();
    compiled.into_iter().collect()
}

/// Returns the transactions of a session, outer before inner ones.
pub(super) fn transactions(steps: &[Flat], compiler: &mut Compiler) -> Option<Vec<Transaction>> {
    let mut found: Vec<(Transaction, &At<StepFile>)> = Vec::new();
    let mut good = true;
    for (at, step) in steps.iter().enumerate() {
        for (file, each) in &step.enclosing.transactions {
            let known = found.iter_mut().find(|(_, of)| std::ptr::eq(*of, *file));
            if let Some((transaction, _)) = known {
                transaction.steps.end = at + 1;
                continue;
            }
            let Some(name) = &file.value.transaction else {
                continue;
            };
            let text = name.text().trim().to_owned();
            let taken = found.iter().any(|(other, _)| other.name == text);
            if let Some((message, help)) = wrong_name(&text, taken) {
                good = false;
                compiler.refuse_here::<()>(&name.span, message, help);
            }
            let transaction = Transaction {
                name: text,
                steps: at..at + 1,
                each: *each,
            };
            found.push((transaction, file));
        }
    }
    // Innermost transactions last.
    for (at, step) in steps.iter().enumerate() {
        let parallel = step.file.value.parallel.as_ref();
        let name = step
            .file
            .value
            .step
            .as_ref()
            .filter(|_| step.name.is_none());
        let (Some(_), Some(name)) = (parallel, name) else {
            continue;
        };
        let text = name.text().trim().to_owned();
        let taken = found.iter().any(|(other, _)| other.name == text);
        if let Some((message, help)) = wrong_name(&text, taken) {
            good = false;
            compiler.refuse_here::<()>(&name.span, message, help);
        }
        let transaction = Transaction {
            name: text,
            steps: at..at + 1,
            each: Round::Step,
        };
        found.push((transaction, step.file));
    }
    good.then(|| {
        found
            .into_iter()
            .map(|(transaction, _)| transaction)
            .collect()
    })
}

/// Returns what is wrong with the name of a transaction, and how to fix it.
fn wrong_name(name: &str, taken: bool) -> Option<(&'static str, &'static str)> {
    if name.is_empty() || name.len() > 200 || name.contains(['\n', '\r', '\t', '\0', '}']) {
        let message = "a transaction's name is one line of 1 to 200 characters, without `}`";
        return Some((
            message,
            "name it as reports are to show it: `transaction: Checkout`",
        ));
    }
    if name == SESSION {
        let message = "`session` is the name of the whole session, which is a transaction anyway";
        return Some((message, "give it another name, or leave it out"));
    }
    taken.then_some((
        "two transactions have this name",
        "reports tell transactions by their names: number them; a step with `parallel` is one, too",
    ))
}

/// Parses whether each session is a new visitor.
pub(super) fn visitor(at: Option<&At<Scalar>>, compiler: &mut Compiler) -> Option<Visitor> {
    const NAMES: [(&str, Visitor); 2] = [("same", Visitor::Same), ("new", Visitor::New)];
    let named = |text: &str| units::one_named("visitor", text, &NAMES);
    at.map_or(Some(Visitor::Same), |at| {
        compiler.setting("visitor", at, named)
    })
}

impl Compiler<'_> {
    /// Compiles a condition of the file; `what` names it in errors.
    fn condition(&mut self, what: &str, at: &At<Scalar>) -> Option<Template> {
        let text = at.text();
        let parsed = Template::condition(&text, self.symbols());
        self.note(what, &at.span, &text, parsed.map_err(TextError::from))
    }
}
