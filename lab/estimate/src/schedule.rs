//! Describes the run of a plan, in words: its trials in order, the time and disk that they need, and their limits.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use lab_analysis::format;
use lab_plan::{SharedKind, Side, WorkloadOutline};
use lab_study::Study;
use lab_study::model::Threshold;
use lab_study::plan::{LoadKind, Plan, Search, Span, Stage, Trial};

use crate::length::Lengths;
use crate::tokens::tokens;
use crate::words::{cell_words, duration};

/// Columns for the words of a cell, of 80.
const CELL_WIDTH: usize = 30;

/// The state shared by users, by kind.
fn shared(workload: &WorkloadOutline) -> String {
    let mut text = String::new();
    let kinds = [
        (SharedKind::Counter, "counters, unique over all generators"),
        (SharedKind::Queue, "queues, of each generator"),
        (
            SharedKind::Pool,
            "pools, dealt out to the workers of all generators",
        ),
    ];
    for (kind, words) in kinds {
        let of = workload.shared.iter().filter(|one| one.kind == kind);
        let names: Vec<String> = of.map(|one| one.name.clone()).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "{words}: {}", format::first_few(&names));
        }
    }
    text
}

/// What systems are asked during holds, each ask once; empty where nothing is asked.
fn asks(plan: &Plan) -> String {
    let mut lines = BTreeSet::new();
    for trial in plan.every_trial() {
        let hold = Duration::from_millis(trial.load.hold_ms);
        lines.extend(trial.ask.iter().map(|ask| ask.words(hold)));
    }
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| format!("  {line}\n"));
    let lines: String = lines.collect();
    format!("the system is asked during each hold what it counts:\n{lines}")
}

/// The trials of a plan, the time and disk that they need, and their limits, at most 80 columns wide.
#[must_use]
pub fn schedule(study: &Study, plan: &Plan, disk_bytes: u64, waits: Waits) -> String {
    let lengths = Lengths::of(study);
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", plan.study, plan.title);
    let _ = writeln!(text, "seed {}, speed {}", plan.seed, plan.speed);
    let unseeded = &plan.question.workload.unseeded_steps;
    if !unseeded.is_empty() {
        let steps = lab_analysis::format::first_few(unseeded);
        let _ = writeln!(
            text,
            "not fixed by the seed (time of day, random signatures, what users share): {steps}"
        );
    }
    text.push_str(&shared(&plan.question.workload));
    text.push_str(&tokens(study, plan));
    text.push_str(&asks(plan));
    if (plan.speed - 1.0).abs() > f64::EPSILON {
        let _ = writeln!(
            text,
            "at this speed each user makes {} times the load of a real one",
            plan.speed
        );
    }
    let _ = writeln!(text);
    if let Some(search) = &plan.search {
        text.push_str(&searches(plan, search, lengths, waits));
        text.push_str(&file_systems(plan));
        let _ = write!(text, "\n{}", limits(plan));
        return text;
    }
    text.push_str(&pairing(plan));
    text.push_str(&table(plan));
    text.push_str(&recording(plan));
    text.push_str(&populations(plan));
    text.push_str(&transactions(plan));
    text.push_str(&stages(plan));
    text.push_str(&file_systems(plan));
    let _ = writeln!(text);
    let is_sequence = |trial: &Trial| matches!(trial.load.kind, LoadKind::Sequence { .. });
    // A sequence ends with its last session; its hold is only the deadline.
    let about = match plan.trials.iter().any(is_sequence) {
        true => "at most",
        false => "about",
    };
    if plan.trials.iter().any(ranges) {
        text.push_str(
            "requests: fewest and most, as far as the server's answers decide what is sent\n",
        );
    }
    let _ = writeln!(
        text,
        "{about} {} for all trials, setup included\n{}",
        duration(lengths.total(plan)),
        disk(disk_bytes)
    );
    text.push_str(&worst(plan, lengths, waits));
    let _ = write!(text, "\n{}", limits(plan));
    text
}

/// How two variants run, and why, in lines of 80 columns.
fn pairing(plan: &Plan) -> String {
    let Some(pairing) = &plan.question.pairing else {
        return String::new();
    };
    let how = match plan.question.duet {
        true => "variants run two at a time, as a duet",
        false => "variants run one after the other, not as a duet",
    };
    let advice = match plan.question.duet && pairing.auto {
        true => "; `duet: false` where both use one folder or database",
        false => "",
    };
    let auto = if pairing.auto { " (duet: auto)" } else { "" };
    let text = format!("{how}{auto}: {}{advice}", pairing.why);
    format!("{}\n\n", textwrap::fill(&text, 80))
}

