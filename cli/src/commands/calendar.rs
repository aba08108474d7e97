//! `plimsoll calendar`: a user's calendar from iCalendar files, and into one, over the admin interface.

use std::io;
use std::path::Path;

use groupware_calendarfiles::{Request, Step, Tally, each_step, files, read};

use crate::admin::Admin;
use crate::commands::print;
use crate::commands::users::{path, save};
use crate::exit::{Exit, Failure};
use crate::operating::{CalendarArgs, CalendarCommand, CalendarExportArgs, CalendarImportArgs};
use lab_terminal::stderr::say;

pub(crate) fn run(args: &CalendarArgs) -> Result<Exit, Failure> {
    let admin = Admin::new(&args.server)?;
    match &args.command {
        CalendarCommand::Import(args) => import(&admin, args),
        CalendarCommand::Export(args) => export(&admin, args),
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot use {}: {error}", path.display());
    Failure::text(Exit::BadInput, text)
}

fn import(admin: &Admin, args: &CalendarImportArgs) -> Result<Exit, Failure> {
    admin.get(&path(&args.name))?;
    let files = files(&args.sources).map_err(|(path, error)| unusable(&path, &error))?;
    if files.is_empty() {
        let text = "there is no file with the ending .ics in what was named";
        return Err(Failure::text(Exit::BadInput, text));
    }
    let to = format!("{}/calendar", path(&args.name));
    let mut tally = Tally::default();
    for file in &files {
        let name = file.display().to_string();
        match read(file).map_err(|error| unusable(file, &error))? {
            Some(bytes) => each_step(&name, &bytes, |step| take(admin, &to, &mut tally, step))?,
            None => {
                let why = format!("{name}: it is larger than 256 MiB: split it");
                tell(tally.leave_out(&why));
            }
        }
    }
    print(&format!("{}\n", tally.summary()))?;
    match tally.left_out() {
        0 => Ok(Exit::Success),
        left_out => Err(Failure::text(
            Exit::BadInput,
            format!("{left_out} objects or files were not imported"),
        )),
    }
}

fn tell(told: impl IntoIterator<Item = String>) {
    for line in told {
        say(format_args!("{line}"));
    }
}

fn take(admin: &Admin, to: &str, tally: &mut Tally, step: Step) -> Result<(), Failure> {
    match step {
        Step::Send(request) => tell(send(admin, to, tally, &request)?),
        Step::LeaveOut(why) => tell(tally.leave_out(&why)),
        Step::Note(note) => tell([format!("note: {note}")]),
    }
    Ok(())
}

fn send(
    admin: &Admin,
    to: &str,
    tally: &mut Tally,
    request: &Request,
) -> Result<Vec<String>, Failure> {
    let answer = admin.ask("POST", to, &request.body)?.good();
    let answer = answer.map_err(|failure| match tally.done() {
        0 => failure,
        done => failure.hint(format!(
            "{done} objects are imported already; the same command goes on from there"
        )),
    })?;
    let told = tally.take(request, &answer.json()?);
    told.ok_or_else(|| {
        Failure::text(
            Exit::Internal,
            "the server's answer is about something else",
        )
    })
}

fn export(admin: &Admin, args: &CalendarExportArgs) -> Result<Exit, Failure> {
    let of = format!("{}/calendar", path(&args.name));
    let Some(file) = &args.file else {
        let copied = io::copy(&mut admin.download(&of)?, &mut io::stdout().lock());
        return match copied {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let text = format!("the calendar broke off: {error}");
                Err(Failure::text(Exit::Internal, text))
            }
            _ => Ok(Exit::Success),
        };
    };
    save(admin, &args.name, &of, file)
}
