//! `plimsoll users` and `plimsoll sessions`: the accounts of a groupware server, over its admin interface.

use std::io::{BufRead, IsTerminal, Read, Write, stderr, stdin};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use groupware_text::encoded;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::commands::print;
use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt;
use crate::operating::{OnOff, SessionsArgs, SessionsCommand, UsersArgs, UsersCommand};
use crate::size::size;
use lab_terminal::stderr::say;

pub(crate) fn run(args: &UsersArgs) -> Result<Exit, Failure> {
    let admin = Admin::new(&args.server)?;
    match &args.command {
        UsersCommand::Add(user) => add(&admin, &user.name),
        UsersCommand::List { json } => list(&admin, *json),
        UsersCommand::Show { name, json } => show(&admin, name, *json),
        UsersCommand::Passwd(user) => {
            let name = &user.name;
            admin.get(&path(name))?;
            set_password(&admin, name, &new_password(name)?)?;
            print(&format!(
                "{name} has a new password; all sessions have ended\n"
            ))
        }
        UsersCommand::Disable(user) => {
            admin
                .ask("POST", &format!("{}/disable", path(&user.name)), b"")?
                .good()?;
            print(&format!("{} can't sign in any more\n", user.name))
        }
        UsersCommand::Enable(user) => {
            admin
                .ask("POST", &format!("{}/enable", path(&user.name)), b"")?
                .good()?;
            print(&format!("{} can sign in again\n", user.name))
        }
        UsersCommand::Admin { name, may } => set_admin(&admin, name, *may),
        UsersCommand::Remove { name, yes } => remove(&admin, name, *yes),
        UsersCommand::Export { name, file } => export(&admin, name, file),
        UsersCommand::Usage { names, json } => usage(&admin, names, *json),
    }
}

pub(crate) fn sessions(args: &SessionsArgs) -> Result<Exit, Failure> {
    let admin = Admin::new(&args.server)?;
    match &args.command {
        SessionsCommand::List { name, json } => list_sessions(&admin, name.as_deref(), *json),
        SessionsCommand::End { name, id } => {
            let path = match id {
                Some(id) => format!("{}/sessions/{}", path(name), encoded(id)),
                None => format!("{}/sessions", path(name)),
            };
            admin.ask("DELETE", &path, b"")?.good()?;
            print(match id {
                Some(_) => "the session has ended\n",
                None => "all sessions have ended\n",
            })
        }
    }
}

pub(crate) fn path(name: &str) -> String {
    format!("/admin/users/{}", encoded(name))
}

fn add(admin: &Admin, name: &str) -> Result<Exit, Failure> {
    let password = new_password(name)?;
    let body = json!({ "users": [{ "name": name }] }).to_string();
    let made = admin
        .ask("POST", "/admin/users", body.as_bytes())?
        .good()?
        .json()?;
    if made["users"][0]["created"] != json!(true) {
        let text = format!("there is a user {name} already");
        return Err(Failure::text(Exit::BadInput, text).hint(format!(
            "`plimsoll users passwd {name}` sets another password"
        )));
    }
    if let Err(failure) = set_password(admin, name, &password) {
        // Otherwise a user without a password would be left, and the next try would find the name taken.
        let _ = admin.ask("DELETE", &path(name), b"");
        return Err(failure);
    }
    print(&format!("{name} can sign in\n"))
}

fn set_admin(admin: &Admin, name: &str, may: OnOff) -> Result<Exit, Failure> {
    let (method, said) = match may {
        OnOff::On => ("PUT", "may manage users, at /users in the browser"),
        OnOff::Off => ("DELETE", "may not manage users any more"),
    };
    let path = format!("{}/admin", path(name));
    admin.ask(method, &path, b"")?.good()?;
    print(&format!("{name} {said}\n"))
}

fn set_password(admin: &Admin, name: &str, password: &str) -> Result<(), Failure> {
    let body = json!({ "password": password }).to_string();
    admin.ask("PUT", &path(name), body.as_bytes())?.good()?;
    Ok(())
}

/// Asks for a password twice, without showing it; without a terminal, reads a line of stdin.
fn new_password(name: &str) -> Result<String, Failure> {
    let unread = |error: std::io::Error| {
        Failure::text(
            Exit::BadInput,
            format!("the password can't be read: {error}"),
        )
    };
    if !stdin().is_terminal() {
        let mut line = String::new();
        stdin().lock().read_line(&mut line).map_err(unread)?;
        let password = line.trim_end_matches(['\r', '\n']);
        return match password.is_empty() {
            false => Ok(password.to_owned()),
            true => Err(
                Failure::text(Exit::BadInput, "there is no password on stdin")
                    .hint("write it as a line of stdin, or start the command in a terminal"),
            ),
        };
    }
    let password =
        rpassword::prompt_password(format!("New password of {name}: ")).map_err(unread)?;
    let again = rpassword::prompt_password("The same again: ").map_err(unread)?;
    match password == again {
        true => Ok(password),
        false => Err(Failure::text(
            Exit::BadInput,
            "these are two different passwords",
        )),
    }
}

