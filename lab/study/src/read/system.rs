//! The system of a study: its settings as templates, each with its place.

use lab_ask::AskTemplate;
use lab_language::settings::{Settings, note};
use lab_language::{Problems, Span};
use lab_workload::{Speech, Workload};

use super::host::{Around, host};
use super::preparation::{self, Written};
use super::{command, processes};
use crate::attach::AttachTemplate;
use crate::command::{FILLED_IN, OF_ADDRESS, OF_PORT, PORT_FILE, SECRET_FILE};
use crate::file::{At, AttachFile, CommandFile, GroupwareFile, StudyFile, SystemFile};
use crate::preset::{GROUPWARE, PresetTemplate};
use crate::system::{KindTemplate, SystemTemplate, SystemsTemplate};

/// The systems of a study whose factors have these names.
pub(super) fn templates(
    file: &StudyFile,
    factors: &[String],
    workload: &Workload,
    problems: &mut Problems,
) -> Option<SystemsTemplate> {
    let mut settings = Settings {
        known: factors,
        problems,
    };
    if let Some(system) = &file.system {
        let made = template(file, system, workload, &mut settings);
        return made.map(|system| SystemsTemplate::One(Box::new(system)));
    }
    let variants = file.variants.as_ref()?.value.iter();
    let made: Vec<_> = variants
        .map(|(name, system)| {
            let system = template(file, system, workload, &mut settings)?;
            Some((name.value.clone(), system))
        })
        .collect();
    let made: Vec<_> = made.into_iter().collect::<Option<_>>()?;
    (!made.is_empty()).then_some(SystemsTemplate::Variants(made))
}

