//! `duet: true` and `duet: apart`, and what can't run at the same time as another.

use lab_language::host::HostSpec;
use lab_language::{Problems, Scalar};

use crate::cell::{CellTemplate, are_partners};
use crate::file::StudyFile;
use crate::model::Cell;
use crate::system::SystemSpec;

/// Why, and what to do about it.
type Refusal = (String, &'static str);

/// Keeps each variant on a half of the machine.
const APART: &str = "apart";

/// Whether the study runs its variants two at a time, and whether it keeps them apart then.
pub(super) fn duet(
    file: &StudyFile,
    cells: &[Cell],
    template: &CellTemplate,
    problems: &mut Problems,
) -> (bool, bool) {
    let apart = match file.duet.as_ref().map(|at| (&at.value, &at.span)) {
        None | Some((Scalar::Bool(false), _)) => return (false, false),
        Some((Scalar::Bool(true), _)) => false,
        Some((Scalar::Text(text), _)) if text == APART => true,
        Some((other, span)) => {
            let message = format!("`{other}` is none of true, {APART}, and false");
            problems.push(span.first_line().problem(message, "here"));
            return (false, false);
        }
    };
    let Some((message, help)) = of_study(file).or_else(|| of_cells(cells, template)) else {
        return (true, apart);
    };
    if let Some(at) = &file.duet {
        problems.push(at.span.first_line().problem(message, "here").help(help));
    }
    (false, false)
}

/// What can be told from the file.
fn of_study(file: &StudyFile) -> Option<Refusal> {
    let variants = file.variants.as_ref();
    let load = &file.load.value;
    let (message, help) = if variants.is_none_or(|table| table.value.iter().count() != 2) {
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

/// What only the cells tell, since their settings may name factors. A setting that makes no sense is
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
        let port = fixed_port(&system)?;
        (fixed_port(&other_system) == Some(port)).then(|| {
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

fn fixed_port(system: &SystemSpec) -> Option<u16> {
    match system {
        SystemSpec::Command(spec) if !spec.writes_port() => spec.port,
        _ => None,
    }
}
