//! Studies built from flags, loaded as if they were in files.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use lab_driver::{BaseUrl, BaseUrlError};
use lab_import::address::{sendable, without_user};
use lab_import::quick::{ConnectOptions, OneRequest, Quick, QuickLoad, study, workload};
use lab_study::plan::Plan;
use lab_study::{Environment, Files, Loaded, LoadedAny, load_any, looks_secret};

use crate::args::StudyArgs;
use crate::commands::load;
use crate::exit::{Exit, Failure};
use crate::files::{Disk, DiskAndEnvironment};
use crate::trying::{BenchArgs, QuickArgs, QuickLoadArgs, ReachArgs};
use lab_terminal::stderr::say;

/// The study is in no file; the archive has it under this name.
const STUDY: &str = "plimsoll-quick.study.yaml";
const WORKLOAD: &str = "plimsoll-quick.workload.yaml";

/// The defaults.
const USERS: u32 = 10;
const HOLD: Duration = Duration::from_secs(30);
const LONGEST_RAMP: Duration = Duration::from_secs(10);

/// Texts that are in no folder; all other files are on the disk.
pub(crate) struct Made<'a> {
    pub(crate) texts: Vec<(String, String)>,
    /// Secrets of the command line, by the names in the texts.
    pub(crate) given: Vec<(String, String)>,
    pub(crate) disk: &'a dyn Files,
}

impl Files for Made<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.texts.iter().find(|(name, _)| name == path) {
            Some((_, text)) => Ok(text.clone().into_bytes()),
            None => self.disk.read(path),
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.disk.names(folder)
    }

    fn environment(&self, name: &str) -> Environment {
        if let Some((_, value)) = self.given.iter().find(|(given, _)| given == name) {
            return Environment::Set(value.clone());
        }
        self.disk.environment(name)
    }
}

/// A workload file under load, against a running server.
pub(crate) fn run(
    args: &StudyArgs,
    (url, files): (&str, &dyn Files),
    flags: &QuickArgs,
) -> Result<(Loaded, Plan), Failure> {
    let reach = reach(&flags.reach)?;
    at(args, (url, files), |name, base| Quick {
        pid: process(base),
        reach,
        ..quick(name, format!("{name} at {base}"), base, &flags.load)
    })
}

/// A workload file on a running server, for one of its users.
pub(crate) fn attempt(
    args: &StudyArgs,
    (url, reached): (&str, &ReachArgs),
    user: u32,
) -> Result<(Loaded, Plan), Failure> {
    let load = QuickLoadArgs {
        users: Some(USERS.max(user.saturating_add(1))),
        ..QuickLoadArgs::default()
    };
    let reach = reach(reached)?;
    at(args, (url, &DiskAndEnvironment), |name, base| Quick {
        reach,
        ..quick(name, format!("{name} at {base}"), base, &load)
    })
}

/// A study built by `make`, with the workload file in place of a study.
fn at(
    args: &StudyArgs,
    (url, files): (&str, &dyn Files),
    make: impl FnOnce(&str, &BaseUrl) -> Quick,
) -> Result<(Loaded, Plan), Failure> {
    let path = load::text(&args.study)?;
    let base = server(url)?;
    let name = match load_any(path, &Disk).map_err(|error| load::bad_file(&error))? {
        LoadedAny::Workload(workload) => workload.name,
        LoadedAny::Study(_) => {
            return Err(Failure::text(
                Exit::BadInput,
                format!("{path} is a study, which names its server itself; --url takes a workload"),
            )
            .hint(
                "leave --url out, or change what the study attaches to: \
                 --set system.attach.url=URL",
            ));
        }
    };
    let quick = make(&name, &base);
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let quick = Quick {
        workload: format!("./{file}"),
        repeats: true,
        ..quick
    };
    let place = match folder {
        "" if path.starts_with('/') => format!("/{STUDY}"),
        "" => STUDY.to_owned(),
        folder => format!("{folder}/{STUDY}"),
    };
    let made = Made {
        texts: vec![(place.clone(), study(&quick))],
        given: Vec::new(),
        disk: files,
    };
    load::study_from(&place, &made, args)
}

/// One request under load.
pub(crate) fn bench(args: &BenchArgs, shown: &StudyArgs) -> Result<(Loaded, Plan), Failure> {
    let (url, credentials) = without_user(&args.url);
    let (base, target) = BaseUrl::split_http(&url).map_err(|error| bad_url(&error))?;
    let body = args.body.as_deref().map(body).transpose()?;
    let otherwise = if body.is_some() { "POST" } else { "GET" };
    let headers = args.headers.iter().cloned().chain(credentials).collect();
    let (request, secrets) = OneRequest {
        method: args.method.clone().unwrap_or_else(|| otherwise.to_owned()),
        target: sendable(target),
        max_body: args.max_body,
        body,
        ..OneRequest::default()
    }
    .with_headers(headers, looks_secret)
    .map_err(|why| Failure::text(Exit::BadInput, why))?;
    let title = format!("{} {url}", request.method);
    let name = format!("bench-{}", base.authority());
    let quick = Quick {
        workload: WORKLOAD.to_owned(),
        pid: process(&base),
        reach: reach(&args.reach)?,
        ..quick(&name, title, &base, &args.load)
    };
    let made = Made {
        texts: vec![
            (STUDY.to_owned(), study(&quick)),
            (WORKLOAD.to_owned(), workload(&name, &request)),
        ],
        given: secrets,
        disk: &DiskAndEnvironment,
    };
    load::study_from(STUDY, &made, shown)
}

