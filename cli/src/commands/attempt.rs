//! `plimsoll try`: one user, one session, every request and answer.

use std::cell::RefCell;
use std::fs;
use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_conduct::{DryRunOutcome, Event, Phase, RunRequest, dry_run, first_trial};
use lab_driver::{Assignment, Mix, Witness, rehearse};
use lab_estimate::cell_words;
use lab_import::quick::by_flags;
use lab_rehearsal::text::{self, Style};
use lab_rehearsal::{Moment, Recorder, Totals, Waiting, har};
use lab_study::Secrets;

use crate::args::TryArgs;
use crate::commands::run::now;
use crate::commands::{load, print, quick, request, script};
use crate::exit::{Exit, Failure, failure};
use crate::files::DiskAndEnvironment;
use crate::interrupt::interrupt;
use lab_terminal::stderr::say;
use lab_terminal::width;

/// The maximum number of a body's lines, unless `--full` is given.
const LINES: usize = 20;
/// The minimum number of columns.
const LEAST_WIDTH: usize = 40;

pub(crate) fn run(args: &TryArgs) -> Result<Exit, Failure> {
    let (loaded, plan) = match &args.url {
        _ if script::is_script(&args.study.study) => {
            let reached = (args.url.as_deref(), &args.reach);
            script::attempt(
                &args.study,
                &DiskAndEnvironment,
                reached,
                &args.variables.env,
            )?
        }
        Some(url) => quick::attempt(&args.study, (url, &args.reach), args.user)?,
        None => load::study(&args.study, &DiskAndEnvironment)?,
    };
    if args.reach.insecure {
        say(format_args!("certificates are not checked (`--insecure`)"));
    }
    let folder = tempfile::Builder::new().prefix("plimsoll-try-").tempdir();
    let folder = folder.map_err(|error| Failure::new(Exit::Internal, &error))?;
    let out = folder.path().to_path_buf();
    let request = request::new(&args.study, (loaded, plan), out, false)?;
    let interrupt = interrupt()?;
    let done = visit(args, &request, &interrupt)?;
    if let Some(path) = &args.har {
        write_har(path, &done)?;
    }
    Ok(done.exit)
}

/// The result of the session.
struct Done {
    moments: Vec<Moment>,
    began: jiff::Timestamp,
    exit: Exit,
}

fn visit(args: &TryArgs, request: &RunRequest, interrupt: &AtomicBool) -> Result<Done, Failure> {
    let trial = first_trial(request)
        .ok_or_else(|| Failure::text(Exit::BadInput, "the study has no trial to try"))?;
    if args.user >= trial.load.users {
        return Err(Failure::text(
            Exit::BadInput,
            format!(
                "there is no user {}: the study has {}, counted from 0",
                args.user, trial.load.users
            ),
        ));
    }
    if !trial.cell.is_empty() && request.plan.trials.len() > 1 {
        let cell = cell_words(&trial.cell);
        say(format_args!("trying {cell}; --set chooses other levels"));
    }
    let style = style(args);
    let mut came = None;
    let mut show = |event: Event| match event {
        Event::Phase(Phase::Starting) => say(format_args!("starting the system")),
        Event::Phase(Phase::Provisioning) => say(format_args!("preparing it and its users")),
        Event::Note(text) => say(format_args!("{text}")),
        _ => {}
    };
    let secrets = request.plan.secrets(&request.loaded.secrets);
    let outcome = dry_run(request, trial, &mut show, interrupt, &mut |drive| {
        came = Some(rehearsed(args, drive, &secrets, interrupt));
    });
    let outcome = outcome.map_err(|error| failure(&error))?;
    let (mut done, totals) = match came {
        Some(came) => came?,
        None => (
            Done {
                moments: Vec::new(),
                began: now(),
                exit: Exit::Success,
            },
            Totals::default(),
        ),
    };
    match outcome {
        DryRunOutcome::Through if done.exit == Exit::Interrupted => {}
        DryRunOutcome::Through => {
            print(&text::totals(totals, style))?;
        }
        DryRunOutcome::SystemFailed(message) => {
            let message = match args.url {
                Some(_) => by_flags(&message),
                None => message,
            };
            say(format_args!(
                "error: the system under test failed: {message}"
            ));
            done.exit = done.exit.max(Exit::SystemFailed);
        }
        DryRunOutcome::Interrupted => done.exit = Exit::Interrupted,
    }
    if done.exit == Exit::Interrupted {
        say(format_args!("interrupted; the system was ended"));
    }
    Ok(done)
}

