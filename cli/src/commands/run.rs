//! `plimsoll run`: runs a study, then reports it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_archive::Run;
use lab_conduct::{FailedCheck, IdleWait, Judged, Outcome, RunRequest, disk_needed, preflight};
use lab_estimate::{schedule, warnings};
use lab_live::Token;
use lab_plan::checks::Cause;
use lab_study::{Files, Secrets};
use lab_trial::{TrialJudgement, judge_trial};

use crate::args::{RunArgs, StudyArgs};
use crate::commands::folder::Folder;
use crate::commands::plan::waits;
use crate::commands::script_end::ScriptEnd;
use crate::commands::{RUNS, export, fleet, print, quick, report, request, script, watch};
use crate::exit::{Exit, Failure, failure};
use crate::files::{Disk, DiskAndEnvironment};
use crate::interrupt::interrupt;
use crate::live::Page;
use lab_terminal::progress::Display;
use lab_terminal::stderr::say;
use lab_terminal::width;

pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let send = export::destinations(&args.send)?;
    args.out.as_deref().map_or(Ok(()), export::is_folder)?;
    let files: &dyn Files = if args.dry_run {
        &Disk
    } else {
        &DiskAndEnvironment
    };
    let flags = (&args.quick, &args.script);
    let ((loaded, plan), end) = script::or_study(&args.study, files, flags)?;
    let warnings = warnings(&loaded, &plan);
    if args.dry_run {
        let out = args
            .out
            .clone()
            .unwrap_or_else(|| Path::new(RUNS).join("dry-run"));
        let request = request::new(&args.study, (loaded, plan), out, false)?;
        let (study, plan) = (&request.loaded.study, &request.plan);
        let text = schedule(study, plan, disk_needed(plan), waits(args.patience));
        print(&(text + &warnings))?;
        print(&fleet::planned(&args.agents, &request.loaded.study)?)?;
        print(&fleet::planned_machines(&args.agents, &request.plan)?)?;
        preflight(&request).map_err(|error| failure(&error))?;
        return print("dry run: nothing was started\n");
    }
    warnings
        .lines()
        .for_each(|line| say(format_args!("{line}")));
    let out = out(args, &plan.study)?;
    let mut request = request::new(&args.study, (loaded, plan), out.path.clone(), args.resume)?;
    request.idle_wait = args.patience;
    // System hosts are reserved first, by name; load generators may be any other agents.
    request.machines = fleet::machines(&args.agents, &request.plan)?;
    request.generators = fleet::crew(&args.agents, &request.loaded.study)?;
    request::settle(&mut request)?;
    let sending = export::begin(&send, &request.out)?;
    let exit = conduct(&request, (args.live.page(), args.live.token()))
        .and_then(|outcome| finish(args, &outcome, (&request.loaded.secrets, end.as_ref())));
    sending.end();
    exit
}

/// Runs the trials with the progress display on stderr.
pub(crate) fn conduct(
    request: &RunRequest,
    page: (Page, Option<Token>),
) -> Result<Outcome, Failure> {
    let interrupt = interrupt()?;
    // Lives until the run is over, and reported if it fails.
    let _live = watch::of_run(page, request, &interrupt)?;
    let mut display = Display::new();
    let mut judge = |dir: &Path, id: u32| judged(dir, id);
    let mut show = |event| display.show(&event);
    let outcome = lab_conduct::run(request, &mut show, &mut judge, &interrupt);
    display.finish();
    outcome.map_err(|error| {
        let failure = failure(&error);
        if failure.exit != Exit::BadInput {
            report_finished(&request.out);
        }
        failure
    })
}

/// Returns the verdict of a trial, by its archive.
fn judged(dir: &Path, id: u32) -> Judged {
    let judgement = Run::open_trial(dir, id)
        .map_err(|error| error.to_string())
        .and_then(|run| report::present(run).map_err(|error| error.to_string()))
        .and_then(|run| judge_trial(&run, id).map_err(|error| error.to_string()));
    judgement.map_or_else(Judged::unreadable, told)
}

fn told(judgement: TrialJudgement) -> Judged {
    let failed = judgement.failed.into_iter().map(|check| FailedCheck {
        name: check.id.title().to_owned(),
        evidence: check.evidence,
        advice: check.advice.unwrap_or_default(),
    });
    let mut failed: Vec<FailedCheck> = failed.collect();
    let suspects = judgement.suspects.iter();
    let suspects = suspects.map(|check| format!("{}: {}", check.id.title(), check.evidence));
    let suspects: Vec<String> = suspects.collect();
    if let Some(first) = failed.first_mut().filter(|_| !suspects.is_empty()) {
        let perhaps = format!("; perhaps because of {}", suspects.join("; "));
        first.evidence.push_str(&perhaps);
    }
    Judged {
        failed,
        is_outside: judgement.cause == Some(Cause::Outside),
        system_failed: judgement.system_failed,
        before_load: judgement.before_load,
        judgement: judgement.judgement,
        cpu: judgement.cpu,
    }
}

/// A failed run still reports its finished trials.
fn report_finished(dir: &Path) {
    if let Ok(analysis) = report::read(dir)
        && analysis.summary.complete > 0
        && report::write_files(&analysis, dir).is_ok()
    {
        let path = dir.join("report.html");
        say(format_args!(
            "{} finished trials are in {}",
            analysis.summary.complete,
            path.display()
        ));
    }
}

