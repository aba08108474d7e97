//! The sections of a report, each written once: they render an analysis as a [`Document`]. They know no medium.

mod by_cell;
mod checks;
mod comparisons;
mod counted;
mod cpu;
mod curves;
mod duet;
mod factors;
mod figures;
mod history;
mod levels;
mod measures;
mod populations;
mod profiles;
mod published;
mod queues;
mod runs;
mod stages;
mod steps;
mod tags;
mod thresholds;
mod transactions;
mod trials;
mod unmeasured;
mod void;
mod waits;
mod words;

pub use history::history;
pub use runs::comparison;

pub(crate) use comparisons::texts;
pub(crate) use published::Entries;
pub(crate) use words::{outcome, threshold_value, threshold_words};

use crate::Analysis;
use crate::document::{Badge, Block, Document, Role, Section, Tone};
use crate::format::{count, plural};
use crate::model::Outcome;
use void::is_void;
use words::{pinning, setups, trial_notes, verdict};

/// The document on a run.
#[must_use]
pub fn report(analysis: &Analysis) -> Document {
    let study = &analysis.study;
    let mut findings = analysis.findings.clone();
    findings.extend(
        analysis
            .speed_note()
            .map(|note| format!("Sped up: {note}.")),
    );
    findings.extend(analysis.certificates_note());
    findings.extend(analysis.http_note());
    let invalid = analysis.summary.invalid;
    let invalid = (invalid > 0).then(|| Badge {
        text: format!("{} invalid", plural(invalid, "trial")),
        tone: Tone::Bad,
    });
    Document {
        kind: "Plimsoll report",
        title: study.title.clone(),
        origin: vec![format!(
            "study {} · workload {} · speed {} · seed {} · begun {}",
            study.name, study.workload, study.speed, study.seed, study.started
        )],
        verdict: Badge {
            text: verdict(analysis),
            tone: tone(analysis),
        },
        is_void: is_void(analysis),
        badges: invalid.into_iter().collect(),
        headline: analysis.headline.clone(),
        load_lines: analysis.load_lines.clone(),
        findings,
        sections: sections(analysis),
        made_by: format!(
            "Made by plimsoll {} from the run's archive; result.json and steps.csv beside this file \
             hold the same figures.",
            analysis.environment.plimsoll_version
        ),
    }
}

fn tone(analysis: &Analysis) -> Tone {
    match analysis.summary.outcome {
        Outcome::Ok if analysis.summary.least_part_of_load.is_none() => Tone::Good,
        Outcome::Ok | Outcome::ThresholdFailed | Outcome::CouldNotTell => Tone::Warn,
        Outcome::TooFewValidTrials
        | Outcome::SearchNotFinished
        | Outcome::SystemFailed
        | Outcome::PreparationFailed
        | Outcome::Regression => Tone::Bad,
    }
}

/// The sections, in the order of the report.
fn sections(analysis: &Analysis) -> Vec<Section> {
    let first = [
        unmeasured::lead(analysis),
        levels::key_figures(analysis),
        populations::populations(analysis),
        stages::stages(analysis),
        transactions::transactions(analysis),
        queues::queues(analysis),
        tags::tags(analysis),
        steps::steps_first(analysis),
        curves::against_users(analysis),
        curves::against_level(analysis),
        curves::scaling(analysis),
        curves::arrivals(analysis),
        published::transfers(analysis),
        factors::two_factors(analysis),
        levels::levels(analysis),
        duet::duet(analysis),
    ];
    let then = [
        unmeasured::demand(analysis),
        unmeasured::exploratory(analysis),
        unmeasured::seen(analysis),
        steps::steps(analysis),
        steps::phases(analysis),
        steps::events(analysis),
        measures::measures(analysis),
        cpu::cpu(analysis),
        profiles::differences(analysis),
        waits::waits(analysis),
        waits::scheduling(analysis),
        counted::counted(analysis),
        trials::through_trials(analysis),
        trials::trials(analysis),
        trials::machines(analysis),
        published::published(analysis).filter(|_| !is_void(analysis)),
        thresholds::thresholds(analysis),
        checks::checks(analysis),
        notes(analysis),
        Some(circumstances(analysis)),
        Some(how_to_read(!analysis.load_lines.is_empty())),
        about(analysis),
    ];
    let first = first.into_iter().flatten();
    let comparisons = comparisons::comparisons(analysis);
    first
        .chain(comparisons)
        .chain(then.into_iter().flatten())
        .collect()
}

