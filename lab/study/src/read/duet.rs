//! `duet`: the value in the file, how `auto` is resolved, and which variants can't run at the same time.

use lab_language::host::HostSpec;
use lab_language::{Problems, Scalar};
use lab_plan::Pairing;

use crate::cell::{CellTemplate, are_partners};
use crate::file::StudyFile;
use crate::model::{Cell, Metric, Study, Threshold, VARIANT};
use crate::system::SystemSpec;

/// The reason, and the remedy.
type Refusal = (String, &'static str);

/// Keeps each variant on a half of the machine.
const APART: &str = "apart";
/// Leaves it to the lab.
const AUTO: &str = "auto";

/// The study's setting of `duet`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DuetSetting {
    Auto,
    No,
    Together,
    Apart,
}

/// Pairs the study's variants where `duet` asks for it, or where `auto` selects it.
pub(super) fn paired(study: Study, file: &StudyFile, problems: &mut Problems) -> Study {
    let Some(asked) = asked(file, problems) else {
        return study;
    };
    let refusal = of_study(file).or_else(|| of_cells(&study.cells, &study.cell_template));
    let (duet, auto, why) = match (asked, refusal) {
        (DuetSetting::Auto, refusal) => {
            let obstacle = refusal.map(|(message, _)| message);
            let obstacle = obstacle.or_else(|| asks_more(&study, file));
            let none = || "two variants are compared, and nothing in the study keeps them from running at once";
            let is_duet = obstacle.is_none();
            (is_duet, true, obstacle.unwrap_or_else(|| none().to_owned()))
        }
        (DuetSetting::Together | DuetSetting::Apart, Some((message, help))) => {
            if let Some(at) = &file.duet {
                problems.push(at.span.first_line().problem(message, "here").help(help));
            }
            return study;
        }
        (DuetSetting::No, _) => (false, false, of_file("false")),
        (DuetSetting::Together, None) => (true, false, of_file("true")),
        (DuetSetting::Apart, None) => (true, false, of_file(APART)),
    };
    Study {
        duet,
        apart: duet && asked == DuetSetting::Apart,
        pairing: has_two(file).then_some(Pairing { auto, why }),
        ..study
    }
}

fn of_file(value: &str) -> String {
    format!("the study says `duet: {value}`")
}

fn asked(file: &StudyFile, problems: &mut Problems) -> Option<DuetSetting> {
    let Some(at) = &file.duet else {
        return Some(DuetSetting::Auto);
    };
    match &at.value {
        Scalar::Bool(false) => Some(DuetSetting::No),
        Scalar::Bool(true) => Some(DuetSetting::Together),
        Scalar::Text(text) if text == APART => Some(DuetSetting::Apart),
        Scalar::Text(text) if text == AUTO => Some(DuetSetting::Auto),
        other => {
            let message = format!("`{other}` is none of {AUTO}, true, {APART}, and false");
            problems.push(at.span.first_line().problem(message, "here"));
            None
        }
    }
}

/// Returns the first part of a study, as a reason, that needs the figures of a whole machine: a duet has none. The
/// machine and the first blocks are checked later (`lab_conduct::settle`).
fn asks_more(study: &Study, file: &StudyFile) -> Option<String> {
    let is_absolute = |one: &&Threshold| one.metric.is_time() || one.metric == Metric::Throughput;
    let least = lab_plan::MIN_DUET_BLOCKS;
    if (study.trials as usize) < least {
        let blocks = if study.trials == 1 { "block" } else { "blocks" };
        return Some(format!(
            "a verdict on a duet needs {least} blocks, and the study has {} {blocks}",
            study.trials
        ));
    }
    if let Some(one) = study.thresholds.iter().find(is_absolute) {
        return Some(format!(
            "the threshold `{}` is about a variant that has the machine to itself",
            one.text
        ));
    }
    let mut aborts = study.abort_on.iter().map(|(when, _)| when);
    if let Some(one) = aborts.find(is_absolute) {
        return Some(format!(
            "`abort_on` `{}` is about a variant that has the machine to itself",
            one.text
        ));
    }
    if let Some(factor) =
        (study.matrix.iter()).find(|one| one.name != VARIANT && one.levels.len() > 1)
    {
        return Some(format!("the levels of `{}` are compared, too", factor.name));
    }
    if study.raw_baseline {
        return Some("`raw_baseline` measures the disk without anything beside it".to_owned());
    }
    if file.published.is_some() {
        return Some("published figures are of a whole machine".to_owned());
    }
    let hosts = |cell: &Cell| study.cell_template.system.of(cell).host(cell).ok();
    let hosts: Vec<HostSpec> = study.cells.iter().filter_map(hosts).collect();
    if hosts.iter().any(|host| !host.kernel.is_empty()) {
        return Some("kernel settings are those of the whole machine".to_owned());
    }
    if hosts.iter().any(|host| host.on.is_some()) {
        return Some("the systems are on another machine".to_owned());
    }
    None
}

