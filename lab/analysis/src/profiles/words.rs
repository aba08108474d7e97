//! Sentences on the differences between the profiles of two cells.

use lab_trial::format::{
    code as name, count, figure, list, micros as time, plural, plural_count,
    signed_micros as signed_us, signed_percent, times,
};

use crate::model::{
    CpuDifference, Difference, FunctionDifference, MovedFunction, ProfileDifference, RatioInterval,
    SamplesOf,
};

/// The maximum number of named functions, or waits; all are in `result.json`.
pub(crate) const MOST_NAMED: usize = 10;
/// The maximum number of functions that a run's finding names.
const MOST_OF_RUN: usize = 3;

/// All sentences of a comparison; the first one is about the whole CPU time.
pub(super) fn sentences(of: &ProfileDifference, smallest: f64, least: f64) -> Vec<String> {
    let whole = whole(of);
    if let Some(reason) = &of.reason {
        return vec![whole, format!("Functions are not compared: {reason}.")];
    }
    let none = of.findings.is_empty();
    let nothing = none.then(|| {
        let least = times(100.0 * least);
        format!("No function differs by {least} % of the CPU time or more beyond noise.")
    });
    let rest = of.rest.as_ref().map(|rest| {
        let subject = match none {
            true => "All functions together",
            false => "All other functions together",
        };
        let ratio = ratio(&rest.ratio);
        format!("{subject}: {ratio}: {}.", word(rest.verdict, smallest))
    });
    std::iter::once(whole)
        .chain(of.findings.iter().take(MOST_NAMED).map(finding))
        .chain(more(of.findings.len(), "function"))
        .chain(nothing)
        .chain(of.moved.iter().take(MOST_NAMED).map(moved))
        .chain(more(of.moved.len(), "moved function"))
        .chain(rest)
        .chain(of.common.as_ref().map(common))
        .chain(detectable(of))
        .collect()
}

/// `CPU time per transaction, after against before: +5.2 %, 0.415 ms against 0.394 ms, +20.3 µs [17.7, 23.2].` The
/// comparison of cells gives the verdict.
fn whole(of: &ProfileDifference) -> String {
    let CpuDifference {
        us_a,
        us_b,
        us,
        us_interval,
    } = of.cpu;
    format!(
        "CPU time per transaction, {} against {}: {}, {} against {}, {}.",
        of.b,
        of.a,
        signed_percent(100.0 * us / us_a),
        time(us_b),
        time(us_a),
        signed_us(us, us_interval)
    )
}

/// `after against before: work_17, called by handle, uses 17.9 µs [15.9, 20.1] more CPU time per transaction.`
pub(super) fn summary(of: &ProfileDifference) -> String {
    let named = of.findings.iter().take(MOST_OF_RUN).map(|one| {
        let caller = one.called_by.as_ref();
        let caller = caller.map(|caller| format!(", called by {},", name(caller)));
        let more = if one.us > 0.0 { "more" } else { "less" };
        let sign = one.us.signum();
        let interval = one.us_interval.map(|(low, high)| match one.us > 0.0 {
            true => (low, high),
            false => (-high, -low),
        });
        let us = signed_us(one.us * sign, interval);
        let (what, caller) = (what(one), caller.unwrap_or_default());
        format!("{what}{caller} uses {} {more}", us.trim_start_matches('+'))
    });
    let named: Vec<String> = named.collect();
    format!(
        "{} against {}: {} CPU time per transaction.",
        of.b,
        of.a,
        list(&named)
    )
}

/// The function of a finding, or its own code.
fn what(of: &FunctionDifference) -> String {
    match of.of {
        SamplesOf::Own => format!("the own code of {}", name(&of.function)),
        SamplesOf::Total | SamplesOf::Path => name(&of.function),
    }
}