/// Runs the session, and prints each moment as it happens.
fn rehearsed(
    args: &TryArgs,
    mix: &Mix,
    secrets: &Secrets,
    interrupt: &AtomicBool,
) -> Result<(Done, Totals), Failure> {
    // The user was checked before.
    let (drive, user) = mix.user(args.user).unwrap_or((mix.first(), 0));
    let (drive, waiting) = patient(drive, args.timeout);
    let ended = Arc::clone(&waiting.ended);
    let moments = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&moments);
    let began = now();
    let style = style(args);
    let secrets = (!args.show_secrets).then(|| secrets.clone());
    let workload = Arc::clone(&drive.workload);
    let has_study = args.url.is_none();
    let masked = Rc::new(move |text: &str| match &secrets {
        Some(secrets) => workload.inputs.mask(&secrets.masked(text)),
        None => text.to_owned(),
    });
    let masked_error = Rc::clone(&masked);
    let listener = move |moment: Moment| {
        let text = masked(&text::moment(&moment, style));
        let text = match has_study {
            true => text,
            false => by_flags(&text),
        };
        ended.fetch_add(1, Ordering::Relaxed);
        // A closed stdout (`| head`) ends the printing, and not the session.
        let _ = print(&text);
        kept.borrow_mut().push(moment);
    };
    let recorder = Recorder::new(&drive.workload, args.show_secrets, Box::new(listener));
    let recorder = Rc::new(recorder);
    let given = drive.user_extra.get(user as usize);
    let given = given.into_iter().flatten();
    recorder.learn(
        given
            .filter(|(name, _)| name == "password")
            .map(|(_, value)| value.as_str()),
    );
    recorder.learn(drive.workload.inputs.secrets());
    let witness: Rc<dyn Witness> = Rc::clone(&recorder) as Rc<dyn Witness>;
    let whole = rehearse(&drive, user, &witness, interrupt)
        .map_err(|error| Failure::new(Exit::SystemFailed, &error))?;
    drop(waiting);
    let totals = match whole {
        Some(_) => recorder.finish(),
        None => recorder.totals(),
    };
    let exit = match &whole {
        None => Exit::Interrupted,
        Some(Err(why)) => {
            let why = masked_error(why);
            let _ = print(&format!("the script ended with an error: {why}\n\n"));
            Exit::ThresholdFailed
        }
        Some(Ok(())) if totals.failed == 0 && totals.well > 0 => Exit::Success,
        Some(Ok(())) => Exit::ThresholdFailed,
    };
    let moments = moments.take();
    Ok((
        Done {
            moments,
            began,
            exit,
        },
        totals,
    ))
}

/// Returns the load spec with another time limit, if one is given, and a report of its waits.
fn patient(drive: &Assignment, timeout: Option<Duration>) -> (Assignment, Waiting) {
    let mut drive = drive.clone();
    let limit = timeout.unwrap_or(drive.limits.request_timeout);
    drive.limits.request_timeout = limit;
    (
        drive,
        Waiting::start(limit, |said| say(format_args!("{said}"))),
    )
}

fn style(args: &TryArgs) -> Style {
    let terminal = stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none();
    Style {
        colour,
        width: width::at_least(LEAST_WIDTH),
        lines: (!args.full).then_some(LINES),
    }
}

fn write_har(path: &Path, done: &Done) -> Result<(), Failure> {
    let har = har::har(&done.moments, done.began);
    fs::write(path, format!("{har:#}\n")).map_err(|error| {
        Failure::text(
            Exit::BadInput,
            format!("can't write {}: {error}", path.display()),
        )
    })?;
    say(format_args!(
        "{}: {}",
        path.display(),
        recorded(&done.moments)
    ));
    Ok(())
}

fn recorded(moments: &[Moment]) -> String {
    let count = moments.iter().map(|moment| match moment {
        Moment::Exchanged(exchanged) => exchanged.messages.len(),
        Moment::Logged(_) | Moment::NotDone { .. } => 0,
    });
    let count: usize = count.sum();
    format!("{count} requests, which browsers open in their network tools")
}
