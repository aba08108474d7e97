//! The progress of the run in its plan, and the current figures.

use lab_analysis::format::{count, duration, figure, or_none};
use lab_analysis::model::LoadLine;
use lab_analysis::{load_line_figure, safe_line_words};
use lab_report::document::{Block, KeyFigure};
use lab_report::render::pieces;
use lab_stats::quantile;
use maud::{Markup, PreEscaped, html};

use crate::state::{Done, Mode, Outcome, State, phase_words};
use crate::trial::Trial;

/// Most squares of the plan.
const SQUARES: u32 = 400;

/// The progress in the plan, and the remaining time.
pub(super) fn progress(state: &State) -> Markup {
    let (done, valid) = state.counts();
    let all = state.trials.max(u32::try_from(done).unwrap_or(u32::MAX));
    let left = state.left_ms();
    let is_on = state.mode == Mode::Running;
    let trial = state
        .trial
        .as_ref()
        .filter(|_| is_on || state.mode == Mode::Unknown);
    let plan = format!("{done} of {all} trials done, {valid} valid");
    html! {
        p.where data-title=(title(state, done, all)) {
            (mode(state.mode)) " " strong { (plan) }
            @if is_on && left > 0.0 { ", " (duration(left)) " of load left, and the setups" }
        }
        ol.plan role="img" aria-label=(plan) {
            @for done in state.done.iter().take(SQUARES as usize) { (square(done)) }
            @if let Some(trial) = trial.filter(|trial| trial.phase != "done") {
                li.on title=(format!("trial {}, {}: {}", trial.id, trial.label, trial.phase)) { "▸" }
            }
            @for _ in waiting(state, all) { li title="to come" {} }
        }
        @if let Some(trial) = trial { (under_way(trial)) }
    }
}

fn waiting(state: &State, all: u32) -> std::ops::Range<u32> {
    let (done, _) = state.counts();
    let done = u32::try_from(done).unwrap_or(u32::MAX);
    let repeats = state
        .trial
        .as_ref()
        .is_some_and(|trial| trial.attempt_of.is_some());
    let is_on = state
        .trial
        .as_ref()
        .is_some_and(|trial| trial.phase != "done");
    let under_way = u32::from(is_on && !repeats);
    0..all.saturating_sub(done + under_way).min(SQUARES)
}

fn title(state: &State, done: usize, all: u32) -> String {
    let title = &state.manifest.title;
    match state.mode {
        Mode::Running | Mode::Unknown => format!("{done}/{all} · {title}"),
        Mode::Ended => format!("✓ {title}"),
        Mode::Interrupted | Mode::Gone => format!("interrupted · {title}"),
    }
}

fn mode(mode: Mode) -> Markup {
    let (class, words) = match mode {
        Mode::Unknown => ("pill info", "no sign of life yet"),
        Mode::Running => ("pill good", "running"),
        Mode::Ended => ("pill info", "over"),
        Mode::Interrupted => ("pill warn", "! interrupted"),
        Mode::Gone => ("pill bad", "✕ its process is gone; --resume goes on"),
    };
    html! { span class=(class) { (words) } }
}

fn square(done: &Done) -> Markup {
    let (class, mark, words) = match (done.outcome, done.carried) {
        (Outcome::Valid, Some(false)) => ("missed", "○", "valid, did not carry it"),
        (Outcome::Valid, _) => ("good", "✓", "valid"),
        (Outcome::Invalid, _) => ("warn", "!", "no measurement"),
        (Outcome::SystemFailed, _) => ("bad", "✕", "the system failed"),
    };
    let why = if done.why.is_empty() { "" } else { ": " };
    let title = format!(
        "trial {}, {}: {words}{why}{}",
        done.id, done.label, done.why
    );
    html! { li class=(class) title=(pieces::plain(&title)) { (mark) } }
}

/// The current trial, with its progress.
fn under_way(trial: &Trial) -> Markup {
    let length = (trial.ramp_ms + trial.hold_ms) as f64;
    let again = trial
        .attempt_of
        .map_or_else(String::new, |of| format!(" (trial {of} again)"));
    let doing = match trial.doing.is_empty() {
        true => String::new(),
        false => format!(": {}", pieces::plain(&trial.doing)),
    };
    html! {
        p.trial {
            "Trial " (trial.id) (again) " · " (trial.label) " · "
            (phase_words(&trial.phase)) (doing)
            @if let Some(left) = trial.left_ms() { " · " (duration(left)) " left" }
        }
        @if length > 0.0 {
            progress max=(length) value=(trial.elapsed_ms.clamp(0.0, length))
                aria-label="How far the trial is" {}
        }
    }
}

/// For a search: the safe line and the load line of each cell, as far as the trials show them.
pub(super) fn lines(lines: &[LoadLine], is_over: bool) -> Markup {
    let so_far = if is_over { "" } else { "So far, " };
    html! {
        @for line in lines {
            p.line {
                @if lines.len() > 1 { strong { (line.label) } ": " }
                (so_far) (safe_line_words(line)) ". Half of the trials hold up to the load line, "
                (load_line_figure(line)) "."
            }
        }
    }
}

/// The most important current figures.
pub(super) fn tiles(state: &State) -> Markup {
    let Some(trial) = &state.trial else {
        return html! { p.none { "No trial is under way." } };
    };
    let times = trial.times();
    let rates = trial.rates();
    let at = |p| quantile(&times, p).map(|us| us as f64 / 1e3);
    let late = trial
        .lateness
        .as_ref()
        .and_then(|late| quantile(late, 0.99));
    let tile = |name, text: String, unit| KeyFigure {
        name,
        text,
        unit,
        published: None,
    };
    let since = if trial.holds() { "hold" } else { "ramp" };
    let all = [
        tile("users now", count(u64::from(trial.users_now())), ""),
        tile(
            "answers",
            or_none(rates.map(|rates| rates.0), figure),
            "per s",
        ),
        tile("errors of the trial", count(trial.failed()), ""),
        tile("median response", or_none(at(0.5), figure), "ms"),
        tile("p95 response", or_none(at(0.95), figure), "ms"),
        tile("p99 response", or_none(at(0.99), figure), "ms"),
        tile(
            "p99 lateness",
            or_none(late.map(|us| us as f64 / 1e3), figure),
            "ms",
        ),
    ];
    html! {
        h2 { "Now" }
        p.lead {
            "Response times since the " (since) " began. The report leaves the warm-up of the hold out, \
             and judges a trial when it is complete."
        }
        (PreEscaped(pieces::blocks(&[Block::KeyFigures(all.to_vec())])))
    }
}