/// `+17.9 µs [15.9, 20.1]: work_17, called by handle; 33 % of this difference is in its own code and 67 % in its callee
/// mixing.`, with the names in backquotes.
fn finding(of: &FunctionDifference) -> String {
    let caller = of.called_by.as_ref();
    let caller = caller.map(|caller| format!(", called by {}", name(caller)));
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let mut parts: Vec<String> = Vec::new();
    match of.own_part {
        all if all >= 0.995 => parts.push("all of this difference is in its own code".to_owned()),
        part if part >= 0.05 => {
            let part = percent(part);
            parts.push(format!("{part} of this difference is in its own code"));
        }
        _ => {}
    }
    let of_it = if parts.is_empty() {
        " of this difference is"
    } else {
        ""
    };
    let callees = of.callees.iter().enumerate();
    parts.extend(callees.map(|(at, callee)| {
        let of_it = if at == 0 { of_it } else { "" };
        let (part, function) = (percent(callee.part), name(&callee.function));
        format!("{part}{of_it} in its callee {function}")
    }));
    // Parts with opposite signs are no parts of the sum.
    let is_part = |part: f64| (-0.05..=1.05).contains(&part);
    if !is_part(of.own_part) || !of.callees.iter().all(|callee| is_part(callee.part)) {
        parts.clear();
    }
    let parts = match of.of {
        SamplesOf::Own => String::new(),
        SamplesOf::Total | SamplesOf::Path if parts.is_empty() => String::new(),
        SamplesOf::Total | SamplesOf::Path => format!("; {}", list(&parts)),
    };
    format!(
        "{}: {}{}{parts}.",
        signed_us(of.us, of.us_interval),
        what(of),
        caller.unwrap_or_default()
    )
}

fn moved(of: &MovedFunction) -> String {
    format!(
        "{} uses {} less and {} {} more; {} with its callees shows no difference beyond noise. The code was probably \
         renamed or inlined.",
        name(&of.from),
        time(of.us_less),
        name(&of.to),
        time(of.us_more),
        name(&of.within)
    )
}

/// The sentence with the number of items that are not named.
pub(crate) fn more(all: usize, noun: &str) -> Option<String> {
    let more = all.saturating_sub(MOST_NAMED);
    (more > 0).then(|| format!("{} more in result.json.", plural(more, noun)))
}

fn common(of: &RatioInterval) -> String {
    format!(
        "Functions in general: {} of CPU time. This points to the machine, the build, or a setting that affects all code, \
         not to one function.",
        ratio(of)
    )
}

/// The smallest difference that four of five studies find.
fn detectable(of: &ProfileDifference) -> Option<String> {
    let part = of.detectable?;
    let us = part * f64::midpoint(of.cpu.us_a, of.cpu.us_b);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of samples"
    )]
    let samples = count(of.samples.round() as u64);
    Some(format!(
        "With {} and {samples} samples per trial, four of five studies find a change of {} % of the CPU time ({}) in a \
         function that uses 1 %.",
        plural_count(u64::try_from(of.blocks).unwrap_or(u64::MAX), "block"),
        figure(100.0 * part),
        time(us),
    ))
}

fn word(verdict: Difference, smallest: f64) -> String {
    let margin = times(100.0 * smallest);
    match verdict {
        Difference::Slower | Difference::UsesMore | Difference::FailsMore => "more".to_owned(),
        Difference::Faster | Difference::UsesLess | Difference::FailsLess => "less".to_owned(),
        Difference::Equal => format!("equal within {margin} %"),
        Difference::NotWorse => format!("at most {margin} % more"),
        Difference::CouldNotTell => {
            format!("could not tell whether they are equal within {margin} %")
        }
    }
}

/// `+0.6 % [−0.3, +1.5]`.
fn ratio(of: &RatioInterval) -> String {
    let percent = |ratio: f64| signed_percent(100.0 * (ratio - 1.0));
    let bare = |ratio: f64| percent(ratio).trim_end_matches(" %").to_owned();
    let interval = of
        .interval
        .map(|(low, high)| format!(" [{}, {}]", bare(low), bare(high)));
    format!("{}{}", percent(of.ratio), interval.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_counted() {
        assert_eq!(more(MOST_NAMED, "function"), None);
        assert_eq!(
            more(MOST_NAMED + 2, "function").as_deref(),
            Some("2 functions more in result.json.")
        );
    }
}