/// Returns all users, page by page.
fn all(admin: &Admin) -> Result<Vec<Value>, Failure> {
    let (mut users, mut after) = (Vec::new(), String::new());
    loop {
        let page = admin.get(&format!("/admin/users?after={}", encoded(&after)))?;
        users.extend(page["users"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => return Ok(users),
        }
    }
}

fn list(admin: &Admin, as_json: bool) -> Result<Exit, Failure> {
    let users = all(admin)?;
    if as_json {
        return print_lines(&users);
    }
    let rows = users.iter().map(|user| {
        let number = |key: &str| user[key].as_u64().unwrap_or_default().to_string();
        vec![
            text(&user["name"]),
            day(&user["created"]),
            state(user).to_owned(),
            yes(&user["admin"]),
            number("app_passwords"),
            number("sessions"),
        ]
    });
    print(&table(
        &[
            "USER",
            "SINCE",
            "SIGNS IN",
            "ADMIN",
            "APP PASSWORDS",
            "SESSIONS",
        ],
        rows,
    ))
}

/// Prints a line each, for programs.
fn print_lines(values: &[Value]) -> Result<Exit, Failure> {
    let lines: Vec<String> = values.iter().map(|value| format!("{value}\n")).collect();
    print(&lines.concat())
}

fn yes(value: &Value) -> String {
    match value == &json!(true) {
        true => "yes".to_owned(),
        false => String::new(),
    }
}

fn state(user: &Value) -> &'static str {
    let has_app_passwords = match &user["app_passwords"] {
        Value::Array(all) => !all.is_empty(),
        number => number.as_u64() != Some(0),
    };
    match (
        user["disabled"] == json!(true),
        user["password"] == json!(true),
    ) {
        (true, _) => "no: disabled",
        (false, true) => "yes",
        (false, false) if has_app_passwords => "programs only",
        (false, false) => "no: no password",
    }
}

fn show(admin: &Admin, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let user = admin.get(&path(name))?;
    if as_json {
        return print(&format!("{user:#}\n"));
    }
    let bytes = |key: &str| size(user["usage"][key].as_u64().unwrap_or_default());
    let mut shown = format!(
        "{}\n  since      {}\n  signs in   {}\n  mail       {}\n  documents  {}\n",
        text(&user["name"]),
        moment(&user["created"]),
        state(&user),
        bytes("mail_bytes"),
        bytes("document_bytes"),
    );
    if user["admin"] == json!(true) {
        shown += "  admin      yes: manages users at /users in the browser\n";
    }
    for password in user["app_passwords"].as_array().into_iter().flatten() {
        let used = match password["used"].is_null() {
            true => "not used since the server started".to_owned(),
            false => format!("last used {}", moment(&password["used"])),
        };
        shown += &format!(
            "  app password {} “{}”, made {}, {used}\n",
            text(&password["id"]),
            text(&password["label"]),
            day(&password["created"]),
        );
    }
    for session in user["sessions"].as_array().into_iter().flatten() {
        shown += &format!(
            "  session {}, begun {}, last used {}\n",
            text(&session["id"]),
            moment(&session["started"]),
            moment(&session["used"]),
        );
    }
    print(&shown)
}

fn remove(admin: &Admin, name: &str, yes: bool) -> Result<Exit, Failure> {
    admin.get(&path(name))?;
    if !yes {
        if !stdin().is_terminal() {
            return Err(Failure::text(Exit::BadInput, "nobody is there to be asked")
                .hint("--yes removes the user and all of the user's data without asking"));
        }
        let _ = write!(
            stderr().lock(),
            "Remove {name} with all mail, meetings, and documents? Type the name again: "
        );
        let mut line = String::new();
        let read = stdin().lock().read_line(&mut line);
        if read.is_err() || line.trim() != name {
            return Err(Failure::text(Exit::BadInput, "nothing was removed"));
        }
    }
    admin.ask("DELETE", &path(name), b"")?.good()?;
    print(&format!("{name} is removed\n"))
}