/// The longest time of repeats of disturbed trials, and of the waits for an idle machine.
fn worst(plan: &Plan, lengths: Lengths, waits: Waits) -> String {
    let repeats = plan.question.repeats;
    let trials = u32::try_from(plan.trials.len()).unwrap_or(u32::MAX);
    let plus = waits.words(trials.saturating_mul(repeats + 1));
    let longest = duration(lengths.total(plan).saturating_mul(repeats + 1));
    match (repeats, plus) {
        (0, None) => String::new(),
        (0, Some(plus)) => format!("up to {longest}, {plus}\n"),
        (n, plus) => {
            let plus = plus.map_or(String::new(), |plus| format!(",\n{plus}"));
            format!("up to {longest} where every trial is disturbed and repeated {n} times{plus}\n")
        }
    }
}

/// The longest waits of a run for an idle machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Before a trial.
    pub trial: Duration,
    /// In all.
    pub run: Duration,
}

impl Waits {
    /// The longest wait of this number of trials; `None` if they don't wait.
    fn words(self, trials: u32) -> Option<String> {
        let most = self.trial.saturating_mul(trials).min(self.run);
        let most = (!most.is_zero()).then(|| duration(most))?;
        Some(format!(
            "plus at most {most} of waiting for an idle machine"
        ))
    }
}