fn notes(analysis: &Analysis) -> Option<Section> {
    let notes = trial_notes(analysis);
    (!notes.is_empty()).then(|| Section::new("Notes", vec![Block::List(notes)]))
}

/// The environment of the measurement.
fn circumstances(analysis: &Analysis) -> Section {
    let (study, machine) = (&analysis.study, &analysis.environment);
    let processor = format!("{} × {}", machine.cores, machine.cpu);
    let memory = format!("{} MB", count(machine.memory_mb));
    let system = format!("{}, Linux {}", machine.os, machine.kernel);
    let cores = pinning(analysis);
    let sentence = format!(
        "{processor}, {memory}, {system}; data on {}; {cores}; plimsoll {}",
        machine.data_filesystem, machine.plimsoll_version
    );
    let hash = study.file_sha256.as_ref();
    let hash = hash.map_or_else(String::new, |hash| format!("SHA-256 {hash}"));
    let items = vec![
        ("processor", processor),
        ("memory", memory),
        ("system", system),
        ("data on", machine.data_filesystem.clone()),
        ("cores", cores),
        ("plimsoll", machine.plimsoll_version.clone()),
        ("study file", hash),
    ];
    Section {
        role: Role::Circumstances,
        ..Section::new(
            "Environment",
            vec![
                Block::Facts { sentence, items },
                Block::List(setups(analysis)),
            ],
        )
    }
}

const OF_LINES: &str = "The load line is the most users, of those tried, with whom at least half of the trials \
     stay within the thresholds; its interval tells where that point may lie. It is the edge, not a load \
     to run at. The safe line is lower: the most users of whom it is shown that nearly all trials hold, \
     and how sure that is depends on how many trials there were. n of n trials show at least the part \
     α^(1/n); α is 2.5 % for the highest number of users that half of the trials carry, and for each \
     lower one that is looked at half as much.";

fn how_to_read(has_line: bool) -> Section {
    let lines = [
        "A trial is one run at one level. Transactions, errors, and skipped steps count the whole \
         trial, ramp included. Response times, throughput, CPU, and all counters count the hold \
         only, after its warm-up: what MSER-5 cuts off its beginning, as the check on the steady \
         state says for each trial.",
        "Response time runs from the moment at which a request was due, or, where nothing says when, \
         from its sending, to the last byte of its answer. A timeout is an error, not a \
         transaction. p95: 95 % of the responses were no slower. A dash stands where too few \
         responses were measured to tell (p95 takes 59, p99 299), or nothing was sampled. That \
         count takes responses as independent; those of one stall are not, which is why verdicts \
         compare trials, never responses.",
        "A check judges the measurement, a threshold judges the server. A trial that fails a check \
         is invalid: it is struck out here and counts in no average. A slow server is no reason \
         for that; a generator that could not keep its plan is.",
        "× is our figure divided by the published one. At a speed other than 1, waits, pace, ramp, \
         and hold are shorter by that factor, and rates, CPU, disk, and network are higher for it.",
        "A comparison pairs the trials of each block: what a block does to both sides cancels. p is \
         the sign-flip permutation test's, over all comparisons together; the interval holds every \
         ratio that the test doesn't reject. Six blocks are the fewest that can show anything.",
    ];
    let lines = lines.into_iter().chain(has_line.then_some(OF_LINES));
    let lines = lines.map(str::to_owned).collect();
    Section::of_page("How to read this", vec![Block::List(lines)])
}

fn about(analysis: &Analysis) -> Option<Section> {
    let about = &analysis.study.about;
    let block = Block::Paragraph(about.clone());
    (!about.is_empty()).then(|| Section::of_page("About the study", vec![block]))
}