fn has_two(file: &StudyFile) -> bool {
    let variants = file.variants.as_ref();
    variants.is_some_and(|table| table.value.iter().count() == 2)
}

/// Checks what the file alone determines.
fn of_study(file: &StudyFile) -> Option<Refusal> {
    let load = &file.load.value;
    let (message, help) = if !has_two(file) {
        (
            "a duet is of two variants",
            "write two systems, each with a name, under `variants`",
        )
    } else if file.find.is_some() {
        (
            "a search runs no duets",
            "give the number of users under `load`, and leave `find` out: a duet tells how two \
             variants differ, not how much a whole machine carries",
        )
    } else if file.control.as_ref().is_some_and(|at| at.text() == "true") {
        (
            "a duet has no control beside it",
            "leave `control` out; two variants that are alike make a study of nothing but noise",
        )
    } else if load.sequence.is_some() {
        (
            "a sequence has no duet: each ends with its own last session",
            "write `users` or `arrival` under `load`",
        )
    } else if load.generators.is_some() {
        (
            "each side of a duet has one generator",
            "leave `generators` out",
        )
    } else {
        return None;
    };
    Some((message.to_owned(), help))
}

/// Checks what only the cells determine, since their settings may name factors. An invalid setting is
/// reported elsewhere.
fn of_cells(cells: &[Cell], template: &CellTemplate) -> Option<Refusal> {
    cells.iter().find_map(|cell| {
        let (system, host) = settings(cell, template)?;
        if let SystemSpec::Attach(_) = system {
            return Some((
                "a system that is attached to can't be half of a duet".to_owned(),
                "write a `command` that starts it: a duet starts both systems, each on its half of \
                 the machine",
            ));
        }
        let parts = template.system.of(cell).parts(cell);
        if parts.is_ok_and(|parts| !parts.is_empty()) {
            return Some((
                "a system of a duet is on one machine".to_owned(),
                "leave `on` out of its processes, or `duet`",
            ));
        }
        if host.cpus.is_some() {
            return Some((
                "each system of a duet has the cores of its half".to_owned(),
                "leave `cpus` out",
            ));
        }
        let Some(partner) = cells.iter().find(|other| are_partners(cell, other)) else {
            return Some((
                "a duet needs both variants of a cell".to_owned(),
                "`exclude` and `include` leave a cell with one of them: name none of the variants there",
            ));
        };
        let (other_system, other_host) = settings(partner, template)?;
        if host.kernel != other_host.kernel {
            return Some((
                "both systems of a duet have the same kernel".to_owned(),
                "kernel settings are compared one after the other: leave `duet` out",
            ));
        }
        if host.on != other_host.on {
            return Some((
                "both systems of a duet are on one machine".to_owned(),
                "write the same `on` for both, or leave `duet` out",
            ));
        }
        let of_other = fixed_ports(&other_system);
        let mut own = fixed_ports(&system).into_iter();
        own.find(|port| of_other.contains(port)).map(|port| {
            (
                format!("both systems of a duet listen on port {port}"),
                "leave `port` out, and write `{{ port }}` where the system is told its port",
            )
        })
    })
}

fn settings(cell: &Cell, template: &CellTemplate) -> Option<(SystemSpec, HostSpec)> {
    let of_cell = template.system.of(cell);
    Some((of_cell.system(cell).ok()?, of_cell.host(cell).ok()?))
}

/// Returns the ports on which the processes of a system listen without a setting.
fn fixed_ports(system: &SystemSpec) -> Vec<u16> {
    let SystemSpec::Command(spec) = system else {
        return Vec::new();
    };
    let others = spec.before.iter().map(|(_, spec)| spec);
    let all = others.chain([spec]).filter(|spec| !spec.writes_port());
    all.filter_map(|spec| spec.port).collect()
}
