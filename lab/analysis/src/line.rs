//! The load line: the most users that a system sustains within thresholds, for each cell of a search; and the judgement
//! of one trial, from which a search continues.

use lab_plan::{Cell, Find, HowEnded, Plan, SearchEnd};
use lab_stats::isotonic::{self, CONFIDENCE, Ceiling};
use lab_stats::safe;
use lab_stats::search::{self, Judgement, Next, Rules, Tried, load_line};
use lab_trial::format::{cell_label, count, list, percent, plural, plural_count};

use crate::model::{LineDifference, LineLevel, LoadLine, LowerBound, SafeLine, TrialAnalysis};

/// The line of each cell, in the order in which the plan has them; none without a search.
pub(crate) fn load_lines(plan: &Plan, trials: &[TrialAnalysis]) -> Vec<LoadLine> {
    let Some(search) = &plan.search else {
        return Vec::new();
    };
    let mut cells: Vec<&Cell> = Vec::new();
    for trial in &search.cells {
        if !cells.contains(&&trial.cell) {
            cells.push(&trial.cell);
        }
    }
    cells
        .into_iter()
        .map(|cell| {
            let of_cell: Vec<&TrialAnalysis> =
                trials.iter().filter(|trial| trial.cell == *cell).collect();
            let label = cell_label(&plan.question, cell);
            let rules = search.find.rules(plan.seed, plan.question.repeats);
            let at = search.cells.iter().position(|one| one.cell == *cell);
            let ended = at.and_then(|at| plan.search_ended.get(at)).copied();
            line(&search.find, (&rules, ended), (cell, label), &of_cell)
        })
        .collect()
}

fn line(
    find: &Find,
    (rules, ended): (&Rules, Option<SearchEnd>),
    (cell, label): (&Cell, String),
    trials: &[&TrialAnalysis],
) -> LoadLine {
    let tried: Vec<Tried> = trials.iter().map(|trial| tried(trial)).collect();
    let found = load_line(rules, &tried, CONFIDENCE);
    let search = ended.unwrap_or_else(|| end(rules, &tried));
    let finished = search.how.is_finished();
    let some = |users: u32| (users > 0).then_some(users);
    LoadLine {
        cell: cell.clone(),
        label,
        users: found.and_then(|line| some(line.users)),
        low: found.and_then(|line| some(line.low)),
        high: found.and_then(|line| line.high),
        confidence: CONFIDENCE,
        safe: safe(&tried, find.safe.unwrap_or(safe::PART)),
        resolution: find.resolution,
        thresholds: find.subject_to.iter().map(words).collect(),
        ceiling: found
            .and_then(|line| line.ceiling)
            .map(|ceiling| match ceiling {
                Ceiling::Asked => "the study asks for no more".to_owned(),
                Ceiling::Generator { users } => format!(
                    "the generator is the limit (at {} users the measurement is not valid)",
                    count(u64::from(users))
                ),
            }),
        search,
        finished,
        between: (!finished).then(|| search::bracket(&tried)),
        lower_bound: lower_bound(&tried, found.map_or(0, |line| line.users)),
        levels: levels(&tried),
    }
}

/// The end of a search, derived from its trials: an archive of an earlier version doesn't record it.
fn end(rules: &Rules, tried: &[Tried]) -> SearchEnd {
    SearchEnd {
        how: match rules.next(tried) {
            Next::Done(end) => end.into(),
            Next::Try(_) => HowEnded::Interrupted,
        },
        users: tried.last().map(|last| last.level),
    }
}

/// The lower bound from disturbed trials, if it is above the measured one.
fn lower_bound(tried: &[Tried], measured: u32) -> Option<LowerBound> {
    let found = search::lower_bound(tried)?;
    (found.level > measured).then_some(LowerBound {
        measured: false,
        users: found.level,
        held: found.held,
        trials: found.trials,
    })
}