/// The trials in order. Ramp and hold are above them if all have the same.
fn table(plan: &Plan) -> String {
    let times = |trial: &Trial| (trial.load.ramp_ms, trial.load.hold_ms);
    let alike = plan
        .trials
        .windows(2)
        .all(|two| times(&two[0]) == times(&two[1]));
    let time = |ms| duration(Duration::from_millis(ms));
    let (requests_width, rate_width) = match plan.trials.iter().any(ranges) {
        true => (15, 12),
        false => (10, 7),
    };
    let cell_width = CELL_WIDTH + 17 - requests_width - rate_width;
    let mut text = String::new();
    if let Some(first) = plan.trials.first().filter(|_| alike) {
        let (ramp, hold) = times(first);
        let _ = match first.load.stages.is_empty() {
            true => writeln!(text, "each: ramp {}, hold {}\n", time(ramp), time(hold)),
            false => writeln!(text, "each: {}, in stages\n", time(hold)),
        };
    }
    let _ = writeln!(
        text,
        "{:>5}{:>6}{:>8}{:>12}{:>requests_width$}{:>rate_width$}  cell",
        "trial", "block", "users", "ramp + hold", "requests", "per s"
    );
    for trial in &plan.trials {
        let (requests, offered) = expected(trial);
        // Millions per second are as wide as their column.
        let narrower = rate_width - 1;
        let mut cell = cell_words(&trial.cell);
        if trial.control {
            cell.push_str(if cell.is_empty() {
                "control"
            } else {
                " (control)"
            });
        }
        if let Some(duet) = trial.duet {
            let side = match duet.side {
                Side::Left => "left",
                Side::Right => "right",
            };
            cell.push_str(&format!(", {side}, with {}", duet.partner));
        }
        // A long cell has a line of its own.
        let gap = match cell.chars().count() > cell_width {
            true => format!("\n{:>17}", ""),
            false => "  ".to_owned(),
        };
        let line = format!(
            "{:>5}{:>6}{:>8}{:>12}{requests:>requests_width$} {offered:>narrower$}{gap}{cell}",
            trial.id,
            trial.block + 1,
            trial.load.users,
            time(trial.load.ramp_ms.saturating_add(trial.load.hold_ms)),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The recordings replayed in the first block's trials.
fn recording(plan: &Plan) -> String {
    let mut text = String::new();
    for trial in first_block(plan).take(MOST_STAGED) {
        let Some(plan) = &trial.prediction else {
            continue;
        };
        let whole = (String::new(), &trial.load.timeline, plan.arrivals);
        let populations = trial.load.mix.iter().zip(&plan.populations);
        let each = populations.map(|(population, plan)| {
            let name = format!(", {}", population.name);
            (name, &population.timeline, plan.arrivals)
        });
        for (of, timeline, arrivals) in [whole].into_iter().chain(each) {
            let (Some(timeline), Some(arrivals)) = (timeline, arrivals) else {
                continue;
            };
            let _ = writeln!(
                text,
                "\ntrial {}{of} replays {:.0} sessions, at {} times the speed they were\n\
                 recorded at, and at most {:.0} of them in a second",
                trial.id,
                arrivals.trial,
                amount(timeline.scale),
                arrivals.peak_per_s.unwrap_or_default()
            );
        }
    }
    text
}

/// The trials of the first block: one of each cell.
fn first_block(plan: &Plan) -> impl Iterator<Item = &Trial> {
    let trials = plan.trials.iter();
    trials.filter(|trial| trial.block == 0 && !trial.control)
}

/// Adds a line with the number of `cells` that are not shown, if any.
fn more(text: &mut String, cells: usize, what: &str) {
    let more = cells.saturating_sub(MOST_STAGED);
    if more > 0 {
        let _ = writeln!(text, "and the {what} of {more} more cells");
    }
}

/// Cells whose stages or populations are shown.
const MOST_STAGED: usize = 3;

/// The populations of the first block's loads, and their offered loads.
fn populations(plan: &Plan) -> String {
    let mut text = String::new();
    let mixed = first_block(plan).filter(|trial| !trial.load.mix.is_empty());
    let mixed: Vec<&Trial> = mixed.collect();
    for trial in mixed.iter().take(MOST_STAGED) {
        let _ = writeln!(
            text,
            "\npopulations of trial {}\n{:>20}{:>20}{:>14}{:>12}{:>9}",
            trial.id, "population", "workload", "load", "requests", "per s"
        );
        let predicted = trial.prediction.iter().flat_map(|plan| &plan.populations);
        let mut predicted = predicted.map(|one| (one.transactions, one.offered_per_s));
        for population in &trial.load.mix {
            let (requests, rate) = predicted.next().unzip();
            let number = |value: Option<f64>| value.map_or("-".to_owned(), |n| format!("{n:.0}"));
            let load = match population.kind {
                LoadKind::Arrival { .. } if population.timeline.is_some() => "recorded".to_owned(),
                LoadKind::Arrival { rate_per_s, .. } => format!("{}/s", amount(rate_per_s)),
                LoadKind::Users | LoadKind::Sequence { .. } => {
                    format!("{} users", population.users)
                }
            };
            let _ = writeln!(
                text,
                "{:>20}{:>20}{load:>14}{:>12}{:>9}",
                population.name,
                population.workload,
                number(requests),
                number(rate)
            );
            if population.after_ms > 0 {
                let begins = duration(Duration::from_millis(population.after_ms));
                let _ = writeln!(text, "{:>20}its ramp begins {begins} after the load's", "");
            }
        }
    }
    more(&mut text, mixed.len(), "populations");
    text
}

/// The named transactions of the first block's loads, and how many of each start.
fn transactions(plan: &Plan) -> String {
    let mut text = String::new();
    let named = first_block(plan).filter_map(|trial| {
        let named = &trial.prediction.as_ref()?.named_transactions;
        (named.len() > 1).then_some((trial.id, named))
    });
    let named: Vec<_> = named.collect();
    for (id, named) in named.iter().take(MOST_STAGED) {
        let _ = writeln!(
            text,
            "\nnamed transactions of trial {id}\n{:>28}{:>15}",
            "transaction", "begun"
        );
        for one in *named {
            let begun = match one.range {
                Some(range) => between(range, 1.0),
                None => one.begun.to_string(),
            };
            let _ = writeln!(text, "{:>28}{begun:>15}", one.name);
        }
    }
    more(&mut text, named.len(), "named transactions");
    text
}

/// A level without unnecessary digits.
fn amount(level: f64) -> String {
    match level.fract() == 0.0 {
        true => format!("{level:.0}"),
        false => format!("{level:.2}"),
    }
}

/// The stages of the first block's loads, and their offered loads.
fn stages(plan: &Plan) -> String {
    let mut text = String::new();
    let staged = first_block(plan).filter(|trial| !trial.load.stages.is_empty());
    let staged: Vec<&Trial> = staged.collect();
    for trial in staged.iter().take(MOST_STAGED) {
        let _ = writeln!(
            text,
            "\nstages of trial {}\n{:>20}{:>17}{:>9}{:>12}{:>9}",
            trial.id,
            "stage",
            match trial.load.kind {
                LoadKind::Arrival { .. } => "arrivals per s",
                LoadKind::Users | LoadKind::Sequence { .. } => "users",
            },
            "for",
            "requests",
            "per s"
        );
        let predicted = trial.prediction.iter().flat_map(|plan| &plan.stages);
        let mut predicted = predicted.map(|stage| stage.transactions);
        for stage in &trial.load.stages {
            let requests = predicted.next();
            let number = |value: Option<f64>| value.map_or("-".to_owned(), |n| format!("{n:.0}"));
            let _ = writeln!(
                text,
                "{:>20}{:>17}{:>9}{:>12}{:>9}",
                stage.name,
                level(stage),
                duration(Duration::from_millis(stage.length_ms)),
                number(requests),
                number(requests.map(|n| n * 1e3 / stage.length_ms as f64))
            );
        }
    }
    more(&mut text, staged.len(), "stages");
    text
}

/// `100`, or `100 → 500` for a stage that ramps.
fn level(stage: &Stage) -> String {
    match stage.ramps() {
        true => format!("{} → {}", amount(stage.from), amount(stage.to)),
        false => amount(stage.to),
    }
}

/// Requests of a trial and their rate in the hold, as far as known.
fn expected(trial: &Trial) -> (String, String) {
    match &trial.prediction {
        None => ("-".to_owned(), "-".to_owned()),
        // A script decides.
        Some(p) if p.transactions <= 0.0 => ("-".to_owned(), "-".to_owned()),
        Some(p) => {
            let hold_s = trial.load.hold_ms as f64 / 1e3;
            let range = p.range;
            let rate = match (trial.load.kind, range) {
                (LoadKind::Sequence { .. }, _) => "-".to_owned(),
                (_, Some(range)) => between(range.hold, hold_s),
                (_, None) => format!("{:.0}", p.offered_per_s),
            };
            let requests = match range {
                Some(range) => between(range.trial, 1.0),
                None => format!("{:.0}", p.transactions),
            };
            (requests, rate)
        }
    }
}

/// Returns true if the server's responses decide the load of a trial.
fn ranges(trial: &Trial) -> bool {
    let prediction = trial.prediction.as_ref();
    prediction.is_some_and(|prediction| prediction.range.is_some())
}

/// Minimum and maximum, if the server's responses decide.
fn between(span: Span, per: f64) -> String {
    format!("{:.0}–{:.0}", span.low / per, span.high / per)
}

/// The file systems that are made for trials.
fn file_systems(plan: &Plan) -> String {
    let hosts = plan.every_trial().map(|trial| &trial.host);
    let made = hosts.filter_map(|host| Some((&host.storage, host.filesystem.as_ref()?)));
    let made: BTreeSet<_> = made.collect();
    if made.is_empty() {
        return String::new();
    }
    let mut text =
        "\neach trial on a file system of its own, made for it and removed after it:\n".to_owned();
    for (folder, made) in made {
        let folder = folder.as_deref().unwrap_or("the run's folder");
        let (kind, megabytes) = (made.kind.name(), made.bytes / 1_000_000);
        let _ = write!(text, "  {kind} of {megabytes} MB in a file in {folder}");
        if !made.mkfs.is_empty() {
            let _ = write!(text, ", made with {}", made.mkfs.join(" "));
        }
        if let Some(options) = &made.options {
            let _ = write!(text, ", mounted with {options}");
        }
        text.push('\n');
    }
    text
}

/// The disk that the run needs, and the source of the number.
fn disk(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    let needed = if gib < 1.0 {
        format!("{:.0} MiB", (gib * 1024.0).ceil())
    } else {
        format!("{gib:.1} GiB")
    };
    format!(
        "at most {needed} of free disk: windows and histograms at the sizes of past runs,\n\
         and the largest trial's data as far as the lab fills it"
    )
}

/// The thresholds of the server, and the timeout of a response.
fn limits(plan: &Plan) -> String {
    let mut text = String::new();
    for threshold in &plan.question.thresholds {
        let _ = writeln!(text, "must hold: {}", limit(threshold));
    }
    for abort in &plan.question.abort_on {
        let lasts = duration(Duration::from_millis(abort.for_ms));
        let _ = writeln!(text, "ends a trial early: {} for {lasts}", abort.when.text);
    }
    let of_search = plan.search.iter().flat_map(|search| &search.cells);
    let trials = plan.trials.iter().chain(of_search);
    let allowed: BTreeSet<(u64, bool)> = trials
        .map(|trial| (trial.load.timeout_ms(), trial.load.time_limit_ms.is_some()))
        .collect();
    for (ms, is_bound) in allowed {
        let time = duration(Duration::from_millis(ms));
        let _ = match is_bound {
            true => writeln!(
                text,
                "an operation that takes over {time} is told as a bound"
            ),
            false => writeln!(text, "a request that takes over {time} is an error"),
        };
    }
    text
}

fn limit(threshold: &Threshold) -> String {
    let words = format::threshold(threshold.metric, &threshold.text);
    let of = threshold.scope.words();
    let implied = if threshold.implied {
        " (unless the study says otherwise)"
    } else {
        ""
    };
    format!("{words}{of}{implied}")
}

/// Trials of the search of a plan: approximately, and at most. `None` if it has none.
fn expected_trials(plan: &Plan) -> Option<(u32, u32)> {
    let search = plan.search.as_ref()?;
    let rules = search.find.rules(plan.seed, plan.question.repeats);
    let cells = u32::try_from(search.cells.len()).unwrap_or(u32::MAX);
    let all = |trials: u32| trials.saturating_mul(cells);
    Some((all(rules.usual_trials()), all(rules.most_trials())))
}

/// The course of a search, as far as known before.
fn searches(plan: &Plan, search: &Search, lengths: Lengths, waits: Waits) -> String {
    let find = &search.find;
    let mut text = format!(
        "searches for the most users, from {} to {}, that stay within\n",
        find.min_users, find.max_users
    );
    for threshold in &find.subject_to {
        let _ = writeln!(text, "  {}", limit(threshold));
    }
    if search.cells.len() > 1 {
        let cells: Vec<String> = search.cells.iter().map(|t| cell_words(&t.cell)).collect();
        let _ = writeln!(text, "for each of {}", cells.join("; "));
    }
    let (usual, most) = expected_trials(plan).unwrap_or_default();
    let middle = (f64::from(find.min_users) * f64::from(find.max_users)).sqrt() as u32;
    let each = search.cells.iter();
    let each = each.map(|trial| lengths.of_trial(trial, middle)).max();
    let each = each.unwrap_or_default();
    if let Some(part) = find.safe {
        let _ = writeln!(
            text,
            "and for the most with whom {:.0} % of the trials are shown to hold",
            part * 100.0
        );
    }
    let _ = writeln!(
        text,
        "\nabout {usual} trials, at most {most}; about {} for {usual}, setup included",
        duration(each * usual)
    );
    if let Some(plus) = waits.words(most) {
        let longest = duration(each.saturating_mul(most));
        let _ = writeln!(text, "up to {longest}, {plus}");
    }
    text
}

#[cfg(test)]
mod tests {

    use lab_study::load_study;
    use lab_study::plan::{PlanOptions, plan};

    use std::time::Duration;

    use super::{Waits, schedule};
    use crate::folder::Folder;

    const WAITS: Waits = Waits {
        trial: Duration::from_secs(120),
        run: Duration::from_secs(900),
    };

    fn described(extra: &str) -> String {
        let study = format!("study: s\ntitle: A title\nworkload: w\n{extra}");
        let study = load_study("s.study.yaml", &Folder { study, pace: "" }, &[])
            .unwrap()
            .study;
        let plan = plan(&study, &PlanOptions::default()).unwrap();
        let text = schedule(&study, &plan, 300 << 20, WAITS);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        text
    }

    #[test]
    fn plans_fit_a_terminal() {
        let plans = [
            "system: { groupware: {} }\nmatrix: { users: [100, 20000], a_factor_of_long_name: \
             [some, more] }\nload: { users: \"{{ users }}\", ramp: 95s, hold: 5m, timeout: \"{{ '60s' if \
             a_factor_of_long_name == 'some' else '1m' }}\" }\n",
            "variants: { before: { groupware: {} }, after: { groupware: {} } }\ncontrol: true\n\
             trials: 2\nload: { arrival: { rate: 100/s, spacing: constant }, hold: 10s }\n",
            "system: { groupware: {} }\nmatrix: { limit: [10s, 20s] }\n\
             load: { sequence: { sessions: 50 }, hold: \"{{ limit }}\" }\n",
            "system: { groupware: {} }\nload: { stages: [{ users: 50, over: 30s }, { stage: at full load, \
             users: 50, for: 2m }] }\nthresholds: { \"response_time{stage:at full load}\": [\"p(95) < 1s\"] }\n",
            "system: { groupware: {} }\nload: { ramp: 10s, hold: 1m }\nfind:\n  users: { max: 5000 }\n  \
             subject_to: { response_time: [\"p(95) < 100ms\"] }\n",
        ];
        insta::assert_snapshot!(plans.map(described).join("\n---\n\n"));
    }

    #[test]
    fn users_take_time_before_the_ramp_where_something_is_done_for_each() {
        let load = "load: { users: 1000000, ramp: 5s, hold: 30s }\ntrials: 1\n";
        for (system, time) in [
            ("attach: { url: \"http://127.0.0.1:8080\" }", "50 s"),
            ("groupware: {}", "1 h 40 min"),
        ] {
            let text = described(&format!("system: {{ {system} }}\n{load}"));
            let line = format!("about {time} for all trials, setup included");
            assert!(text.contains(&line), "{text}");
        }
    }
}
