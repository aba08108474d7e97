//! Analyses a whole run: combines the results of all parts.

use std::collections::BTreeSet;

use lab_archive::{Run, TrialData};
use lab_asked::Counting;
use lab_counts::Scope;
use lab_plan::checks::Limits;
use lab_plan::{Decides, HowEnded, Plan};
use lab_trial::{Input, ReportError, Warmup, step_names};
use sha2::{Digest, Sha256};

use crate::compare::Differences;
use crate::duet::{self, Duets};
use crate::model::{
    Analysis, Answer, Check, CheckOutcome, Decision, HowPaired, LineDifference, LoadLine, Outcome,
    ProfileDifference, RESULT_SCHEMA, Reason, Scaling, StudyFacts, Summary, TrialAnalysis, Verdict,
    Waiting,
};
use crate::published::tables;
use crate::sample::{CellSample, Fate};
use crate::{
    asked, capacity, cells, checks, compare, cpu, effects, findings, left_out, limits_set, line,
    profiles, repeated, sample, unmeasured, waits,
};

/// The notes on a duet's figures that a reader needs.
const HALF: &str = "A duet: two variants ran at the same time, each with its own generator, and shared this \
                    machine. What is compared is how they differ; what either takes or carries is that of \
                    half a machine beside a busy other half, and says little of a whole one.";

/// Analyses an archive.
///
/// # Errors
/// See [`ReportError`]: the archive's own study, plan, or histograms can't be used.
pub fn analyse(run: &Run) -> Result<Analysis, ReportError> {
    analyse_by(run, None)
}

/// Analyses an archive as if its study named this measure as the deciding one; `None` leaves the study's choice.
///
/// # Errors
/// See [`ReportError`]: the archive's own study, plan, or histograms can't be used, or the measure is of a step that
/// the study doesn't have.
pub fn analyse_by(run: &Run, decides: Option<Decides>) -> Result<Analysis, ReportError> {
    let plan = plan_by(run, decides)?;
    let (study, steps) = (&plan.question, step_names(&plan.question));
    let inputs = inputs(run, &plan, &steps)?;
    let mut trials = analyse_trials(&inputs, plan.search.is_some())?;
    let samples = sample::samples(&plan, &trials);
    let left_out = left_out::left_out(&plan, &trials);
    duet::couple(&mut trials);
    repeated::choose(&mut trials);
    let profiled = cpu::profiled(&inputs, &mut trials);
    let cells = cells::summarise(study, &steps, &trials);
    let functions = profiles::differences(&plan, &cells, &trials, &profiled);
    let duets = Duets::of(&plan, &inputs, &trials)?;
    let mut differences = compare::compare(&plan, &trials, (&cells, &samples), duets.as_ref());
    left_out::add_to(&mut differences.answer, &left_out, &plan);
    let waiting = waits::of_run(&plan, &inputs, (&cells, &mut trials), &differences);
    let counting = asked::of_run(&plan, &inputs, (&cells, &mut trials));
    let usl = capacity::scaling(study, &trials);
    let published = tables::compare(study, plan.speed, &trials, &cells);
    let checks = checks::of_run(study, plan.seed, run, &trials);
    let load_lines = line::load_lines(&plan, &trials);
    let answer = differences.answer.as_ref();
    let summary = summarise((&plan, &load_lines), &checks, (&trials, &samples), answer);
    let line_differences = line::differences(&load_lines);
    let facts = facts(run, &plan, steps);
    let reasons = unmeasured::reasons(run, &trials);
    let found = findings::Facts {
        study: &facts,
        environment: &run.manifest.environment,
        summary: &summary,
        cells: &cells,
        trials: &trials,
        published: &published,
    };
    let headline = headline_of(&found, &reasons, (&load_lines, answer), &study.checks);
    let mut findings = findings_of(&found, duets.is_some(), &line_differences);
    let causes = (&functions[..], &waiting, &counting);
    findings.extend(explained(&differences, causes, usl.as_ref()));
    Ok(Analysis {
        schema: RESULT_SCHEMA,
        study: facts,
        environment: run.manifest.environment.clone(),
        headline,
        answer: differences.answer,
        summary,
        checks,
        seen: unmeasured::seen(&cells, &trials),
        exploratory: unmeasured::exploratory(&plan, &cells, &trials),
        demand: unmeasured::demand(&plan, &cells, &trials, &differences.comparisons),
        cpu_profiles: cpu::summarise(&cells, &trials, &profiled),
        cells,
        samples,
        comparisons: differences.comparisons,
        main_effects: differences.main_effects,
        control: differences.control,
        inference: differences.inference,
        duet: duets.map(|duets| duets.told(&trials, &plan, left_out)),
        trials,
        load_line: load_lines.first().cloned(),
        load_lines,
        load_line_differences: line_differences,
        usl,
        profile_differences: functions,
        waiting,
        counting,
        findings,
        published,
        reasons,
    })
}