/// The safe line of these trials. Levels beyond the generator's limit aren't measured, and so don't count.
fn safe(tried: &[Tried], wanted: f64) -> Option<SafeLine> {
    let measured = tried.iter();
    let measured = measured.filter_map(|one| Some((one.level, one.judgement.carried()?)));
    let found = safe::safe_line(&isotonic::tally(measured), wanted, CONFIDENCE)?;
    Some(SafeLine {
        users: found.level,
        held: found.held,
        trials: found.trials,
        part: found.part,
        wanted,
        needed: found.needed,
    })
}

/// `response time p(95) < 100ms`, with its step.
fn words(threshold: &lab_plan::Threshold) -> String {
    let text = lab_trial::format::threshold(threshold.metric, &threshold.text);
    let of = threshold.scope.words();
    format!("{text}{of}")
}

fn tried(trial: &TrialAnalysis) -> Tried {
    Tried {
        level: trial.users,
        judgement: trial.judgement(),
    }
}

fn levels(tried: &[Tried]) -> Vec<LineLevel> {
    let mut levels: Vec<LineLevel> = Vec::new();
    for one in tried {
        let at = levels.iter().position(|level| level.users == one.level);
        let at = at.unwrap_or_else(|| {
            levels.push(LineLevel {
                users: one.level,
                carried: 0,
                not_carried: 0,
                invalid: 0,
                held_while_disturbed: 0,
            });
            levels.len() - 1
        });
        let level = &mut levels[at];
        match one.judgement.carried() {
            Some(true) => level.carried += 1,
            Some(false) => level.not_carried += 1,
            None => level.invalid += 1,
        }
        let held = one.judgement == Judgement::Disturbed { held: true };
        level.held_while_disturbed += u32::from(held);
    }
    levels.sort_by_key(|level| level.users);
    levels
}

/// Verdict on a line that is shown to be lower.
const FEWER: &str = "fewer";
/// Verdict on lines whose intervals don't separate them.
const NO_DIFFERENCE: &str = "no difference shown";
/// The text for a missing line.
const NO_LINE: &str = "no line";

/// Compares each line with the first.
pub(crate) fn differences(lines: &[LoadLine]) -> Vec<LineDifference> {
    let Some((first, others)) = lines.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .map(|other| difference(first, other))
        .collect()
}

fn less(b: Option<u32>, a: Option<u32>) -> Option<f64> {
    Some(f64::from(b?) - f64::from(a?))
}

/// Compares a line with another: the verdict that both intervals allow, at least as sure as each of them alone is that
/// the difference isn't outside, less the error of the other (Bonferroni). Each end needs one end of each line. So an
/// open end on the far side leaves the verdict, as does a line below all numbers tried.
fn difference(first: &LoadLine, other: &LoadLine) -> LineDifference {
    let least = less(other.low, first.high);
    let most = less(other.high, first.low);
    LineDifference {
        a: first.label.clone(),
        b: other.label.clone(),
        difference: less(other.users, first.users),
        interval: least.zip(most),
        verdict: match (least, most) {
            (Some(least), _) if least > 0.0 => "more",
            (_, Some(most)) if most < 0.0 => FEWER,
            _ => NO_DIFFERENCE,
        },
        bound: None,
        margin: None,
        safe: first.safe.zip(other.safe),
        is_regression: None,
    }
}

