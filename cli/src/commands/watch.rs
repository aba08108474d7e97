//! `plimsoll watch`, and the live page of `plimsoll run`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lab_archive::Run;
use lab_conduct::RunRequest;
use lab_live::{Analyse, Controls, Live, LiveError, Token};

use crate::args::WatchArgs;
use crate::commands::{print, report};
use crate::exit::{Exit, Failure};
use crate::interrupt::{Interrupt, interrupt};
use crate::live::Page;
use lab_terminal::stderr::say;

/// The interval between two looks at the interrupt.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &WatchArgs) -> Result<Exit, Failure> {
    if !args.run.join("manifest.json").exists() {
        let text = format!("{} is not the archive of a run", args.run.display());
        return Err(Failure::text(Exit::BadInput, text)
            .hint("name the folder that `plimsoll run` printed as its archive"));
    }
    let interrupt = interrupt()?;
    let live = start((args.listen, None), &args.run, None)?;
    print(&format!("live page: {}\n", live.url()))?;
    say(format_args!("Ctrl-C ends it; the run goes on by itself"));
    until_interrupted(&interrupt);
    drop(live);
    Ok(Exit::Success)
}

pub(crate) fn until_interrupted(interrupt: &Interrupt) {
    while !interrupt.load(Ordering::Relaxed) {
        std::thread::park_timeout(LOOK);
    }
}

/// The live page of a run that this process conducts. A page that is not requested is skipped if it can't be served.
pub(crate) fn of_run(
    (page, token): (Page, Option<Token>),
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<Option<Live>, Failure> {
    match page {
        Page::None => Ok(None),
        Page::Asked(listen) => serve((listen, token), request, interrupt).map(Some),
        Page::Offered(listen) => Ok(serve((listen, token), request, interrupt)
            .inspect_err(|failure| say(format_args!("no live page: {}", failure.report)))
            .ok()),
    }
}

fn serve(
    at: (SocketAddr, Option<Token>),
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<Live, Failure> {
    let controls = Controls {
        stop: Interrupt::clone(interrupt),
        pause: request.control.pause.clone(),
        skip: request.control.skip.clone(),
        may_skip: request.plan.search.is_none(),
    };
    let live = start(at, &request.out, Some(controls))?;
    say(format_args!("live page: {}", live.url()));
    Ok(live)
}

fn start(
    (listen, token): (SocketAddr, Option<Token>),
    dir: &Path,
    controls: Option<Controls>,
) -> Result<Live, Failure> {
    warn_if_open(listen, "steer the run");
    let dir = dir.to_path_buf();
    let live = match token {
        None => Live::start(listen, dir, analyse(), controls),
        Some(token) => Live::start_with(token, listen, (dir, analyse(), controls)),
    };
    live.map_err(|error| failure(&error))
}

pub(crate) fn warn_if_open(listen: SocketAddr, may: &str) {
    if !listen.ip().is_loopback() {
        say(format_args!(
            "note: {listen} can be reached from other machines, without encryption: whoever sees the \
             address of the page can {may}"
        ));
    }
}

pub(crate) fn failure(error: &LiveError) -> Failure {
    Failure::new(Exit::BadInput, error).hint("another address, or port 0 for any free one, may do")
}

fn analyse() -> Analyse {
    Box::new(|dir| {
        let run = Run::open(dir).map_err(|error| error.to_string())?;
        report::analysed(run).map_err(|failure| failure.report)
    })
}