/// What explains differences: factors, functions, waits, and counters of the systems; and how throughput scales.
fn explained(
    differences: &Differences,
    (profiles, waiting, counting): (&[ProfileDifference], &Waiting, &Counting),
    usl: Option<&Scaling>,
) -> Vec<String> {
    let counted = counting.ask_differences.iter();
    let functions = profiles::sentences(profiles).into_iter();
    let effects = effects::sentences(differences).into_iter();
    let found = effects.chain(functions).chain(waits::sentences(waiting));
    let found = found.chain(counted.filter_map(lab_asked::summary));
    found.chain(usl.map(capacity::sentence)).collect()
}

/// The plan of a run, with the deciding measure replaced if another one is given.
fn plan_by(run: &Run, decides: Option<Decides>) -> Result<Plan, ReportError> {
    let mut plan = lab_trial::plan(run)?;
    plan.question.decides = decides.or(plan.question.decides);
    known_part(&plan)?;
    Ok(plan)
}

/// Checks that the study has the part of the load that the deciding measure names.
fn known_part(plan: &Plan) -> Result<(), ReportError> {
    let Some(Decides::Named(named)) = plan.question.decides else {
        return Ok(());
    };
    let outline = &plan.question.workload;
    let names: Vec<&str> = match named.scope() {
        Scope::All | Scope::Measure(_) => return Ok(()),
        Scope::Step(_) => outline.steps.iter().map(String::as_str).collect(),
        Scope::Population(_) => outline
            .populations
            .iter()
            .map(|one| one.name.as_str())
            .collect(),
        Scope::Tag(_) => outline.tags.iter().map(|one| one.name.as_str()).collect(),
        Scope::Transaction(_) => outline.transactions.iter().map(String::as_str).collect(),
        Scope::Stage(_) => {
            let stages = plan.trials.iter().flat_map(|trial| &trial.load.stages);
            let unique: BTreeSet<&str> = stages.map(|stage| stage.name.as_str()).collect();
            unique.into_iter().collect()
        }
    };
    let Some((kind, name)) = named.scope().named() else {
        return Ok(());
    };
    if names.contains(&name) {
        return Ok(());
    }
    Err(ReportError::UnknownPart {
        measure: named.text(),
        kind,
        name: name.to_owned(),
        known: match names.is_empty() {
            true => format!("it has no {kind}s"),
            false => format!("its {kind}s are {}", names.join(", ")),
        },
    })
}

fn inputs<'a>(
    run: &'a Run,
    plan: &'a Plan,
    steps: &'a [String],
) -> Result<Vec<Input<'a>>, ReportError> {
    let find = plan.search.as_ref().map(|search| &search.find);
    let input = |data: &'a TrialData| {
        let id = data.record.id;
        let planned = lab_trial::planned(plan, data);
        Ok(Input {
            manifest: &run.manifest,
            study: &plan.question,
            steps,
            planned: planned.ok_or(ReportError::UnknownTrial(id))?,
            find,
            data,
        })
    };
    repeated::in_order(&run.trials)
        .into_iter()
        .map(input)
        .collect()
}

/// Judges all trials, finds the warm-up of each cell from its valid trials (or, without any, from all), and computes
/// the figures after the warm-up. A search judged each trial alone, when the trial ended; the report of a search judges
/// it in the same way.
fn analyse_trials(
    inputs: &[Input<'_>],
    is_search: bool,
) -> Result<Vec<TrialAnalysis>, ReportError> {
    if is_search {
        return inputs.iter().map(lab_trial::alone).collect();
    }
    let judged: Result<Vec<_>, _> = inputs.iter().map(lab_trial::judge).collect();
    let judged = judged?;
    let warmup = |of: &Input<'_>| {
        let same = |other: &Input<'_>| {
            let (a, b) = (&of.planned.load, &other.planned.load);
            of.planned.cell == other.planned.cell && a == b
        };
        let of_cell = || {
            let both = inputs.iter().zip(&judged);
            both.filter(|(other, one)| same(other) && !one.batches.is_empty())
        };
        let any_valid = of_cell().any(|(_, one)| one.is_valid());
        let series: Vec<_> = of_cell()
            .filter(|(_, one)| one.is_valid() || !any_valid)
            .map(|(_, one)| one.batches.as_slice())
            .collect();
        lab_trial::warmup(&series)
    };
    let warmups = in_common(inputs, inputs.iter().map(warmup).collect());
    let all = inputs.iter().zip(judged).zip(warmups);
    all.map(|((input, judged), warmup)| lab_trial::figures(input, judged, &warmup))
        .collect()
}