/// Compares a line of a later run with an earlier one's: worse, or shown not to be (non-inferiority), or neither.
/// Intervals that overlap are no answer.
///
/// Irrelevant is a difference within the part `relevant` of the earlier line, or within the searches' own resolution,
/// whichever is larger. A missing line is no answer, either.
#[must_use]
pub fn regression(first: &LoadLine, other: Option<&LoadLine>, relevant: f64) -> LineDifference {
    let Some(other) = other else {
        return LineDifference {
            a: first.label.clone(),
            b: first.label.clone(),
            difference: None,
            interval: None,
            verdict: NO_LINE,
            bound: None,
            margin: None,
            safe: None,
            is_regression: None,
        };
    };
    let mut found = difference(first, other);
    let part = relevant.max(first.resolution).max(other.resolution);
    let margin = part * first.users.map_or(0.0, f64::from);
    // For a search that ended before it reached a line, the question is whether the other sustains as much.
    let asked = first
        .high
        .or(first.users.filter(|_| first.ceiling.is_some()));
    let bound = less(other.low, asked);
    let fewer = found.difference.or(less(other.high, first.low));
    found.is_regression = match found.verdict {
        FEWER if fewer.is_some_and(|fewer| -fewer > margin) => Some(true),
        _ if bound.is_some_and(|bound| bound >= -margin) => Some(false),
        _ => None,
    };
    found.bound = bound;
    found.margin = Some(margin);
    found
}

/// The lines in words, for the top of the report: the safe line first, then the line that half of the trials hold.
///
/// An unfinished search is reported first.
pub(crate) fn headline(lines: &[LoadLine]) -> Option<String> {
    let first = lines.first()?;
    if lines.iter().any(|line| !line.finished) {
        return Some(not_finished(lines));
    }
    let within = format!("Within {}", list(&first.thresholds));
    if let [line] = lines {
        return Some(format!(
            "{within}, {}. Half of the trials hold up to the load line, {}.",
            safe_words(line),
            figure(line)
        ));
    }
    let each = |words: fn(&LoadLine) -> String| {
        let of = |line: &LoadLine| format!("of {}, {}", line.label, words(line));
        lines.iter().map(of).collect::<Vec<_>>().join("; ")
    };
    Some(format!(
        "{within}: {}. Half of the trials hold up to the load line: {}.",
        each(safe_words),
        each(figure)
    ))
}

fn not_finished(lines: &[LoadLine]) -> String {
    let so_far = match lines {
        [line] => unfinished(line),
        lines => {
            let of = |line: &LoadLine| format!("of {}, {}", line.label, figure(line));
            lines.iter().map(of).collect::<Vec<_>>().join("; ")
        }
    };
    format!("The search was not finished: {so_far}.")
}

/// `disturbed at 175 users; the line lies between 150 and 200 users so far`.
fn unfinished(line: &LoadLine) -> String {
    let at = line.search.users.map_or_else(String::new, |users| {
        format!(" at {}", plural_count(users.into(), "user"))
    });
    let why = match line.search.how {
        HowEnded::Finished => "finished".to_owned(),
        HowEnded::Unmeasurable => format!("no trial is valid{at}"),
        HowEnded::Disturbed => format!("disturbed{at}"),
        HowEnded::PreparationFailed => format!("the preparation failed{at}"),
        HowEnded::SystemFailed => format!("the system failed{at} each time"),
        HowEnded::Unsettled => {
            format!("its trials still contradicted each other{at}")
        }
        HowEnded::Interrupted => format!("interrupted{at}"),
    };
    let users = |users: u32| count(u64::from(users));
    let place = match line.between.unwrap_or_default() {
        (Some(below), Some(above)) => Some(format!(
            "the line lies between {} and {} users so far",
            users(below),
            users(above)
        )),
        (Some(below), None) => Some(format!("the line lies at {} users or above", users(below))),
        (None, Some(above)) => Some(format!("the line lies below {} users", users(above))),
        (None, None) => None,
    };
    let bound = line.lower_bound.map(|bound| {
        format!(
            "≥ {} users ({} of {} held, which is no measurement)",
            users(bound.users),
            bound.held,
            plural(bound.trials as usize, "disturbed trial"),
        )
    });
    let known: Vec<String> = place.into_iter().chain(bound).collect();
    match known.is_empty() {
        true => format!("{why}; nothing is known of the line"),
        false => format!("{why}; {}", known.join("; ")),
    }
}