/// Reports the archive, also of an interrupted run.
fn finish(
    args: &RunArgs,
    outcome: &Outcome,
    (secrets, script): (&Secrets, Option<&ScriptEnd>),
) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    if outcome.completed > 0 {
        let analysis = report::read(&outcome.dir)?;
        report::write_files(&analysis, &outcome.dir)?;
        let page = lab_report::write::terminal(&analysis, width::of_reports());
        let path = outcome.dir.join("report.html");
        let printed = print(&format!("{page}\nreport: {}\n", path.display()));
        // The interruption may be that the terminal is gone.
        if !outcome.interrupted {
            printed?;
        }
        exit = report::exit(&analysis, args.gate);
        if let Some(script) = script {
            script.finish(&analysis, &outcome.dir)?;
        }
    }
    let resume = format!(
        "plimsoll run {} {}--resume --out {}",
        args.study.study.display(),
        quick::again(&args.quick)
            + &script::again(&args.script, secrets)
            + &again(&args.study, secrets)
            + &waits_again(args.patience)
            + &fleet::again(&args.agents),
        outcome.dir.display()
    );
    if !outcome.interrupted && outcome.disturbed > 0 {
        let disturbed = outcome.disturbed;
        let (trials, them) = if disturbed == 1 {
            ("trial was", "it")
        } else {
            ("trials were", "them")
        };
        say(format_args!(
            "{disturbed} {trials} disturbed from outside; on a quiet machine this repeats {them}, and keeps \
             the rest:\n  {resume}"
        ));
    }
    if outcome.interrupted {
        say(format_args!(
            "interrupted: {} of {} trials are in the archive. Go on with\n  {resume}",
            outcome.completed, outcome.trials,
        ));
        exit = exit.max(Exit::Interrupted);
    }
    Ok(exit)
}

/// Returns the flags that a resumed run needs again, each followed by a space.
fn again(args: &StudyArgs, secrets: &Secrets) -> String {
    let mut flags = String::new();
    if (args.speed - 1.0).abs() > f64::EPSILON {
        flags.push_str(&format!("--speed {} ", args.speed));
    }
    for (key, value) in secrets.shown_overrides(&args.set) {
        flags.push_str(&format!("--set '{key}={value}' "));
    }
    if let Some(seed) = args.seed {
        flags.push_str(&format!("--seed {seed} "));
    }
    flags
}

/// The flag for the maximum wait for an idle machine, unless it is the default.
fn waits_again(patience: IdleWait) -> String {
    let seconds = |time: Duration| match time.is_zero() {
        true => "0".to_owned(),
        false => format!("{}s", time.as_secs()),
    };
    match patience == IdleWait::default() {
        true => String::new(),
        false => format!(
            "--patience {},{} ",
            seconds(patience.trial),
            seconds(patience.run)
        ),
    }
}

/// The archive's folder: the given one, the newest of this study to resume, or a new one.
fn out(args: &RunArgs, study: &str) -> Result<Folder, Failure> {
    let runs = Path::new(RUNS);
    match (&args.out, args.resume) {
        (Some(out), _) => Ok(Folder::named(out.clone())),
        (None, true) => newest(runs, study).map(Folder::named),
        (None, false) => Ok(Folder::new(runs, study, now())),
    }
}

/// The newest unfinished archive of a study; names end in the time, so that they sort by it.
fn newest(runs: &Path, study: &str) -> Result<PathBuf, Failure> {
    let none = || {
        Failure::text(
            Exit::BadInput,
            format!("{} has no unfinished run of “{study}”", runs.display()),
        )
        .hint("name its folder with --out, or start a new run without --resume")
    };
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(none()),
        Err(error) => return Err(Failure::new(Exit::Internal, &error)),
    };
    let prefix = format!("{study}-");
    let time =
        |name: &str| name.len() == 15 && name.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.strip_prefix(&prefix).is_some_and(time))
        .filter(|name| unfinished(&runs.join(name)))
        .max()
        .map(|name| runs.join(name))
        .ok_or_else(none)
}

/// Returns true if trials of its plan are missing, or were disturbed.
fn unfinished(dir: &Path) -> bool {
    let result = fs::read(dir.join("result.json")).ok();
    let result = result.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let summary = result.map(|result| result["summary"].clone());
    if summary.is_some_and(|summary| {
        let outcome = summary["outcome"].as_str();
        let may_go_on = ["search_not_finished", "preparation_failed"];
        summary["disturbed"].as_u64() > Some(0) || may_go_on.map(Some).contains(&outcome)
    }) {
        return true;
    }
    let plan = fs::read(dir.join("plan.json")).ok();
    let plan = plan.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let Some(trials) = plan.as_ref().and_then(|plan| plan["trials"].as_array()) else {
        return false;
    };
    let folder = |trial: &serde_json::Value| {
        let id = trial["id"].as_u64().unwrap_or_default();
        dir.join("trials")
            .join(format!("{id:03}"))
            .join("trial.json")
    };
    trials.iter().any(|trial| !folder(trial).exists())
}

/// The current time, which names archives and dates recordings.
pub(crate) fn now() -> jiff::Timestamp {
    clock::now()
}

/// Only this module of the program reads the calendar clock: archives are named after it.
mod clock {
    use jiff::Timestamp;

    #[expect(
        clippy::disallowed_methods,
        reason = "archives are named after the time of day"
    )]
    pub(super) fn now() -> Timestamp {
        Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