/// The file gets its name when it is complete; a failure leaves no file.
fn export(admin: &Admin, name: &str, to: &Path) -> Result<Exit, Failure> {
    save(admin, name, &format!("{}/takeout", path(name)), to)
}

/// Writes the answer of `of`, which may be long, into a file that must not exist.
pub(crate) fn save(admin: &Admin, name: &str, of: &str, to: &Path) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| {
        let text = format!("cannot write {}: {error}", to.display());
        Failure::text(Exit::BadInput, text)
    };
    if to.exists() {
        let text = format!("{} is there already", to.display());
        return Err(Failure::text(Exit::BadInput, text)
            .hint("name another file, or move this one away; nothing is overwritten"));
    }
    let interrupt = interrupt()?;
    let folder = super::written::folder_of(to);
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let mut body = admin.download(of)?;
    let bar = progress(name);
    let (mut buffer, mut written) = (vec![0; 64 << 10], 0);
    loop {
        let length = body.read(&mut buffer).map_err(|error| {
            let text = format!("the answer broke off after {}: {error}", size(written));
            Failure::text(Exit::Internal, text).hint("the server's log says why; try again")
        })?;
        if interrupt.load(Relaxed) {
            return Err(Failure::text(Exit::Interrupted, "nothing was written"));
        }
        if length == 0 {
            break;
        }
        file.write_all(&buffer[..length]).map_err(failed)?;
        written += length as u64;
        bar.set_position(written);
    }
    bar.finish_and_clear();
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(to)
        .map_err(|error| failed(error.error))?;
    print(&format!("{}: {}\n", to.display(), size(written)))
}

/// Shown on a terminal only.
fn progress(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}: {bytes} in {elapsed}");
    let bar = ProgressBar::no_length().with_message(name.to_owned());
    bar.with_style(style.expect("the template is right"))
}

fn usage(admin: &Admin, names: &[String], as_json: bool) -> Result<Exit, Failure> {
    let names: Vec<String> = match names.is_empty() {
        true => all(admin)?.iter().map(|user| text(&user["name"])).collect(),
        false => names.to_vec(),
    };
    let mut used = Vec::with_capacity(names.len());
    for name in names {
        let user = admin.get(&path(&name))?;
        let bytes = |key: &str| user["usage"][key].as_u64().unwrap_or_default();
        used.push(json!({
            "name": name,
            "mail_bytes": bytes("mail_bytes"),
            "document_bytes": bytes("document_bytes"),
        }));
    }
    if as_json {
        return print_lines(&used);
    }
    let rows = used.iter().map(|user| {
        let bytes = |key: &str| size(user[key].as_u64().unwrap_or_default());
        vec![
            text(&user["name"]),
            bytes("mail_bytes"),
            bytes("document_bytes"),
        ]
    });
    print(&table(&["USER", "MAIL", "DOCUMENTS"], rows))
}

fn list_sessions(admin: &Admin, name: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let has_some = |user: &&Value| user["sessions"].as_u64() != Some(0);
    let names: Vec<String> = match name {
        Some(name) => vec![name.to_owned()],
        None => all(admin)?
            .iter()
            .filter(has_some)
            .map(|user| text(&user["name"]))
            .collect(),
    };
    let mut found = Vec::new();
    for name in names {
        let user = admin.get(&path(&name))?;
        for session in user["sessions"].as_array().into_iter().flatten() {
            found.push(json!({
                "user": name,
                "id": session["id"],
                "started": session["started"],
                "used": session["used"],
            }));
        }
    }
    if as_json {
        return print_lines(&found);
    }
    if found.is_empty() {
        say(format_args!("nobody is signed in"));
        return Ok(Exit::Success);
    }
    let rows = found.iter().map(|session| {
        vec![
            text(&session["user"]),
            text(&session["id"]),
            moment(&session["started"]),
            moment(&session["used"]),
        ]
    });
    print(&table(&["USER", "SESSION", "BEGUN", "LAST USED"], rows))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn moment(seconds: &Value) -> String {
    let moment = Timestamp::from_second(seconds.as_i64().unwrap_or_default());
    moment
        .map(|moment| moment.strftime("%F %T UTC").to_string())
        .unwrap_or_default()
}

fn day(seconds: &Value) -> String {
    let moment = Timestamp::from_second(seconds.as_i64().unwrap_or_default());
    moment
        .map(|moment| moment.strftime("%F").to_string())
        .unwrap_or_default()
}

/// Formats a table with columns as wide as their contents.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(|title| (*title).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column));
        widths
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line += &format!("{cell:<width$}  ", width = width(column));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
