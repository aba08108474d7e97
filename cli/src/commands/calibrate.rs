//! `plimsoll calibrate`: whether this machine's generator is fit to measure now, and up to which load.

use std::fmt::Write as _;

use lab_analysis::format::count;
use lab_analysis::{Analysis, Fitness, fitness};
use lab_conduct::{
    CalibrateError, CalibrateRequest, Calibration, Event, Lateness, calibrate, serve_nothing,
};
use serde_json::json;

use crate::calibrating::{CalibrateArgs, CalibrateFormat, SECONDS};
use crate::commands::report;
use crate::commands::{load, print};
use crate::exit::{Exit, Failure, failure};
use crate::interrupt::interrupt;
use lab_terminal::progress::Display;
use lab_terminal::stderr::say;
use lab_terminal::width::USUAL;

pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit, Failure> {
    if let Some(port) = args.null_server {
        serve_nothing(port).map_err(internal)?;
        return Ok(Exit::Success);
    }
    let (found, judged) = measured(args.seconds)?;
    match args.format {
        CalibrateFormat::Terminal => print(&table(&found, &judged))?,
        CalibrateFormat::Json => print(&format!("{:#}\n", json(&found, &judged)))?,
    };
    Ok(match judged.fit {
        true => Exit::Success,
        false => Exit::TooFewValidTrials,
    })
}

fn internal(error: std::io::Error) -> Failure {
    Failure::new(Exit::Internal, &error)
}

/// Returns the requests per second that this many cores of this machine drive, extrapolated from one of them. Prints it
/// with its warnings.
pub(crate) fn speed(cores: usize) -> Result<u32, Failure> {
    let (found, judged) = measured(SECONDS)?;
    let Some(per_core) = found.per_core_per_s else {
        let unknown = "what a core of this machine drives could not be told";
        let failure = Failure::text(Exit::Internal, unknown.to_owned());
        return Err(failure.hint("say --weight N in the place of --calibrate".to_owned()));
    };
    let speed = (per_core * cores.max(1) as f64).round().max(1.0) as u32;
    say(format_args!(
        "calibrated: {} requests per s",
        count(u64::from(speed))
    ));
    for why in &judged.why {
        say(format_args!("- {why}"));
    }
    Ok(speed)
}

/// Measures, and judges the result.
fn measured(seconds: u32) -> Result<(Calibration, Fitness), Failure> {
    let request = CalibrateRequest {
        program: std::env::current_exe().map_err(internal)?,
        null_server: ["calibrate", "--null-server", "{{ port }}"]
            .map(str::to_owned)
            .into(),
        seconds,
        temporary: std::env::temp_dir(),
    };
    let (found, waiting) = shown(&request)?;
    let busy = found.busy_percent.map(|percent| percent / 100.0);
    let judged = fitness(&waiting, found.requests_per_s, busy);
    Ok((found, judged))
}

/// Measures with the progress display on stderr, a new one for each of the two runs.
fn shown(request: &CalibrateRequest) -> Result<(Calibration, Analysis), Failure> {
    let interrupt = interrupt()?;
    let mut display = Display::new();
    let mut show = |event: Event| {
        if matches!(event, Event::RunStarted { .. }) {
            display.finish();
            display = Display::new();
        }
        display.show(&event);
        if matches!(event, Event::TrialDone { .. }) {
            display.finish();
        }
    };
    let mut archive = None;
    let found = calibrate(
        request,
        &mut show,
        &mut |run| archive = Some(run),
        &interrupt,
    );
    display.finish();
    let found = found.map_err(|error| failed(&error))?;
    let run = archive.ok_or_else(|| failed(&CalibrateError::NoTrial))?;
    Ok((found, report::analysed(run)?))
}

fn failed(error: &CalibrateError) -> Failure {
    match error {
        CalibrateError::Study(error) => load::bad_file(error),
        CalibrateError::Conduct(error) => failure(error),
        CalibrateError::SystemFailed(_) => Failure::new(Exit::SystemFailed, error),
        CalibrateError::Interrupted => Failure::new(Exit::Interrupted, error),
        _ => Failure::new(Exit::Internal, error),
    }
}

fn table(found: &Calibration, judged: &Fitness) -> String {
    let mut text = verdict(judged);
    let or = |value: Option<f64>, unit: &str| {
        value.map_or("could not be told".to_owned(), |v| format!("{v:.0}{unit}"))
    };
    let Lateness {
        p50_ms: p50,
        p99_ms: p99,
        max_ms: max,
    } = found.lateness;
    let rows = [
        ("requests", or(found.requests_per_s, " per s reached")),
        ("generator busy", or(found.busy_percent, " % meanwhile")),
        (
            "one core drives",
            or(found.per_core_per_s, " requests per s at most"),
        ),
        (
            "sends are late by",
            match found.sends_per_s {
                Some(sends) => {
                    format!("p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms at {sends:.0} per s")
                }
                None => or(None, ""),
            },
        ),
        (
            "the monitor takes",
            format!("{:.2} ms per sample", found.monitor_ms),
        ),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<18} {value}");
    }
    text
}

/// Whether the machine is fit, for which load, and the reasons against it.
fn verdict(judged: &Fitness) -> String {
    let mut lines = vec![match judged.requests_per_s.map(|most| count(most as u64)) {
        Some(most) if judged.fit => format!(
            "fit to measure now: up to {most} requests per s, such as {most} users who send one each \
             second, where ports and open files allow as many"
        ),
        _ => "NOT fit to measure now".to_owned(),
    }];
    let told = judged.why.iter().zip(&judged.advice);
    lines.extend(told.map(|(why, advice)| format!("- {why}. → {advice}")));
    let wrapped = textwrap::Options::new(USUAL).subsequent_indent("  ");
    let lines = lines
        .iter()
        .map(|line| textwrap::fill(line, &wrapped) + "\n");
    lines.collect::<String>() + "\n"
}

fn json(found: &Calibration, judged: &Fitness) -> serde_json::Value {
    let Lateness {
        p50_ms: p50,
        p99_ms: p99,
        max_ms: max,
    } = found.lateness;
    json!({
        "schema": "plimsoll.calibration/1",
        "fit": judged.fit,
        "why": judged.why,
        "requests_per_s_at_most": judged.requests_per_s,
        "requests_per_s": found.requests_per_s,
        "generator_busy_percent": found.busy_percent,
        "requests_per_core_per_s": found.per_core_per_s,
        "lateness_ms": { "p50": p50, "p99": p99, "max": max },
        "sends_per_s": found.sends_per_s,
        "monitor_ms_per_sample": found.monitor_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_comes_first_and_the_json_has_the_same() {
        let found = Calibration {
            requests_per_s: Some(38_211.4),
            busy_percent: Some(98.6),
            per_core_per_s: Some(38_754.0),
            lateness: Lateness {
                p50_ms: 0.062,
                p99_ms: 0.41,
                max_ms: 2.1,
            },
            sends_per_s: Some(990.2),
            monitor_ms: 0.312,
        };
        let fit = Fitness {
            fit: true,
            why: Vec::new(),
            advice: Vec::new(),
            requests_per_s: Some(31_003.0),
        };
        let unfit = Fitness {
            fit: false,
            why: vec!["other programs (rustc) used 92 % of this machine's CPU".to_owned()],
            advice: vec!["Stop them, and run again.".to_owned()],
            ..fit.clone()
        };
        let (good, bad) = (table(&found, &fit), table(&found, &unfit));
        let json = json(&found, &unfit);
        insta::assert_snapshot!(format!("{good}\n{bad}\n{json:#}"));
    }
}