/// Compared cells lose the same part of their holds: the longest warm-up among them. Otherwise, effects of a cell's
/// start would be in the figures of one and not of the other. Holds of other lengths keep their own warm-up.
fn in_common(inputs: &[Input<'_>], own: Vec<Warmup>) -> Vec<Warmup> {
    let times = |input: &Input<'_>| (input.planned.load.ramp_ms, input.planned.load.hold_ms);
    let cut = |of: &Input<'_>| {
        let alike = inputs
            .iter()
            .zip(&own)
            .filter(|(other, _)| times(other) == times(of));
        alike.map(|(_, warmup)| warmup.cut_ms).fold(0.0, f64::max)
    };
    let cuts: Vec<f64> = inputs.iter().map(cut).collect();
    let both = own.into_iter().zip(cuts);
    both.map(|(warmup, cut_ms)| warmup.at_least(cut_ms))
        .collect()
}

fn facts(run: &Run, plan: &Plan, steps: Vec<String>) -> StudyFacts {
    let question = &plan.question;
    let file_sha256 = |(_, bytes): &(String, Vec<u8>)| hex::encode(Sha256::digest(bytes));
    StudyFacts {
        name: plan.study.clone(),
        title: plan.title.clone(),
        about: question.about.clone(),
        workload: question.workload.name.clone(),
        workload_sha256: question.workload.sha256.clone(),
        file_sha256: run.files.first().map(file_sha256),
        seed: plan.seed,
        speed: plan.speed,
        started: run.manifest.started.clone(),
        overrides: run.manifest.overrides.clone(),
        decides: question.decides,
        fixed_rate: plan.fixes_rate(),
        pairing: question.pairing.as_ref().map(|pairing| HowPaired {
            duet: question.duet,
            auto: pairing.auto,
            why: pairing.why.clone(),
        }),
        limits_set: limits_set::words(&question.checks),
        factors: question
            .matrix
            .iter()
            .map(|factor| factor.name.clone())
            .collect(),
        steps,
        unseeded_steps: question.workload.unseeded_steps.clone(),
    }
}

/// The sentences above the report, with the answer first.
fn headline_of(
    found: &findings::Facts<'_>,
    reasons: &[Reason],
    (lines, answer): (&[LoadLine], Option<&Answer>),
    limits: &Limits,
) -> String {
    let (summary, trials) = (found.summary, found.trials);
    let is_too_few = summary.outcome == Outcome::TooFewValidTrials;
    let why = is_too_few.then(|| unmeasured::why(reasons, summary, (trials, limits)));
    let own = || findings::headline(found.study, summary, found.cells, trials);
    let headline = headline((summary, lines), why.flatten(), own);
    with_answer(headline, summary, answer)
}

/// The sentences above the report: how a search ended, and why no trial is valid or what failed.
fn headline(
    (summary, lines): (&Summary, &[LoadLine]),
    why: Option<String>,
    own: impl Fn() -> String,
) -> String {
    let failed = matches!(
        summary.outcome,
        Outcome::SystemFailed | Outcome::PreparationFailed
    );
    let says_something = summary.valid > 0 || lines.iter().any(|line| line.lower_bound.is_some());
    let of_line = line::headline(lines).filter(|_| says_something);
    let sentences = match (why, of_line) {
        (Some(why), of_line) => of_line.into_iter().chain([why]).collect::<Vec<_>>(),
        (None, Some(of_line)) if failed => vec![own(), of_line],
        (None, Some(of_line)) => vec![of_line],
        (None, None) => vec![own()],
    };
    sentences.join(" ")
}

/// Puts the answer first, unless the run has a failure that prevents one.
fn with_answer(headline: String, summary: &Summary, answer: Option<&Answer>) -> String {
    match (answer, summary.outcome) {
        (None, _) => headline,
        (Some(_), Outcome::SystemFailed | Outcome::PreparationFailed) => headline,
        (Some(answer), _) => format!("{} {headline}", answer.sentence),
    }
}

/// The results of the limits, the load lines, and the figures, in this order.
fn findings_of(
    found: &findings::Facts<'_>,
    is_duet: bool,
    lines: &[LineDifference],
) -> Vec<String> {
    let limits = limits_set::sentence(&found.study.limits_set).into_iter();
    let paired = found.study.pairing.as_ref().map(HowPaired::sentence);
    let half = is_duet.then(|| HALF.to_owned());
    let lines = lines.iter().map(line::difference_sentence);
    let figures = findings::findings(found);
    let limits = limits.chain(paired);
    limits.chain(half).chain(lines).chain(figures).collect()
}

