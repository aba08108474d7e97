//! The command `plimsoll`: arguments, exit codes, wiring. Only this crate uses the terminal; the libraries never do.

mod admin;
mod args;
mod beginning;
mod calibrating;
mod commands;
mod config_file;
mod database;
mod exit;
mod files;
mod fleeting;
mod history;
mod interrupt;
mod live;
mod memory;
mod object_store;
mod operating;
mod outlets;
mod private_file;
mod size;
mod state;
mod trying;
mod watched;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{Cli, Command};
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match dispatch(&cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            say(format_args!("{failure}"));
            failure.exit.into()
        }
    }
}

fn dispatch(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Init(args) => commands::init::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Try(args) => commands::attempt::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Plan(args) => commands::plan::run(args),
        Command::Calibrate(args) => commands::calibrate::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Profile(args) => commands::profile::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Watch(args) => commands::watch::run(args),
        Command::Runs(args) => commands::runs::run(args),
        Command::ServeReports(args) => commands::runs::serve(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Restore(args) => commands::restore::run(args),
        Command::Data(args) => commands::data::run(args),
        Command::Store(args) => commands::store::run(args),
        Command::Hub(args) => commands::fleet::hub(args),
        Command::Agents(args) => commands::fleet::agents(args),
        Command::Agent(args) => commands::fleet::agent(args),
        Command::Users(args) => commands::users::run(args),
        Command::Sessions(args) => commands::users::sessions(args),
        Command::Mail(args) => commands::mail::run(args),
        Command::Calendar(args) => commands::calendar::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Completions(args) => commands::shell::completions(args),
        Command::Man(args) => commands::shell::man(args),
        Command::Generate => commands::generate::run(),
        Command::Together { file } => commands::together::run(file),
    }
}

/// Help and version are no errors; every other fault in the arguments is a bad flag.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe while help is printed is no failure.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success.into(),
        _ => Exit::BadInput.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Returns the commands in a page's code blocks: each line of this program, without shell syntax.
    fn typed(page: &str) -> Vec<String> {
        let blocks = page.split("\n```").skip(1).step_by(2);
        let lines = blocks.flat_map(|block| {
            let joined = block.replace("\\\n", " ");
            joined.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        let ours = lines.filter_map(|line| {
            let line = line.strip_prefix("$ ").unwrap_or(&line);
            let ends = [" #", " > ", " >> ", " | "].map(|end| line.find(end));
            let end = ends.into_iter().flatten().min().unwrap_or(line.len());
            line.starts_with("plimsoll ")
                .then(|| line[..end].to_owned())
        });
        ours.collect()
    }

    #[test]
    fn what_the_book_says_to_type_can_be_typed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let docs = fs::read_dir(root.join("docs")).unwrap();
        let pages = docs.map(|entry| entry.unwrap().path());
        let pages = pages.filter(|path| path.extension().is_some_and(|it| it == "md"));
        let pages: Vec<PathBuf> = pages.chain([root.join("README.md")]).collect();
        let mut count = 0;
        for path in pages {
            for line in typed(&fs::read_to_string(&path).unwrap()) {
                count += 1;
                let parsed = Cli::try_parse_from(line.split_whitespace());
                let wrong = parsed.err().map(|error| error.to_string());
                assert_eq!(wrong, None, "{}: {line}", path.display());
            }
        }
        assert!(count > 40, "{count} lines were found");
    }
}