fn quick(name: &str, title: String, base: &BaseUrl, load: &QuickLoadArgs) -> Quick {
    let hold = load.hold.unwrap_or(HOLD);
    Quick {
        name: name.to_owned(),
        title,
        workload: String::new(),
        url: base.to_string(),
        pid: None,
        reach: ConnectOptions::default(),
        load: match load.rate {
            Some(per_s) => QuickLoad::Rate {
                per_s,
                connections: load.users,
            },
            None => QuickLoad::Users(load.users.unwrap_or(USERS)),
        },
        ramp: load.ramp.unwrap_or_else(|| (hold / 10).min(LONGEST_RAMP)),
        hold,
        timeout: load.timeout,
        repeats: false,
    }
}

/// The connection settings; the CA path is absolute.
pub(crate) fn reach(args: &ReachArgs) -> Result<ConnectOptions, Failure> {
    let ca = args.ca.as_deref().map(|path| -> Result<String, Failure> {
        let whole = std::path::absolute(path);
        let whole = whole.map_err(|error| said(path, &error.to_string()))?;
        let text = whole.to_str();
        Ok(text
            .ok_or_else(|| said(path, "the name is not UTF-8"))?
            .to_owned())
    });
    Ok(ConnectOptions {
        ca: ca.transpose()?,
        insecure: args.insecure,
        http: args.http.clone(),
    })
}

fn said(path: &Path, what: &str) -> Failure {
    Failure::text(Exit::BadInput, format!("{}: {what}", path.display()))
}

/// Finds the server's process, if it runs here: so its CPU doesn't count as other programs'.
pub(crate) fn process(base: &BaseUrl) -> Option<u32> {
    let host = base.host.trim_end_matches('.');
    let address: Option<IpAddr> = host.parse().ok();
    let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let found = lab_monitor::listener(base.port).filter(|_| is_here)?;
    say(format_args!(
        "the server is process {} ({}): its CPU and memory are sampled",
        found.pid,
        found.name.escape_debug()
    ));
    Some(found.pid)
}

pub(crate) fn server(url: &str) -> Result<BaseUrl, Failure> {
    url.parse().map_err(|error| {
        let failure = bad_url(&error);
        match &error {
            BaseUrlError::Path(_, base) => {
                failure.hint(format!("the workload has the paths: --url {base}"))
            }
            _ => failure,
        }
    })
}

fn bad_url(error: &BaseUrlError) -> Failure {
    Failure::new(Exit::BadInput, error)
}

/// Returns the text itself, or the contents of the file that it names.
fn body(given: &str) -> Result<String, Failure> {
    let Some(path) = given.strip_prefix('@') else {
        return Ok(given.to_owned());
    };
    let bytes = Disk.read(path);
    let bytes = bytes.map_err(|error| said(Path::new(path), &error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| said(Path::new(path), "the body is not UTF-8"))
}

/// Returns the flags that a resumed run needs again, each followed by a space.
pub(crate) fn again(args: &QuickArgs) -> String {
    let Some(url) = &args.url else {
        return String::new();
    };
    let mut flags = format!("--url {url} ");
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            flags.push_str(&format!("{name} {value} "));
        }
    };
    let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
    let load = &args.load;
    add("--users", load.users.map(|n| n.to_string()));
    add("--rate", load.rate.map(|rate| rate.to_string()));
    add("--for", load.hold.map(milliseconds));
    add("--ramp", load.ramp.map(milliseconds));
    add("--timeout", load.timeout.map(milliseconds));
    let reach = &args.reach;
    let ca = reach.ca.as_ref().map(|path| path.display().to_string());
    add(
        "--ca",
        ca.map(|path| format!("'{}'", path.replace('\'', r"'\''"))),
    );
    add("--http", reach.http.clone());
    if reach.insecure {
        flags.push_str("--insecure ");
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_space_is_one_word_of_the_line_that_resumes() {
        let args = QuickArgs {
            url: Some("https://h".to_owned()),
            load: QuickLoadArgs::default(),
            reach: ReachArgs {
                ca: Some("it's my ca.pem".into()),
                ..ReachArgs::default()
            },
        };
        assert_eq!(again(&args), r"--url https://h --ca 'it'\''s my ca.pem' ");
    }
}
