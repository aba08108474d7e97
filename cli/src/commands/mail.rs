//! `plimsoll mail`: a user's mail from files, and into files, over the admin interface.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::iter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use groupware_mailfiles::{Copies, Flags, Maildir, MaildirWriter, Mbox, Message, Read, write_mbox};
use groupware_text::encoded;
use serde_json::Value;

use crate::admin::Admin;
use crate::commands::print;
use crate::commands::users::path;
use crate::exit::{Exit, Failure};
use crate::operating::{ExportArgs, ImportArgs, MailArgs, MailCommand, MailFormat};
use lab_terminal::stderr::say;

/// The maximum bytes of a message that a server accepts.
const MESSAGE_BYTES: usize = 16 << 20;
/// The maximum number of rejected messages that are reported one by one.
const TOLD: u64 = 20;

pub(crate) fn run(args: &MailArgs) -> Result<Exit, Failure> {
    let admin = Admin::new(&args.server)?;
    match &args.command {
        MailCommand::Import(args) => import(&admin, args),
        MailCommand::Export(args) => export(&admin, args),
    }
}

fn disk(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::text(Exit::BadInput, format!("cannot use {path}: {error}"))
}

/// An import under way.
struct Import<'a> {
    admin: &'a Admin,
    path: String,
    new: u64,
    there: u64,
    refused: u64,
    seen: Copies,
}

fn import(admin: &Admin, args: &ImportArgs) -> Result<Exit, Failure> {
    admin.get(&path(&args.name))?;
    let mut import = Import {
        admin,
        path: format!("{}/mail", path(&args.name)),
        new: 0,
        there: 0,
        refused: 0,
        seen: Copies::default(),
    };
    let failed = disk(&args.source);
    let maildir = Maildir::open(&args.source);
    let kind = if maildir.is_some() { "Maildir" } else { "mbox" };
    if let Some(maildir) = maildir {
        for folder in maildir.folders().map_err(&failed)? {
            let name = folder.name.clone().unwrap_or_else(|| args.folder.clone());
            let mapped = args.map.iter().find(|(from, _)| *from == name);
            let name = mapped.map_or(&*name, |(_, to)| to);
            import.folder(name, folder.messages(MESSAGE_BYTES).map_err(&failed)?, None)?;
        }
    } else {
        let file = File::open(&args.source).map_err(&failed)?;
        let found = file.metadata().map_err(&failed)?;
        if found.is_dir() {
            let text = format!("{} is neither a Maildir nor an mbox", args.source.display());
            return Err(Failure::text(Exit::BadInput, text)
                .hint("a Maildir has the folders cur and new; name an mbox itself"));
        }
        let messages = Mbox::new(BufReader::with_capacity(256 << 10, file), MESSAGE_BYTES);
        // If its line has no date of receipt, the file's modification time is the latest possible.
        let modified = found.modified().ok().and_then(micros);
        import.folder(&args.folder, messages, modified)?;
    }
    let Import {
        new,
        there,
        refused,
        ..
    } = import;
    if new + there + refused == 0 {
        return Err(nothing(&args.source, kind));
    }
    print(&format!(
        "{new} messages imported, {there} were there already\n"
    ))?;
    match refused {
        0 => Ok(Exit::Success),
        _ => Err(Failure::text(
            Exit::Internal,
            format!("{refused} messages were not imported"),
        )),
    }
}

/// The failure of an import without any message: most likely the file is of another kind.
fn nothing(source: &Path, kind: &str) -> Failure {
    let text = format!("no message was found in {}", source.display());
    let hint = match kind {
        "mbox" => {
            "an mbox has a line `From SENDER DATE` in front of each message; put single messages \
             (.eml) into the folder new of a Maildir"
        }
        _ => "a Maildir has a file for each message in its folders cur and new",
    };
    Failure::text(Exit::BadInput, text).hint(hint)
}

fn micros(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}

impl Import<'_> {
    fn folder(
        &mut self,
        name: &str,
        messages: impl Iterator<Item = std::io::Result<Read>>,
        otherwise: Option<i64>,
    ) -> Result<(), Failure> {
        for message in messages {
            let message = message.map_err(|error| {
                Failure::text(Exit::BadInput, format!("cannot read {name}: {error}"))
            })?;
            match message {
                Read::TooLarge(place) => self.refuse(&place, "it is larger than 16 MiB"),
                Read::Message(message) => self.message(name, &message, otherwise)?,
            }
        }
        Ok(())
    }

    fn refuse(&mut self, what: &str, why: &str) {
        self.refused += 1;
        if self.refused <= TOLD {
            say(format_args!("not imported: {what}: {why}"));
        }
    }

    fn message(
        &mut self,
        folder: &str,
        message: &Message,
        otherwise: Option<i64>,
    ) -> Result<(), Failure> {
        let received = message.received_us.or(otherwise).unwrap_or_default().max(0);
        let folder = match message.flags.trashed {
            true => "Trash",
            false => folder,
        };
        let copy = self.seen.number(&message.bytes, received);
        // The folder determines whether it is a draft or deleted.
        let flags = Flags {
            draft: false,
            trashed: false,
            ..message.flags
        };
        let query = format!(
            "folder={}&received={received}&copy={copy}&flags={}&keywords={}",
            encoded(folder),
            flags.letters(),
            encoded(&message.keywords.join(" "))
        );
        let answer = self
            .admin
            .ask("POST", &format!("{}?{query}", self.path), &message.bytes)?;
        match answer.status {
            201 => self.new += 1,
            200 => self.there += 1,
            // The fault of this message, or its folder, and not of the next one.
            400 | 409 | 413 => {
                let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let why = told["message"]
                    .as_str()
                    .unwrap_or("the server refused it")
                    .to_owned();
                self.refuse(&format!("a message in {folder}"), &why);
            }
            _ => drop(answer.good()?),
        }
        Ok(())
    }
}

