//! Half a day of load by 200 agents in one archive: its size on disk, and the cost of its analysis. It is no run of
//! that length: plan, record, and counters are a real run's, the windows are random.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_archive::{
    Agent, ClockLine, Kind, LatenessLine, Outcome, Run, RunWriter, Series, TrialData, TrialWriter,
    WindowLine,
};
use lab_counts::{StepCounts, WindowCounts};
use nix::sys::resource::{UsageWho, getrusage};
use plimsoll_tests::wait_until;

use crate::clock::now;
use crate::common::{Error, Server, cpu_us};
use crate::nginx::Nginx;

const AGENTS: u32 = 200;
const STEPS: u16 = 30;
const HOURS: u64 = 12;
const HOLD_S: u64 = HOURS * 3600;
/// Answers of each step per second: 15,000 over all steps.
const PER_STEP_S: u64 = 500;
/// The interval between two measurements of an agent's clock.
const CLOCK_S: u64 = 31;
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// Prints the figures.
pub(crate) fn measure(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)?;
    let scratch = tempfile::tempdir_in(folder)?;
    let nginx = Nginx::start(1)?;
    let short = scratch.path().join("short");
    let lab = Lab::here()?;
    lab.run(&study(scratch.path(), &nginx, "short", "10s")?, &short)?;
    let long = scratch.path().join("long");
    lab.begin(&study(scratch.path(), &nginx, "long", "12h")?, &long)?;
    let (real, begun) = (opened(&short)?, opened(&long)?);
    let [real] = real.trials.as_slice() else {
        return Err(Error::Peer("the short run has no trial".to_owned()));
    };
    let lines = write(&begun, real)?;
    let trial = long.join("trials/001");
    let mb = |name: &str| Ok::<_, Error>(fs::metadata(trial.join(name))?.len() as f64 / 1e6);
    println!("archive: {HOURS} h of {AGENTS} agents, {STEPS} steps, 15,000 answers a second");
    for name in ["windows.jsonl", "steps.hlog", "monitor.csv", "clocks.jsonl"] {
        println!("  {name:<32} {:>9.1} MB", mb(name)?);
    }
    println!("  windows                          {:>9}", lines.windows);
    println!("  lines of clocks                  {:>9}", lines.clocks);
    let page = scratch.path().join("page.html");
    let (cpu, begin) = (cpu_us(UsageWho::RUSAGE_CHILDREN)?, now());
    lab.report(&long, &page)?;
    let (cpu, passed) = (cpu_us(UsageWho::RUSAGE_CHILDREN)? - cpu, begin.elapsed());
    println!(
        "  its page                         {:>9.1} KB",
        fs::metadata(&page)?.len() as f64 / 1e3
    );
    println!(
        "  analysed and written in          {:>9.1} s   {:.1} s of CPU",
        passed.as_secs_f64(),
        cpu / 1e6
    );
    println!(
        "  memory at most                   {:>9.0} MB   (as much for any longer run)",
        most_mb()?
    );
    Ok(())
}

/// Returns the maximum memory of any child process so far.
fn most_mb() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(std::io::Error::from)?;
    Ok(usage.max_rss() as f64 / 1024.0)
}

/// The released program.
struct Lab(PathBuf);

impl Lab {
    /// Returns the program that was built beside this one.
    fn here() -> Result<Self, Error> {
        let program = std::env::current_exe()?.with_file_name("plimsoll");
        match program.is_file() {
            true => Ok(Self(program)),
            false => Err(Error::Peer(format!("{} is missing", program.display()))),
        }
    }

