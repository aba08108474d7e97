//! `plimsoll profile`: where the CPU time of the system went, or what its threads waited for, by the profiles of a run's
//! trials.

use std::io::{self, IsTerminal};

use lab_analysis::format::{self, count, ms, plural};
use lab_analysis::model::{CellSummary, TrialAnalysis, Verdict};
use lab_analysis::{Analysis, analyse, us_per_transaction};
use lab_archive::{Run, TrialData};
use lab_profile::waits::{Patterns, Summary};
use lab_profile::{Profile, Sums, formats};
use lab_trial::{TrialWaits, cpu_profile};

use crate::commands::report::{self, Reading};
use crate::commands::{print, written};
use crate::exit::{Exit, Failure};
use crate::outlets::{ProfileArgs, ProfileFormat};
use lab_terminal::stderr::say;

/// The profile of one trial, over the hold after its warm-up.
struct Profiled<'a> {
    trial: &'a TrialAnalysis,
    profile: Profile,
    /// Where waits are shown.
    waits: Option<TrialWaits>,
}

/// A cell or a trial to show.
struct Shown {
    title: String,
    us_per_transaction: Option<f64>,
    profile: Profile,
    /// Where waits are shown.
    waits: Option<Summary>,
}

pub(crate) fn run(args: &ProfileArgs) -> Result<Exit, Failure> {
    if let Some(path) = args.output.as_ref().filter(|_| !args.force) {
        written::is_free(path)?;
    }
    let reading = Reading::begin(&args.run);
    let bad = |error: &dyn std::error::Error| Failure::new(Exit::BadInput, error);
    let mut run = report::present(report::open(&args.run)?).map_err(|error| bad(&error))?;
    // The analysis would read all profiles, and compare them.
    let take = |trial: &mut TrialData| {
        let kept = (trial.cpu_profile.take(), std::mem::take(&mut trial.waits));
        trial.drop_explanations();
        kept
    };
    let kept: Vec<_> = run.trials.iter_mut().map(take).collect();
    let analysis = analyse(&run).map_err(|error| bad(&error))?;
    for (trial, kept) in run.trials.iter_mut().zip(kept) {
        (trial.cpu_profile, trial.waits) = kept;
    }
    let (profiled, problems) = match args.waits {
        true => waiting(&run, &analysis),
        false => profiled(&run, &analysis),
    };
    drop(reading);
    for problem in &problems {
        say(format_args!("warning: {problem}"));
    }
    let shown = match args.trial {
        Some(id) => vec![of_trial((args, id), &analysis, profiled)?],
        None => of_cells(args, &analysis, &profiled)?,
    };
    write(args, &analysis.study.title, &shown)
}

/// Returns the profiles of all trials that have one, and the faults of the others.
fn profiled<'a>(run: &Run, analysis: &'a Analysis) -> (Vec<Profiled<'a>>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for trial in &analysis.trials {
        let data = run.trials.iter().find(|data| data.record.id == trial.id);
        match data.map(|data| cpu_profile(data, trial)) {
            Some(Ok(Some(profile))) if !profile.samples.is_empty() => {
                found.push(Profiled {
                    trial,
                    profile,
                    waits: None,
                });
            }
            Some(Err(problem)) => problems.push(format!("trial {}: {problem}", trial.id)),
            Some(Ok(_)) | None => {}
        }
    }
    (found, problems)
}

/// The waits of all trials whose stacks were recorded, and what is wrong with the others.
fn waiting<'a>(run: &Run, analysis: &'a Analysis) -> (Vec<Profiled<'a>>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for trial in &analysis.trials {
        let data = run.trials.iter().find(|data| data.record.id == trial.id);
        let Some(data) = data else { continue };
        let mut waits = lab_trial::waits(data, trial);
        let of_trial = waits.problems.iter();
        problems.extend(of_trial.map(|problem| format!("trial {}: {problem}", trial.id)));
        if let Some(profile) = waits.profile.take() {
            found.push(Profiled {
                trial,
                profile,
                waits: Some(waits),
            });
        }
    }
    (found, problems)
}