/// The target of an export.
enum To {
    Maildir(MaildirWriter),
    Mbox,
}

fn export(admin: &Admin, args: &ExportArgs) -> Result<Exit, Failure> {
    let failed = disk(&args.to);
    let of = format!("{}/mail", path(&args.name));
    let folders = admin.get(&of)?;
    let to = match args.format {
        MailFormat::Maildir => To::Maildir(MaildirWriter::new(&args.to).map_err(&failed)?),
        MailFormat::Mbox => {
            let mut builder = fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
            builder.create(&args.to).map_err(&failed)?;
            To::Mbox
        }
    };
    let (mut written, mut taken) = (0, HashSet::new());
    for folder in folders["folders"].as_array().into_iter().flatten() {
        let (id, name) = (folder["id"].as_str(), folder["name"].as_str());
        let (Some(id), Some(name)) = (id, name) else {
            continue;
        };
        let of = format!("{of}/{}", encoded(id));
        written += match &to {
            To::Maildir(writer) => {
                let (new, left_out) =
                    export_maildir(admin, &of, (writer, name)).map_err(either(&failed))?;
                if left_out > 0 {
                    let most = "a Maildir has 26 different ones in a folder, and an mbox all";
                    say(format_args!(
                        "{left_out} keywords left out in {name}: {most}"
                    ));
                }
                new
            }
            To::Mbox => {
                let path = args.to.join(mbox_name(name, &mut taken));
                export_mbox(admin, &of, &path).map_err(either(&failed))?
            }
        };
    }
    print(&format!(
        "{written} messages written to {}\n",
        args.to.display()
    ))
}

/// A failure of the server or of the disk.
enum Cause {
    Server(Failure),
    Disk(std::io::Error),
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Self {
        Self::Server(failure)
    }
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

fn either(failed: &impl Fn(std::io::Error) -> Failure) -> impl Fn(Cause) -> Failure {
    move |cause| match cause {
        Cause::Server(failure) => failure,
        Cause::Disk(error) => failed(error),
    }
}

fn export_maildir(
    admin: &Admin,
    of: &str,
    (writer, name): (&MaildirWriter, &str),
) -> Result<(u64, usize), Cause> {
    let folder = writer.folder(Some(name).filter(|name| *name != "Inbox"))?;
    let (mut written, mut left_out) = (0, 0);
    each(admin, of, |id, message| {
        let seconds = message.received_us.unwrap_or_default() / 1_000_000;
        let unique = format!("{seconds}.{id}.plimsoll");
        let put = writer.write(&folder, &unique, message)?;
        written += u64::from(put.is_new);
        left_out += put.left_out;
        Ok(())
    })?;
    Ok((written, left_out))
}

/// Returns the file name of a folder, different from all others.
fn mbox_name(folder: &str, taken: &mut HashSet<String>) -> String {
    let plain = |letter: char| match letter {
        '/' | '\0' => '_',
        letter => letter,
    };
    let name: String = folder.chars().map(plain).collect();
    let others = (2..).map(|number| format!("{name}-{number}.mbox"));
    let mut names = iter::once(format!("{name}.mbox")).chain(others);
    let free = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

fn export_mbox(admin: &Admin, of: &str, path: &Path) -> Result<u64, Cause> {
    let mut written = 0;
    let mut options = File::options();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = None;
    each(admin, of, |_, message| {
        if file.is_none() {
            file = Some(BufWriter::new(options.open(path)?));
        }
        if let Some(file) = &mut file {
            write_mbox(file, message)?;
        }
        written += 1;
        Ok(())
    })?;
    if let Some(mut file) = file {
        file.flush()?;
    }
    Ok(written)
}

/// Writes each message of a folder, one at a time. Messages deleted meanwhile are skipped.
fn each(
    admin: &Admin,
    of: &str,
    mut write: impl FnMut(&str, &Message) -> std::io::Result<()>,
) -> Result<(), Cause> {
    let mut after = String::new();
    loop {
        let page = admin.get(&format!("{of}{after}"))?;
        for line in page["messages"].as_array().into_iter().flatten() {
            let id = line["id"].as_str().unwrap_or_default();
            let answer = admin.ask("GET", &format!("{of}/{}", encoded(id)), b"")?;
            if answer.status == 404 {
                continue;
            }
            let flags = line["flags"].as_str().unwrap_or_default();
            let keywords = line["keywords"].as_array().into_iter().flatten();
            let keywords = keywords.filter_map(Value::as_str);
            let message = Message {
                bytes: answer.good()?.body,
                received_us: line["received"].as_i64(),
                flags: Flags {
                    draft: of.ends_with("/drafts"),
                    trashed: false,
                    ..Flags::of_letters(flags)
                },
                keywords: keywords.map(str::to_owned).collect(),
            };
            write(id, &message)?;
        }
        match page["next"].as_str() {
            Some(next) => after = format!("?after={}", encoded(next)),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_files_of_their_own() {
        let mut taken = HashSet::new();
        let names = ["a/b", "a_b", "a_b-2", "Inbox"].map(|name| mbox_name(name, &mut taken));
        assert_eq!(
            names,
            ["a_b.mbox", "a_b-2.mbox", "a_b-2-2.mbox", "Inbox.mbox"]
        );
    }
}
