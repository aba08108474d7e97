//! A command of a study: its settings as templates, each with its place.

use lab_language::Setting;
use lab_language::host::HostTemplate;
use lab_language::settings::{Settings, note};

use super::argv::argv;
use super::preparation::{self, Written};
use crate::command::CommandTemplate;
use crate::file::{At, CommandFile, Scalar, StudyFile, Table};

/// The command; `None` when a problem was noted.
pub(super) fn template(
    file: &CommandFile,
    variables: &[String],
    settings: &mut Settings<'_>,
) -> Option<CommandTemplate> {
    let start = argv("start", &file.start, settings);
    let reset = match &file.reset {
        Some(reset) => argv("reset", reset, settings),
        None => Some(Vec::new()),
    };
    let env = table("env", &file.env, is_variable, settings);
    let files = table("files", &file.files, is_file, settings);
    let folder = settings.optional("folder", file.folder.as_ref());
    let port = settings.optional("port", file.port.as_ref());
    let ready = file.ready.clone().unwrap_or_default();
    if let (Some(_), Some(log)) = (&ready.http, &ready.log) {
        return note(
            &log.span,
            "a command is ready by `http` or by `log`, not by both",
            "keep the one that comes last when it starts",
            settings,
        );
    }
    if let (None, Some(status)) = (&ready.http, &ready.status) {
        return note(
            &status.span,
            "a status needs a path that answers",
            "add `http: /`",
            settings,
        );
    }
    let http = settings.optional("http", ready.http.as_ref());
    let status = settings.optional("status", ready.status.as_ref());
    let log = settings.optional("log", ready.log.as_ref());
    let within = settings.optional("within", ready.within.as_ref());
    let stop = file.stop.clone().unwrap_or_default();
    let signal = settings.optional("signal", stop.signal.as_ref());
    let grace = settings.optional("grace", stop.grace.as_ref());
    let written = Written {
        provision: &file.provision,
        fill: &file.fill,
        keep: file.keep_state.as_ref(),
        disk_per_user: file.disk_per_user.as_ref(),
    };
    let preparation = preparation::template(&written, variables, settings);
    Some(CommandTemplate {
        start: start?,
        env: env?,
        folder: folder?,
        files: files?,
        port: port?,
        http: http?,
        status: status?,
        log: log?,
        within: within?,
        reset: reset?,
        signal: signal?,
        grace: grace?,
        preparation: preparation?,
        host: HostTemplate::default(),
        name: None,
        before: Vec::new(),
    })
}

/// The names that a command's texts may use: factors, and the names that its trial fills in. `None` when a problem was
/// noted: no factor may have one of these names.
pub(super) fn with_filled_in(
    file: &StudyFile,
    filled_in: &[String],
    settings: &mut Settings<'_>,
) -> Option<Vec<String>> {
    for (name, _) in file.matrix.iter().flat_map(|matrix| matrix.value.iter()) {
        if filled_in.contains(&name.value) {
            let message = format!("with a command, `{}` is what a trial fills in", name.value);
            let problem = name.span.problem(message, "this factor");
            settings
                .problems
                .push(problem.help("give the factor another name"));
            return None;
        }
    }
    Some(settings.known.iter().chain(filled_in).cloned().collect())
}

fn table(
    field: &str,
    table: &Table<At<Scalar>>,
    is_name: fn(&str) -> bool,
    settings: &mut Settings<'_>,
) -> Option<Vec<(String, Setting)>> {
    let mut made = Vec::new();
    for (name, value) in table.iter() {
        let good = is_name(&name.value);
        if !good {
            let message = format!("`{}` can't be a name in `{field}`", name.value);
            let help = match field {
                "env" => "use letters, digits, and underscores",
                _ => "files lie in the scratch folder: write `server.conf` or `conf/server.conf`",
            };
            note::<()>(&name.span, &message, help, settings);
        }
        let value = settings.required(&format!("{field} {}", name.value), value);
        made.push(value.filter(|_| good).map(|v| (name.value.clone(), v)));
    }
    made.into_iter().collect()
}

pub(super) fn is_variable(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn is_file(name: &str) -> bool {
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(char::is_control);
    !name.split('/').any(odd)
}