/// Summarises the waits of trials; `None` where CPU time is shown, and for files, which have the stacks.
fn waits_of(args: &ProfileArgs, trials: &[&Profiled<'_>]) -> Option<Summary> {
    if args.format != ProfileFormat::Table {
        return None;
    }
    let trials = trials.iter().map(|one| {
        Some(lab_profile::waits::Trial {
            profile: Some(&one.profile),
            ..one.waits.as_ref()?.trial()
        })
    });
    let trials: Option<Vec<_>> = trials.collect();
    Summary::of(&trials?, Patterns::built_in())
}

fn none(what: impl Into<String>) -> Failure {
    Failure::text(Exit::BadInput, what)
        .hint("`profile: true` in the study records them in all trials; see docs/profiles.md")
}

/// What is asked for.
fn what(args: &ProfileArgs) -> &'static str {
    match args.waits {
        true => "profile of waits",
        false => "CPU profile",
    }
}

fn of_trial(
    (args, id): (&ProfileArgs, u32),
    analysis: &Analysis,
    profiled: Vec<Profiled<'_>>,
) -> Result<Shown, Failure> {
    if !analysis.trials.iter().any(|trial| trial.id == id) {
        let last = analysis.trials.iter().map(|trial| trial.id).max();
        let known = last.map_or("it has none".to_owned(), |last| {
            format!("the last one is {last}")
        });
        return Err(Failure::text(
            Exit::BadInput,
            format!("the run has no complete trial {id}: {known}"),
        ));
    }
    let of_id = profiled.into_iter().find(|one| one.trial.id == id);
    let one = of_id.ok_or_else(|| none(format!("trial {id} has no {}", what(args))))?;
    let waits = waits_of(args, &[&one]);
    let Profiled { trial, profile, .. } = one;
    let invalid = match trial.verdict {
        Verdict::Valid => "",
        _ => " (invalid)",
    };
    Ok(Shown {
        title: format!("trial {id}{invalid}, {}", trial.label),
        us_per_transaction: us_per_transaction(std::iter::once(trial)),
        profile,
        waits,
    })
}