fn template(
    file: &StudyFile,
    At {
        value: system,
        span,
    }: &At<SystemFile>,
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<SystemTemplate> {
    let variables = &workload.variables;
    let kind = match (&system.groupware, &system.command, &system.attach) {
        (Some(file), ..) => groupware((file, span), workload, settings)
            .map(|template| KindTemplate::Preset(Box::new(template))),
        (None, Some(command), _) => self::command(file, command, variables, settings),
        (None, None, Some(attach)) => self::attach(system, attach, variables, settings),
        (None, None, None) => {
            // If that is missing, too, the error was reported when the file's shape was read.
            let processes = system.processes.as_ref();
            processes.and_then(|all| processes::template((file, all), variables, settings))
        }
    };
    let around = Around {
        kernel: &system.kernel,
        cpus: system.cpus.as_ref(),
        storage: system.storage.as_ref(),
        on: system.on.as_ref(),
    };
    let host = host(&around, settings);
    let reach = super::reach::template(system, workload, settings);
    let ask = ask(system, settings);
    Some(SystemTemplate {
        ask: ask?,
        reach: reach?,
        kind: kind?,
        host: host?,
    })
}

/// The queries that this machine sends to a system. Their texts may use values known once the system runs.
fn ask(system: &SystemFile, settings: &mut Settings<'_>) -> Option<AskTemplate> {
    if system.ask.is_empty() {
        return Some(AskTemplate::default());
    }
    let processes = system.processes.iter().flat_map(|all| all.value.iter());
    let last = processes.clone().last();
    let on = system
        .on
        .as_ref()
        .or(last.and_then(|(_, last)| last.on.as_ref()));
    if let (Some(on), None) = (on, &system.attach) {
        let message = "`ask` asks a system on this machine, and this one is `on` another";
        let help = "leave `ask` out, or start the system there and `attach` to it";
        return note(&on.span, message, help, settings);
    }
    let mut filled_in = vec![lab_ask::PORT.to_owned(), lab_ask::PID.to_owned()];
    if system.attach.is_none() {
        let is_known = |name: &&str| {
            let text = lab_ask::filled_in(name);
            ![PORT_FILE, SECRET_FILE].contains(&text.as_str()) && *name != lab_ask::PORT
        };
        filled_in.extend(FILLED_IN.into_iter().filter(is_known).map(str::to_owned));
        filled_in.extend(
            processes.flat_map(|(name, _)| {
                [OF_PORT, OF_ADDRESS].map(|end| format!("{}{end}", name.value))
            }),
        );
    }
    filled_in.retain(|name| !settings.known.contains(name));
    lab_ask::templates(&system.ask, (settings.known, &filled_in), settings.problems)
}

/// A system that runs already has its cores and its data where they are.
fn attach(
    system: &SystemFile,
    attach: &AttachFile,
    variables: &[String],
    settings: &mut Settings<'_>,
) -> Option<KindTemplate> {
    let cpus = system.cpus.as_ref().map(|at| &at.span);
    let storage = system.storage.as_ref().map(|at| &at.span);
    for (key, span) in [("cpus", cpus), ("storage", storage)] {
        if let Some(span) = span {
            let message = format!("`{key}` can't be set for a system that runs already");
            let help = "have it started as a `command`, or leave this out";
            return note(span, &message, help, settings);
        }
    }
    let url = settings.required("url", &attach.url);
    let pid = settings.optional("pid", attach.pid.as_ref());
    let node_exporter = settings.optional("node_exporter", attach.node_exporter.as_ref());
    let reset = match &attach.reset {
        Some(reset) => super::argv::argv("reset", reset, settings),
        None => Some(Vec::new()),
    };
    let written = Written {
        provision: &attach.provision,
        fill: &attach.fill,
        keep: None,
        disk_per_user: None,
    };
    let preparation = preparation::template(&written, variables, settings);
    Some(KindTemplate::Attach(Box::new(AttachTemplate {
        url: url?,
        pid: pid?,
        node_exporter: node_exporter?,
        reset: reset?,
        preparation: preparation?,
    })))
}

fn groupware(
    (groupware, span): (&GroupwareFile, &Span),
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<PresetTemplate> {
    let takes_mail = matches!(workload.speech, Speech::Smtp { .. });
    if !takes_mail && !workload.speech.is_http() {
        let name = workload.speech.name();
        let message = format!("the groupware server doesn't speak {name}, and the workload does");
        let problem = span.first_line().problem(message, "this system");
        settings
            .problems
            .push(problem.help("start one that does as a `command`, or `attach` to it"));
        return None;
    }
    let mail = groupware.mail.as_ref();
    let written = [
        ("http_threads", groupware.http_threads.as_ref()),
        ("requests_at_once", groupware.requests_at_once.as_ref()),
        ("mailbox_pad", groupware.mailbox_pad.as_ref()),
        ("engine", groupware.engine.as_ref()),
        ("lookup_layout", groupware.lookup_layout.as_ref()),
        ("messages", mail.map(|mail| &mail.messages)),
        ("size", mail.and_then(|mail| mail.size.as_ref())),
    ];
    let read = written.map(|(name, at)| Some((name, settings.optional(name, at)?)));
    Some(PresetTemplate {
        preset: &GROUPWARE,
        settings: read.into_iter().collect::<Option<_>>()?,
        has_names: workload.variables.iter().any(|name| name == "name"),
        takes_mail,
    })
}

/// Reads a command, whose texts may use the names that its trial fills in.
fn command(
    file: &StudyFile,
    file_of: &CommandFile,
    variables: &[String],
    settings: &mut Settings<'_>,
) -> Option<KindTemplate> {
    let filled_in = FILLED_IN.map(str::to_owned);
    let known = command::with_filled_in(file, &filled_in, settings)?;
    let mut settings = Settings {
        known: &known,
        problems: &mut *settings.problems,
    };
    let of_the_system = [
        ("on", file_of.on.is_some()),
        ("kernel", !file_of.kernel.is_empty()),
        ("cpus", file_of.cpus.is_some()),
        ("storage", file_of.storage.is_some()),
    ];
    if let Some((key, _)) = of_the_system.iter().find(|(_, is_said)| *is_said) {
        let message = format!("`{key}` is about the whole system, which is this command");
        let help = format!("write `{key}` beside `command`");
        return note(&file_of.start.span, &message, &help, &mut settings);
    }
    let template = command::template(file_of, variables, &mut settings)?;
    Some(KindTemplate::Command(Box::new(template)))
}