    fn command(&self, word: &str, file: &Path) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(word).arg(file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a study to its end; its checks may find it invalid.
    fn run(&self, study: &Path, out: &Path) -> Result<(), Error> {
        let mut command = self.command("run", study);
        let run = command.args(["--lenient", "--out"]).arg(out);
        let output = run.stderr(Stdio::piped()).output()?;
        match out.join("trials/001/trial.json").is_file() {
            true => Ok(()),
            false => Err(Error::Peer(String::from_utf8_lossy(&output.stderr).into())),
        }
    }

    /// Runs a study until its trial has begun.
    fn begin(&self, study: &Path, out: &Path) -> Result<(), Error> {
        let mut command = self.command("run", study);
        let run = Server(command.args(["--lenient", "--out"]).arg(out).spawn()?);
        let windows = out.join("trials/001.partial/windows.jsonl");
        wait_until(BEGINS_WITHIN, "the long run has begun", || {
            windows.is_file()
        });
        drop(run);
        Ok(())
    }

    fn report(&self, of: &Path, page: &Path) -> Result<(), Error> {
        let mut command = self.command("report", of);
        let report = command.args(["--format", "html", "--lenient"]);
        report.stdout(File::create(page)?).stderr(Stdio::piped());
        let output = report.output()?;
        match fs::metadata(page)?.len() > 0 {
            true => Ok(()),
            false => Err(Error::Peer(String::from_utf8_lossy(&output.stderr).into())),
        }
    }
}

fn opened(archive: &Path) -> Result<Run, Error> {
    Run::open(archive).map_err(|error| Error::Peer(error.to_string()))
}

/// A study of many steps.
fn study(folder: &Path, nginx: &Nginx, name: &str, hold: &str) -> Result<PathBuf, Error> {
    let step = |n| format!("    - {{ step: 'S{n}', wait: 100ms..200ms, request: GET / }}\n");
    let steps: String = (0..STEPS).map(step).collect();
    let workload = format!("workload: many\nsession:\n  steps:\n{steps}");
    fs::write(folder.join("many.workload.yaml"), workload)?;
    let path = folder.join(format!("{name}.study.yaml"));
    let text = format!(
        "study: {name}\ntitle: Many steps\nworkload: many\nsystem: {{ attach: {{ url: {} }} }}\n\
         load: {{ users: 50, ramp: 5s, hold: {hold} }}\ntrials: 1\nrepeats: 0\n",
        nginx.url()
    );
    fs::write(&path, text)?;
    Ok(path)
}

/// The numbers of written lines.
struct Lines {
    windows: u64,
    clocks: u64,
}

/// Writes the trial of a started run, from another's record and random windows.
fn write(begun: &Run, real: &TrialData) -> Result<Lines, Error> {
    let fail = |error: lab_archive::ArchiveError| Error::Peer(error.to_string());
    let writer = RunWriter::open_for_resume(&begun.dir, &begun.manifest, &begun.plan, &begun.files);
    let writer = writer.map_err(fail)?;
    let mut trial = writer.trial(1).map_err(fail)?;
    let ramp_ms = real.record.ramp_ms;
    let window_ms = begun.plan["trials"][0]["load"]["window_ms"].as_u64();
    let window_ms = window_ms.ok_or_else(|| Error::Peer("the plan has no windows".to_owned()))?;
    let lines = Lines {
        windows: windows(&mut trial, ramp_ms, window_ms).map_err(fail)?,
        clocks: clocks(&mut trial).map_err(fail)?,
    };
    counters(&mut trial, ramp_ms, real).map_err(fail)?;
    let mut record = real.record.clone();
    record.hold_ms = HOLD_S * 1000;
    record.elapsed_ms = ramp_ms + record.hold_ms;
    record.environment.agents = (0..AGENTS).map(agent).collect();
    trial.finish(&record).map_err(fail)?;
    Ok(lines)
}

fn agent(number: u32) -> Agent {
    Agent {
        name: format!("agent-{number}"),
        host: format!("host-{number}"),
        workers: 1,
        weight: 1,
        offset_ms: Some(0.0),
        bound_ms: Some(0.2),
        apart_ms: Some(0.0),
        ..Agent::default()
    }
}

/// Random for each window, so that no two compress alike.
struct Draws(u64);

impl Draws {
    /// Splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns `count` times around a middle, µs: most near it, few ten times as long.
    fn times(&mut self, count: u64, middle_us: u64) -> Histogram<u64> {
        let mut times = Histogram::new_with_bounds(1, 60_000_000, 3).expect("its bounds are right");
        for _ in 0..count {
            let drawn = self.next();
            let sum: u64 = (0..4).map(|part| (drawn >> (16 * part)) & 0xffff).sum();
            let exponent = sum as f64 / 65_536.0 - 2.0;
            times.saturating_record((middle_us as f64 * 3f64.powf(exponent)) as u64);
        }
        times
    }
}

fn windows(
    trial: &mut TrialWriter,
    ramp_ms: u64,
    window_ms: u64,
) -> Result<u64, lab_archive::ArchiveError> {
    let mut draws = Draws(1);
    let count = (ramp_ms + HOLD_S * 1000) / window_ms;
    let each = PER_STEP_S * window_ms / 1000;
    for window in 0..count {
        let span = [window, window + 1].map(|at| Duration::from_millis(at * window_ms));
        let mut line = WindowLine {
            start_ms: (window * window_ms) as f64,
            end_ms: ((window + 1) * window_ms) as f64,
            counts: WindowCounts {
                users: AGENTS,
                ..WindowCounts::default()
            },
            lateness: LatenessLine {
                count: each * u64::from(STEPS),
                ..LatenessLine::default()
            },
            ..WindowLine::default()
        };
        for step in 0..STEPS {
            for (kind, middle) in [(Kind::Response, 4_000), (Kind::Service, 3_000)] {
                let series = Series::Step {
                    step,
                    outcome: Outcome::Ok,
                    kind,
                };
                trial.histogram(series, span[0], span[1], &draws.times(each, middle))?;
            }
            let counted = StepCounts {
                ok: each,
                waits: each,
                bytes: 1000 * each,
                ..StepCounts::default()
            };
            line.steps.insert(step, counted);
        }
        for series in [Series::Lateness, Series::Loop] {
            trial.histogram(series, span[0], span[1], &draws.times(each, 50))?;
        }
        trial.window(&line)?;
    }
    Ok(count)
}

fn clocks(trial: &mut TrialWriter) -> Result<u64, lab_archive::ArchiveError> {
    let mut lines = 0;
    for agent in 0..AGENTS {
        for at in 0..HOLD_S / CLOCK_S {
            trial.clock(&ClockLine {
                t_ms: (at * CLOCK_S * 1000) as f64,
                agent: format!("agent-{agent}"),
                offset_ms: 0.0,
                bound_ms: 0.2,
            })?;
            lines += 1;
        }
    }
    Ok(lines)
}

/// Writes a sample per second: the real run's, repeated.
fn counters(
    trial: &mut TrialWriter,
    ramp_ms: u64,
    real: &TrialData,
) -> Result<(), lab_archive::ArchiveError> {
    trial.monitor_header(&real.monitor.columns)?;
    let rows = real.monitor.rows.iter().cycle();
    for (second, (_, row)) in (0..HOLD_S + ramp_ms / 1000).zip(rows) {
        trial.monitor_row((second * 1000) as f64, row)?;
    }
    Ok(())
}