/// Returns the cells in the order of the report, filtered by the arguments.
fn of_cells(
    args: &ProfileArgs,
    analysis: &Analysis,
    profiled: &[Profiled<'_>],
) -> Result<Vec<Shown>, Failure> {
    if profiled.is_empty() {
        return Err(none(format!("no trial of this run has a {}", what(args))));
    }
    let labels = |cells: &[&CellSummary]| {
        let labels = cells.iter().map(|cell| cell.label.as_str());
        labels.collect::<Vec<_>>().join(", ")
    };
    let all: Vec<&CellSummary> = analysis.cells.iter().collect();
    let mut cells = all.clone();
    if let Some(sought) = &args.cell {
        cells.retain(|cell| is_named(cell, sought));
        if cells.is_empty() {
            let message = format!(
                "the run has no cell {sought:?}; its cells are {}",
                labels(&all)
            );
            return Err(Failure::text(Exit::BadInput, message));
        }
    }
    let shown = cells
        .iter()
        .filter_map(|cell| of_cell(args, &cell.label, profiled));
    let shown: Vec<Shown> = shown.collect();
    if shown.is_empty() {
        return Err(Failure::text(
            Exit::BadInput,
            format!("no valid trial of {} has a {}", labels(&cells), what(args)),
        )
        .hint("--trial N shows that of a trial, whether it is valid or not"));
    }
    let titles = || shown.iter().map(|one| one.title.as_str());
    if shown.len() > 1 && args.format != ProfileFormat::Table {
        return Err(Failure::text(
            Exit::BadInput,
            format!("{} cells have profiles, and a file has one", shown.len()),
        )
        .hint(format!(
            "--cell chooses one, or --trial a trial: {}",
            titles().collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(shown)
}

/// Merges the valid trials of a cell; `None` if they have no profile.
fn of_cell(args: &ProfileArgs, label: &str, profiled: &[Profiled<'_>]) -> Option<Shown> {
    let of_cell = |one: &&Profiled<'_>| {
        one.trial.label == label && !one.trial.control && one.trial.verdict == Verdict::Valid
    };
    let trials: Vec<&Profiled<'_>> = profiled.iter().filter(of_cell).collect();
    if trials.is_empty() {
        return None;
    }
    Some(Shown {
        title: format!("{label}, {}", plural(trials.len(), "trial")),
        us_per_transaction: us_per_transaction(trials.iter().map(|one| one.trial)),
        profile: Profile::merged(trials.iter().map(|one| &one.profile)),
        waits: waits_of(args, &trials),
    })
}

/// Returns true if the text names this cell: by its whole label, or by levels.
fn is_named(cell: &CellSummary, sought: &str) -> bool {
    if cell.label.eq_ignore_ascii_case(sought.trim()) {
        return true;
    }
    sought.split(',').all(|pair| {
        let Some((factor, level)) = pair.split_once('=') else {
            return false;
        };
        let known = cell.cell.get(factor.trim());
        known.is_some_and(|known| format::level(known) == level.trim())
    })
}

/// Writes the cells or trials, at least one; only tables show several.
fn write(args: &ProfileArgs, study: &str, shown: &[Shown]) -> Result<Exit, Failure> {
    let internal = |error: serde_json::Error| Failure::new(Exit::Internal, &error);
    let title = || format!("{study}: {}", shown[0].title);
    let profile = &shown[0].profile;
    let bytes = match args.format {
        ProfileFormat::Table => {
            let tables = shown.iter().map(|one| table(one, args.top));
            tables.collect::<Vec<_>>().join("\n").into_bytes()
        }
        ProfileFormat::Folded => formats::folded(profile).into_bytes(),
        ProfileFormat::Pprof => pprof(args, profile)?,
        ProfileFormat::Speedscope => formats::speedscope(profile, &title())
            .map_err(internal)?
            .into_bytes(),
        ProfileFormat::Firefox => formats::firefox(profile, &title())
            .map_err(internal)?
            .into_bytes(),
    };
    put(args, &bytes)
}

fn table(shown: &Shown, most: usize) -> String {
    if let Some(waits) = &shown.waits {
        let intervals = count(waits.intervals);
        let table = formats::waits_table(waits, most);
        return format!("{}: {intervals} waits\n{table}", shown.title);
    }
    let sums = Sums::of(&shown.profile);
    let whole = match shown.us_per_transaction {
        Some(us) => format!("{} ms of CPU per transaction, ", ms(us / 1000.0)),
        None => String::new(),
    };
    let samples = count(sums.all.count);
    #[expect(clippy::cast_precision_loss, reason = "a table needs three digits")]
    let transactions = shown
        .us_per_transaction
        .map(|us| sums.all.ns as f64 / 1000.0 / us);
    let table = formats::table(&sums, transactions, most);
    format!("{}: {whole}{samples} samples\n{table}", shown.title)
}

fn pprof(args: &ProfileArgs, profile: &Profile) -> Result<Vec<u8>, Failure> {
    if args.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::text(
            Exit::BadInput,
            "pprof is a binary format, which a terminal can't show",
        )
        .hint("--output FILE.pb.gz writes it to a file"));
    }
    let written = profile.to_pprof();
    if written.other_stacks > 0 {
        say(format_args!(
            "warning: {} of the rarest stacks became {}, {} samples: a file holds 200,000 different stacks and 16 MiB",
            count(written.other_stacks as u64),
            Profile::OTHER,
            count(written.other_samples),
        ));
    }
    Ok(written.bytes)
}

fn put(args: &ProfileArgs, bytes: &[u8]) -> Result<Exit, Failure> {
    if let Some(path) = &args.output {
        written::replace(path, bytes).map_err(|error| written::failure(path, &error))?;
        return Ok(Exit::Success);
    }
    print(bytes)
}
