//! `plimsoll init`: the first study and workload of a user's own server.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use lab_driver::BaseUrl;
use lab_import::first::{First, files};

use crate::beginning::InitArgs;
use crate::commands::{print, script, written};
use crate::exit::{Exit, Failure};

/// The defaults.
const URL: &str = "http://127.0.0.1:8080/";
const USERS: u32 = 10;
const LIMIT: &str = "500ms";
/// The maximum number of times that a question is asked.
const MOST_TIMES: usize = 5;

pub(crate) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    if let Some(from) = &args.from {
        let named = (args.url.as_deref(), args.name.as_deref());
        return script::write(from, named, args.force);
    }
    let first = first(args)?;
    let files = files(&first);
    let shown = |end: &str| match args.dir.as_os_str() == "." {
        true => format!("{}.{end}.yaml", files.name).into(),
        false => args.dir.join(format!("{}.{end}.yaml", files.name)),
    };
    let (study, workload): (PathBuf, PathBuf) = (shown("study"), shown("workload"));
    if !args.force {
        [&study, &workload]
            .into_iter()
            .try_for_each(|path| written::is_free(path))?;
    }
    fs::create_dir_all(&args.dir).map_err(|error| written::failure(&args.dir, &error))?;
    written::write(&workload, &files.workload)?;
    written::write(&study, &files.study)?;
    print(&next(&study, &workload))
}

fn next(study: &Path, workload: &Path) -> String {
    let (study, workload) = (study.display(), workload.display());
    format!(
        "{workload}    what one user does\n{study}    how many there are, and where\n\nnext:\n  \
         plimsoll try {study}    one user: every request and answer\n  \
         plimsoll run {study}    measures, and writes a report\n"
    )
}

/// Returns the content of the files, from arguments, or from questions on a terminal.
fn first(args: &InitArgs) -> Result<First, Failure> {
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal() && !args.yes;
    if args.url.is_none() && !can_ask {
        return Err(Failure::text(
            Exit::BadInput,
            "which server? --url is missing, and nobody can be asked",
        )
        .hint("plimsoll init --url http://127.0.0.1:8080/ --yes"));
    }
    let (url, target) = match &args.url {
        Some(url) => address(url).map_err(|said| Failure::text(Exit::BadInput, said))?,
        None => ask(
            "Where is the server, and the page to begin with?",
            URL,
            &address,
        )?,
    };
    let users = match args.users {
        Some(users) => users,
        None if can_ask => ask("How many users at once?", &USERS.to_string(), &users)?,
        None => USERS,
    };
    let limit = match &args.limit {
        Some(limit) => limit.clone(),
        None if can_ask => ask("How long may 95 of 100 answers take?", LIMIT, &limit)?,
        None => LIMIT.to_owned(),
    };
    let name = args.name.clone().unwrap_or_else(|| name(&url));
    Ok(First {
        name,
        url,
        target,
        users,
        limit,
    })
}

/// The server's name without port and top-level domain: `shop` of `http://www.shop.example:8080`.
fn name(url: &str) -> String {
    let host = url
        .parse::<BaseUrl>()
        .map(|base| base.host)
        .unwrap_or_default();
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    match host.trim_start_matches("www.").split('.').next() {
        Some(first) if !is_address && !first.is_empty() => first.to_owned(),
        _ => "server".to_owned(),
    }
}

/// Asks until the answer is valid; an empty one selects the default.
fn ask<T>(
    question: &str,
    usual: &str,
    read: &dyn Fn(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    let mut lines = io::stdin().lock().lines();
    for _ in 0..MOST_TIMES {
        let mut err = io::stderr().lock();
        let _ = write!(err, "{question} [{usual}] ");
        let _ = err.flush();
        let line = match lines.next() {
            Some(Ok(line)) => line,
            _ => break,
        };
        let given = if line.trim().is_empty() {
            usual
        } else {
            line.trim()
        };
        match read(given) {
            Ok(value) => return Ok(value),
            Err(said) => {
                let _ = writeln!(err, "  {said}");
            }
        }
    }
    Err(Failure::text(Exit::BadInput, "the question has no answer"))
}

/// Splits an address into server and path; `shop.example` is `http://shop.example/`.
fn address(text: &str) -> Result<(String, String), String> {
    let url = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let (base, target) = BaseUrl::split_http(&url).map_err(|error| error.to_string())?;
    let target = target.split('#').next().unwrap_or_default();
    if target.contains(char::is_whitespace) {
        return Err("an address has no spaces".to_owned());
    }
    let target = match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("/{target}"),
    };
    Ok((base.to_string(), target))
}

fn users(text: &str) -> Result<u32, String> {
    let users: Option<u32> = text.parse().ok();
    users
        .filter(|users| (1..=1_000_000).contains(users))
        .ok_or_else(|| "a number, from 1 to 1000000".to_owned())
}

fn limit(text: &str) -> Result<String, String> {
    lab_study::duration(text, std::time::Duration::from_secs(3600))
        .map(|_| text.to_owned())
        .map_err(|error| format!("{error}; write 500ms or 2s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        let split = |text: &str| address(text).unwrap();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            split("http://a:8080/x?y=1#z"),
            pair("http://a:8080", "/x?y=1")
        );
        assert_eq!(split("shop.example"), pair("http://shop.example", "/"));
        assert_eq!(
            split("https://shop.example"),
            pair("https://shop.example", "/")
        );
        assert!(address("ftp://a/").is_err());
        assert!(address("http://a/b c").is_err());
    }

    #[test]
    fn files_are_called_after_the_server() {
        assert_eq!(name("http://www.shop.example:80"), "shop");
        assert_eq!(name("http://127.0.0.1:80"), "server");
        assert_eq!(name("http://localhost:80"), "localhost");
    }
}
