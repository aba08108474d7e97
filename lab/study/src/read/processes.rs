//! A system of several processes: their settings as templates, each with its place.

use lab_language::settings::{Settings, note};

use super::command::{self, is_variable, with_filled_in};
use super::host::{Around, host};
use crate::command::{FILLED_IN, OF_ADDRESS, OF_PORT};
use crate::file::{At, CommandFile, StudyFile, Table};
use crate::system::KindTemplate;

/// Most processes of a system.
const MOST: usize = 32;
/// The setting with which a trial fills in no port, though other processes need it.
const NOT_FILLED_IN: &str = "port_file";
/// A reserved name: its port has another meaning.
const TAKEN: &str = "users";

/// The processes; `None` when a problem was noted.
pub(super) fn template(
    (file, all): (&StudyFile, &At<Table<CommandFile>>),
    variables: &[String],
    settings: &mut Settings<'_>,
) -> Option<KindTemplate> {
    let names: Vec<&At<String>> = all.value.iter().map(|(name, _)| name).collect();
    if !(1..=MOST).contains(&names.len()) {
        let message = format!("a system has 1 to {MOST} processes");
        let help = "name each, in the order in which they start: `{ db: { start: […] }, app: { start: […] } }`";
        return note(&all.span, &message, help, settings);
    }
    for name in &names {
        if !is_variable(&name.value) || name.value.len() > 32 || name.value == TAKEN {
            let message = format!("`{}` can't be the name of a process", name.value);
            return note(
                &name.span,
                &message,
                "use letters, digits, and underscores, 32 at most, and another one than `users`",
                settings,
            );
        }
    }
    let places = names.iter().flat_map(|name| {
        let name = &name.value;
        [format!("{name}{OF_PORT}"), format!("{name}{OF_ADDRESS}")]
    });
    let own = FILLED_IN.into_iter().filter(|name| *name != NOT_FILLED_IN);
    let filled_in: Vec<String> = own.map(str::to_owned).chain(places).collect();
    let known = with_filled_in(file, &filled_in, settings)?;
    let last = names.last()?;
    let mut made = Vec::new();
    let mut main = None;
    for (name, file_of) in all.value.iter() {
        let is_last = name.value == last.value;
        let settings = &mut Settings {
            known: &known,
            problems: &mut *settings.problems,
        };
        if !is_last {
            prepares_nothing(file_of, &last.value, settings)?;
        }
        let mut template = command::template(file_of, variables, settings)?;
        let around = Around {
            kernel: &file_of.kernel,
            cpus: file_of.cpus.as_ref(),
            storage: file_of.storage.as_ref(),
            on: file_of.on.as_ref(),
        };
        template.host = host(&around, settings)?;
        if is_last {
            template.name = Some(name.value.clone());
            main = Some(template);
        } else {
            made.push((name.value.clone(), template));
        }
    }
    let mut main = main?;
    main.before = made;
    Some(KindTemplate::Command(Box::new(main)))
}

/// Reports settings that belong to the process that users connect to.
fn prepares_nothing(file: &CommandFile, last: &str, settings: &mut Settings<'_>) -> Option<()> {
    let says = [
        // On another machine, it makes that machine's processes start from the same state.
        ("reset", file.reset.is_some() && file.on.is_none()),
        ("provision", !file.provision.is_empty()),
        ("fill", !file.fill.is_empty()),
        ("keep_state", file.keep_state.is_some()),
        ("disk_per_user", file.disk_per_user.is_some()),
    ];
    let Some((key, _)) = says.iter().find(|(_, is_said)| *is_said) else {
        return Some(());
    };
    let message = format!("`{key}` is about the whole system, which users reach by `{last}`");
    let help = format!("write it at `{last}`");
    note(&file.start.span, &message, &help, settings)
}