fn summarise(
    (plan, lines): (&Plan, &[LoadLine]),
    checks: &[Check],
    (trials, samples): (&[TrialAnalysis], &[CellSample]),
    answer: Option<&Answer>,
) -> Summary {
    let valid: Vec<&TrialAnalysis> = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid)
        .collect();
    let planned = repeated::count(trials);
    let thresholds = || valid.iter().flat_map(|trial| &trial.thresholds);
    let is_search = plan.search.is_some();
    let labels = |of: &dyn Fn(&TrialAnalysis) -> bool| -> BTreeSet<&str> {
        let some = trials.iter().filter(|trial| of(trial));
        some.map(|trial| trial.label.as_str()).collect()
    };
    let (ran, measured) = (
        labels(&|_| true),
        labels(&|trial| trial.verdict == Verdict::Valid),
    );
    let in_the_end = |failed: fn(&TrialAnalysis) -> bool| {
        let last = trials.iter().filter(|trial| trial.repeated_by.is_none());
        last.filter(|trial| failed(trial)).count()
    };
    let mut summary = Summary {
        outcome: Outcome::Ok,
        planned: plan.trials.len(),
        complete: planned.complete,
        valid: planned.valid,
        invalid: planned.complete - planned.valid,
        repeats: trials.len() - planned.complete,
        disturbed: planned.disturbed,
        system_failures: in_the_end(|trial| trial.system_failure.is_some()),
        aborted: match is_search {
            true => 0,
            false => trials.iter().filter(|trial| trial.aborted).count(),
        },
        preparation_failures: in_the_end(|trial| trial.preparation_failure.is_some()),
        unstarted: repeated::unstarted(trials),
        warnings: trials
            .iter()
            .flat_map(|trial| &trial.checks)
            .chain(checks)
            .filter(|check| check.outcome == CheckOutcome::Warn)
            .count(),
        thresholds: thresholds().count(),
        thresholds_failed: thresholds().filter(|threshold| !threshold.holds).count(),
        cells_without_valid_trial: ran.len() - measured.len(),
        // A search exceeds the capacity of the server; its load line reports the excess.
        least_part_of_load: trials
            .iter()
            .filter(|_| plan.search.is_none())
            .filter_map(TrialAnalysis::part_of_load)
            .reduce(f64::min),
    };
    let lacking = ran.difference(&measured);
    let is_lacking = match is_search {
        true => measured.is_empty(),
        false => {
            ran.is_empty()
                || lacking
                    .copied()
                    .any(|label| !is_aborted(&summary, samples, label))
        }
    };
    let lines = is_search.then_some(lines);
    summary.outcome = outcome(&summary, (lines, is_lacking), answer.map(|a| a.decision));
    summary
}

/// Returns true if a cell has no valid trial because `abort_on` ended its trials, or trials that ran at the same time.
fn is_aborted(summary: &Summary, samples: &[CellSample], label: &str) -> bool {
    let sample = samples.iter().find(|one| one.label == label);
    let by_itself = |of: &CellSample| of.count(Fate::Aborted) + of.count(Fate::Valid) > 0;
    summary.aborted > 0 && sample.is_some_and(by_itself)
}

/// `lines` are the load lines of a search. A search exceeds the capacity of the system and the generator: a level at
/// which one of them fails is a result, unless it ended the search.
fn outcome(
    summary: &Summary,
    (lines, is_lacking): (Option<&[LoadLine]>, bool),
    decision: Option<Decision>,
) -> Outcome {
    let none = summary.valid == 0;
    let is_search = lines.is_some();
    let lines = lines.unwrap_or_default();
    let ended = |how| lines.iter().any(|line| line.search.how == how);
    if ended(HowEnded::SystemFailed) || summary.system_failures > 0 && (none || !is_search) {
        Outcome::SystemFailed
    } else if ended(HowEnded::PreparationFailed)
        || summary.preparation_failures > 0 && (none || !is_search)
    {
        Outcome::PreparationFailed
    } else if is_lacking {
        Outcome::TooFewValidTrials
    } else if lines.iter().any(|line| !line.finished) {
        Outcome::SearchNotFinished
    } else if decision.is_some_and(|decision| !decision.is_known()) {
        Outcome::CouldNotTell
    } else if decision == Some(Decision::Worse) {
        Outcome::Regression
    } else if summary.is_beyond_limit() {
        Outcome::ThresholdFailed
    } else {
        Outcome::Ok
    }
}
