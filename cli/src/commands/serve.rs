//! `plimsoll serve`: the groupware server in this process, or a check of its data.

use std::time::Duration;

use groupware_server::{
    CheckError, Checked, Config, Data, DataError, DatabaseError, LogSettings, Networks,
    ObjectPlace, ObjectsError, ProcessEnvironment, Retention, ServeError, SmtpRole, TlsFiles,
};
use serde_json::json;

use crate::admin::TOKEN as ADMIN_TOKEN;
use crate::args::{Engine, Listener, LogFormat, LookupLayout, ServeArgs};
use crate::commands::print;
use crate::config_file;
use crate::database::database;
use crate::exit::{Exit, Failure};
use crate::memory;
use crate::object_store::object_place;

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let effective = config_file::effective(args.config.as_deref())?;
    let args = &effective.args;
    if args.print_config {
        let masked = std::env::var_os(ADMIN_TOKEN).is_some();
        print(&effective.printed(masked.then_some(ADMIN_TOKEN)))?;
        return Ok(Exit::Success);
    }
    if args.check {
        return check(&data(args)?, objects(args)?.as_ref(), args.json);
    }
    memory::give_back_large();
    let serve = match args.demo {
        true => groupware_server::run_demo,
        false => groupware_server::run,
    };
    serve(config(args)?, surroundings(args)).map_err(|error| {
        let exit = if error.is_configuration() {
            Exit::BadInput
        } else {
            Exit::Internal
        };
        hinted(Failure::new(exit, &error), &error)
    })?;
    Ok(Exit::Success)
}

const LATER: &str =
    "a later version has written to them: start that one, or bring back a backup from before";

fn hinted(failure: Failure, error: &ServeError) -> Failure {
    let ServeError::Data(error) = error else {
        return failure;
    };
    match error {
        DataError::HalfCopied(_) => {
            failure.hint("give the same `plimsoll store copy` again: it goes on where it has stopped")
        }
        DataError::TwoStores(folder) => failure.hint(format!(
            "after `plimsoll store copy`, move the files {}* elsewhere, and keep them until all is well",
            folder.join("groupware.sqlite").display()
        )),
        DataError::Database(DatabaseError::InUse { .. }) => {
            failure.hint(
                "something has the database to itself: a copy, a check, or a server of an older version",
            )
        }
        DataError::Database(DatabaseError::InUseByOlder { .. }) => failure.hint(
            "stop all servers over it, and then start those of this version. One by one goes from each version \
             to the next",
        ),
        DataError::Database(DatabaseError::NewerForms { .. }) => failure.hint(LATER),
        DataError::Forms(error) if error.is_newer() => failure.hint(LATER),
        DataError::OtherFolder { folder, known, .. } => failure.hint(format!(
            "all servers over one database use one folder, unless all their attachments are in an object store. If this is a copy of it that takes its place: echo {known} > {}",
            folder.join("folder-id").display()
        )),
        DataError::ObjectsElsewhere(_) => failure.hint(
            "give the same --content as before: s3://…; the log of the last start has it",
        ),
        DataError::Objects(ObjectsError::Others { .. }) => failure.hint(
            "each server, or each group of servers over one database, has a prefix of its own: name another",
        ),
        DataError::Objects(ObjectsError::Nothing { .. }) => failure.hint(
            "look at the bucket's name and the prefix. If this is a copy of the objects that takes their \
             place, the object plimsoll-content was left out of it",
        ),
        _ => failure,
    }
}

/// Returns the place of the data.
fn data(args: &ServeArgs) -> Result<Data, Failure> {
    Ok(match (&args.store, args.engine) {
        (Some(address), _) => Data::Postgres {
            database: database(address)?,
            folder: args.data.clone(),
        },
        (None, Engine::Sqlite) => Data::Folder(args.data.clone()),
        (None, Engine::Memory) => Data::Memory,
    })
}

/// Returns the place of attachments, if they are not with the data.
fn objects(args: &ServeArgs) -> Result<Option<ObjectPlace>, Failure> {
    let place = args.content.as_deref().map(object_place).transpose()?;
    if place.is_none() {
        return Ok(None);
    }
    if args.store.is_none() && args.engine == Engine::Memory {
        let words = "content is for records that last, and these are in memory";
        return Err(Failure::text(Exit::BadInput, words));
    }
    if args.keep_changes.is_some() {
        let words = "keep-changes is for attachments that lie in the data folder";
        return Err(Failure::text(Exit::BadInput, words)
            .hint("the object store keeps its own changes: see its versions of objects"));
    }
    Ok(place)
}

/// Reads the variables that systemd sets for its services.
fn surroundings(args: &ServeArgs) -> ProcessEnvironment {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let is_ours = number("WATCHDOG_PID").is_none_or(|id: u64| id == u64::from(std::process::id()));
    let file = args.config.clone();
    ProcessEnvironment {
        reread: file.map(|file| {
            let reread = move || {
                let effective = config_file::effective(Some(&file));
                let config = effective.and_then(|effective| config(&effective.args));
                config.map_err(|failure| failure.report)
            };
            Box::new(reread) as Box<dyn Fn() -> Result<Config, String>>
        }),
        notify_socket: std::env::var_os("NOTIFY_SOCKET"),
        watchdog: number("WATCHDOG_USEC")
            .filter(|_| is_ours)
            .map(Duration::from_micros),
    }
}

/// The maximum number of faults that are printed one by one.
const TOLD: usize = 100;