/// `500 users are safe: we are 95 % sure that at least 95 % of the trials hold (72 of 72 did)`, or the statement that
/// fewer trials allow.
pub fn safe_words(line: &LoadLine) -> String {
    let Some(safe) = line.safe else {
        return "no number of users is shown to be safe".to_owned();
    };
    let users = count(u64::from(safe.users));
    let sure = percent_text(line.confidence);
    // Rounds down, to claim no more than is shown: 94.9 is not 95.
    let part = percent_text((safe.part * 100.0).floor() / 100.0);
    let did = format!("{} of {} did", safe.held, safe.trials);
    if safe.part >= safe.wanted {
        return format!(
            "{users} users are safe: it is {sure} sure that at least {part} of the trials hold ({did})"
        );
    }
    format!(
        "{users} users are the safe line, as far as so few trials tell: it is {sure} sure that at least \
         {part} of the trials hold ({did}; for {} it takes {} without a failure)",
        percent_text(safe.wanted),
        safe.needed
    )
}

/// `900 users (95 % sure: 800 to 999)`, or `≥ 60,000 users: the generator is the limit…`.
pub fn figure(line: &LoadLine) -> String {
    if !line.finished {
        return format!("not finished: {}", unfinished(line));
    }
    let users = |n: u32| count(u64::from(n));
    let sure = percent_text(line.confidence);
    match (line.users, line.low, line.high) {
        (None, _, _)
            if line
                .levels
                .iter()
                .all(|level| level.carried + level.not_carried == 0) =>
        {
            "not known: no trial is a measurement".to_owned()
        }
        (None, ..) => match line.levels.first() {
            Some(level) if level.users <= 1 => "less than one user".to_owned(),
            Some(level) => format!("fewer than {} users, the fewest tried", users(level.users)),
            None => "not known: nothing was tried".to_owned(),
        },
        (Some(line_at), ..) if line.ceiling.is_some() => {
            let why = line.ceiling.as_deref().unwrap_or_default();
            format!("≥ {} users: {why}", users(line_at))
        }
        (Some(line_at), Some(low), Some(high)) => format!(
            "{} users ({sure} sure: {} to {})",
            users(line_at),
            users(low),
            users(high)
        ),
        (Some(line_at), low, high) => {
            let open = match (low, high) {
                (Some(low), _) => format!("at least {}, the upper end is open", users(low)),
                (_, Some(high)) => format!("at most {}, the lower end is open", users(high)),
                _ => "too few trials to bound it".to_owned(),
            };
            format!("{} users ({sure} sure: {open})", users(line_at))
        }
    }
}

fn percent_text(part: f64) -> String {
    percent(part * 100.0).replace(".0 %", " %")
}

/// Compares one line with another.
pub fn difference_sentence(one: &LineDifference) -> String {
    let by = |users: f64| {
        let sign = if users < 0.0 { "−" } else { "+" };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a difference of two numbers of users, without its sign"
        )]
        let size = users.abs() as u64;
        format!("{sign}{}", count(size))
    };
    let interval = one.interval.map_or_else(
        || "its interval is open".to_owned(),
        |(low, high)| format!("{} to {}", by(low), by(high)),
    );
    let safe = one.safe.map_or_else(String::new, |(a, b)| {
        let of = |safe: SafeLine| {
            let part = percent_text((safe.part * 100.0).floor() / 100.0);
            let users = count(u64::from(safe.users));
            format!("{users} users ({} of {}: at least {part})", safe.held, safe.trials)
        };
        format!(
            " Safe lines: {} beside {}; each is as high as its trials show, so they have no verdict.",
            of(b),
            of(a)
        )
    });
    format!(
        "{} beside {}: {} users ({interval}): {}.{safe}",
        one.b,
        one.a,
        one.difference
            .map_or_else(|| "an unknown number of".to_owned(), by),
        match one.verdict {
            "more" => "it carries more",
            FEWER => "it carries fewer",
            other => other,
        }
    )
}