fn check(data: &Data, place: Option<&ObjectPlace>, as_json: bool) -> Result<Exit, Failure> {
    let checked = groupware_server::check_data(data, place).map_err(|error| {
        let exit = match &error {
            CheckError::NoFolder(_) => Exit::BadInput,
            CheckError::Objects(error) if error.is_configuration() => Exit::BadInput,
            _ => Exit::Internal,
        };
        let failure = Failure::new(exit, &error);
        if as_json {
            let report = failure.report.trim_end();
            // The exit code and stderr report it, too, if stdout is closed.
            let _ = print(&format!("{}\n", json!({ "whole": false, "error": report })));
        }
        failure
    })?;
    // Stdout may be closed.
    let _ = match as_json {
        true => print(&in_json(&checked)),
        false => print(&in_words(&checked)),
    };
    match checked.wrong.len() {
        0 => Ok(Exit::Success),
        count => {
            let text = format!("{count} faults in {data}");
            Err(Failure::text(Exit::Internal, text)
                .hint("restore what is damaged from a backup, or delete and attach it again"))
        }
    }
}

fn in_words(checked: &Checked) -> String {
    let mut words = format!("{checked}\n");
    for wrong in checked.wrong.iter().take(TOLD) {
        words += &format!("wrong: {wrong}\n");
    }
    words
}

fn in_json(checked: &Checked) -> String {
    let found = json!({
        "whole": checked.wrong.is_empty(),
        "users": checked.users,
        "messages": checked.messages,
        "message_bytes": checked.message_bytes,
        "documents": checked.documents,
        "contents": checked.contents,
        "content_bytes": checked.bytes,
        "unreferenced": checked.unreferenced,
        "wrong": checked.wrong,
    });
    format!("{found:#}\n")
}

fn config(args: &ServeArgs) -> Result<Config, Failure> {
    let mut config = Config::new(data(args)?);
    config.objects = objects(args)?;
    config.listen = args.listen;
    config.allow_plain_exposed = args.expose_without_tls;
    config.plain_cookies = args.plain_cookies;
    config.http_threads = args.http_threads.map(|n| n as usize);
    config.requests_at_once = args.requests_at_once.map(|n| n as usize);
    config.tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles {
            cert: cert.clone(),
            key: key.clone(),
        }),
        (None, None) => None,
        _ => {
            let words = "TLS needs both tls-cert and tls-key";
            return Err(Failure::text(Exit::BadInput, words));
        }
    };
    config.domain.clone_from(&args.domain);
    config.organization.clone_from(&args.organization);
    config.port_file.clone_from(&args.port_file);
    config.admin_token_file.clone_from(&args.admin_token_file);
    config.first_admin.clone_from(&args.first_admin);
    config.admin_token = std::env::var(ADMIN_TOKEN)
        .ok()
        .filter(|token| !token.is_empty());
    config.lookup = args.lookup;
    config.lookup_layout = match args.lookup_layout {
        LookupLayout::SingleDocument => groupware_server::LookupLayout::SingleDocument,
        LookupLayout::DocumentPerRegistration => {
            groupware_server::LookupLayout::DocumentPerRegistration
        }
        LookupLayout::Indexed => groupware_server::LookupLayout::Indexed,
    };
    if args.keep_changes.is_some() && !matches!(config.data, Data::Folder(_)) {
        let words = "keep-changes is for records that lie in the data folder";
        return Err(Failure::text(Exit::BadInput, words)
            .hint("a PostgreSQL server keeps its own changes: see its continuous archiving"));
    }
    config.keep_changes = args.keep_changes.map(|age| Retention {
        age,
        bytes: args.keep_changes_bytes,
    });
    config.mailbox_pad_bytes = args.mailbox_pad;
    config.limits.quota_bytes = args.quota;
    config.mail_quota_bytes = Some(args.mail_quota);
    config.smtp_listen = args.smtp_listen;
    config.mail_auth = args.mail_auth;
    config.resolvers.clone_from(&args.resolver);
    config.submission_listen = args.submission_listen;
    proxies(args, &mut config)?;
    config.parent_pid = args.parent_pid;
    config.log = LogSettings {
        format: match args.log {
            Some(LogFormat::Json) => groupware_server::LogFormat::Json,
            Some(LogFormat::Text) | None => groupware_server::LogFormat::Text,
        },
        requests: args.log.is_some(),
        slow_request: args.slow_request,
        slow_commit: args.slow_commit,
    };
    config.hosts.clone_from(&args.host);
    Ok(config)
}

/// Sets the trusted clients, the proxies, and the listeners that expect the PROXY protocol.
fn proxies(args: &ServeArgs, config: &mut Config) -> Result<(), Failure> {
    match &args.trust_client {
        Some(trusted) => config.trusted.clone_from(trusted),
        // A proxy may forward everybody's connections from an address of this machine.
        None if args.expose_without_tls || !args.host.is_empty() => {
            config.trusted = Networks::default();
        }
        None => {}
    }
    config.proxies = args.proxy.clone().unwrap_or_default();
    if args.proxy.is_none() && !args.proxy_protocol.is_empty() {
        let words = "proxy-protocol says how proxies speak, and proxy names none";
        return Err(Failure::text(Exit::BadInput, words)
            .hint("name the proxies' addresses, such as --proxy 192.0.2.10"));
    }
    let speak = |listener| args.proxy_protocol.contains(&listener);
    config.proxies_say = speak(Listener::Http);
    let roles = [
        (Listener::Smtp, SmtpRole::Receive),
        (Listener::Submission, SmtpRole::Submission),
    ];
    let roles = roles.into_iter().filter(|(listener, _)| speak(*listener));
    config.smtp_limits.proxies_say = roles.map(|(_, role)| role).collect();
    Ok(())
}
