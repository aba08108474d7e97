//! `plimsoll.toml`: the settings of a server in a file, by the names of the options of `plimsoll serve`.
//!
//! The file's values replace the options' defaults, so that the order is the command line's own: an option precedes the
//! environment, that the file, and that the default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches};
use toml::{Spanned, Value};

use crate::args::{Cli, Command as Subcommand, ServeArgs};
use crate::exit::{Exit, Failure};

/// Options that request something other than a server with other settings.
const NOT_SETTINGS: [&str; 8] = [
    "check",
    "json",
    "config",
    "demo",
    "help",
    "parent-pid",
    "print-config",
    "version",
];
/// The maximum bytes of a file.
const FILE_BYTES: u64 = 1 << 20;

/// The effective settings.
pub(crate) struct Effective {
    pub(crate) args: ServeArgs,
    matches: ArgMatches,
    options: Vec<Arg>,
    from_file: Vec<String>,
}

/// Returns the settings that this process was started with, completed by those of a file.
pub(crate) fn effective(file: Option<&Path>) -> Result<Effective, Failure> {
    let values = match file {
        Some(path) => read(path)?,
        None => BTreeMap::new(),
    };
    merged(&values, std::env::args_os())
}

/// A file's values, by the names of options. An option may have several values.
type Values = BTreeMap<String, Vec<String>>;

fn merged(
    values: &Values,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Effective, Failure> {
    let command = Cli::command().mut_subcommand("serve", |serve| with_defaults(serve, values));
    let options = settings(&Cli::command());
    let bad = |error: clap::Error| Failure::rendered(Exit::BadInput, error.to_string());
    let mut matches = command.try_get_matches_from(arguments).map_err(bad)?;
    let serve = matches.subcommand_matches("serve").cloned();
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(bad)?;
    match (cli.command, serve) {
        (Subcommand::Serve(args), Some(matches)) => Ok(Effective {
            args: *args,
            matches,
            options,
            from_file: values.keys().cloned().collect(),
        }),
        _ => Err(Failure::text(
            Exit::Internal,
            "this is no server's command line",
        )),
    }
}

/// Returns the server options that a file can set.
fn settings(command: &Command) -> Vec<Arg> {
    let serve = command.find_subcommand("serve");
    let options = serve.into_iter().flat_map(Command::get_arguments);
    options
        .filter(|option| {
            option
                .get_long()
                .is_some_and(|name| !NOT_SETTINGS.contains(&name))
        })
        .cloned()
        .collect()
}

/// The defaults are leaked: a command line lives as long as its process, and a file has few of them.
fn with_defaults(serve: Command, values: &Values) -> Command {
    let ids: Vec<_> = serve
        .get_arguments()
        .filter_map(|option| {
            let values = values.get(option.get_long()?)?;
            let values: Vec<&'static str> =
                values.iter().map(|value| &*value.clone().leak()).collect();
            Some((option.get_id().clone(), values))
        })
        .collect();
    ids.into_iter().fold(serve, |serve, (id, values)| {
        serve.mut_arg(id, |option| option.default_values(values))
    })
}

fn read(path: &Path) -> Result<Values, Failure> {
    let failed = |cause: String| {
        Failure::text(
            Exit::BadInput,
            format!("cannot read {}: {cause}", path.display()),
        )
    };
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if size.len() > FILE_BYTES {
        return Err(failed(format!("it is larger than {FILE_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    parse(&text, &settings(&Cli::command())).map_err(|wrong| wrong.shown(path, &text))
}

/// A fault in a file, and its place.
#[derive(Debug)]
struct Wrong {
    at: Range<usize>,
    words: String,
    hint: Option<String>,
}

impl Wrong {
    fn new(at: Range<usize>, words: impl Into<String>) -> Self {
        Self {
            at,
            words: words.into(),
            hint: None,
        }
    }

    /// Formats the fault with its line, counted from 1.
    fn shown(self, path: &Path, text: &str) -> Failure {
        let before = text.get(..self.at.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let report = format!("{}:{line}: {}", path.display(), self.words);
        let failure = Failure::text(Exit::BadInput, report);
        match self.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

fn parse(text: &str, options: &[Arg]) -> Result<Values, Wrong> {
    let table: BTreeMap<Spanned<String>, Spanned<Value>> =
        toml::from_str(text).map_err(|error| {
            let words = error.message().to_owned();
            Wrong::new(error.span().unwrap_or_default(), words)
        })?;
    let mut values = Values::new();
    for (key, value) in &table {
        let name = key.get_ref();
        let known = |option: &&Arg| option.get_long() == Some(name);
        let option = options.iter().find(known);
        let option = option.ok_or_else(|| unknown(key, options))?;
        let given = texts(option, value.get_ref()).ok_or_else(|| {
            Wrong::new(value.span(), format!("`{name}` can't be a {}", kind(value)))
        })?;
        check(option, &given).map_err(|words| Wrong::new(value.span(), words))?;
        values.insert(name.clone(), given);
    }
    Ok(values)
}

fn unknown(key: &Spanned<String>, options: &[Arg]) -> Wrong {
    let name = key.get_ref();
    let mut wrong = Wrong::new(key.span(), format!("there is no setting `{name}`"));
    if NOT_SETTINGS.contains(&name.as_str()) {
        wrong.hint = Some(format!("`--{name}` is for the command line alone"));
        return wrong;
    }
    // `tls_cert` is taken for `tls-cert`.
    let names: Vec<&str> = options.iter().filter_map(Arg::get_long).collect();
    let nearest = lab_study::nearest(&name.replace('_', "-"), &names);
    wrong.hint = nearest.map(|known| format!("did you mean `{known}`?"));
    wrong
}

/// Returns a value as typed on the command line. Lists are for options with several values.
fn texts(option: &Arg, value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(truth.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    };
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    match value {
        Value::Array(values) if !is_flag => {
            let values = values.iter().map(one).collect::<Option<Vec<_>>>()?;
            match option.get_action() {
                ArgAction::Append => Some(values),
                _ => Some(vec![values.join(",")]),
            }
        }
        Value::Boolean(_) => one(value).filter(|_| is_flag).map(|text| vec![text]),
        _ if is_flag => None,
        _ => one(value).map(|text| vec![text]),
    }
}

fn kind(value: &Spanned<Value>) -> &'static str {
    match value.get_ref() {
        Value::String(_) => "text",
        Value::Integer(_) | Value::Float(_) => "number",
        Value::Boolean(_) => "truth value",
        Value::Datetime(_) => "date",
        Value::Array(_) => "list",
        Value::Table(_) => "table",
    }
}

/// Validates the values by parsing them as the option's.
fn check(option: &Arg, values: &[String]) -> Result<(), String> {
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return Ok(());
    }
    let name = option.get_long().unwrap_or_default();
    let typed = values.iter().map(|value| format!("--{name}={value}"));
    // With all options, since they name each other; the others get no values.
    let command = ServeArgs::augment_args(Command::new("file").no_binary_name(true));
    let command = command.mut_args(|one| one.env(None).required(false));
    match command.try_get_matches_from(typed) {
        Ok(_) => Ok(()),
        Err(error) => {
            let words = error.to_string();
            let words = words.lines().next().unwrap_or_default();
            Err(words.trim_start_matches("error: ").to_owned())
        }
    }
}

impl Effective {
    /// Prints all settings as a file with the same effect. Secrets are never printed: for a variable with a secret, the
    /// output only states that it is set.
    pub(crate) fn printed(&self, secret: Option<&str>) -> String {
        let mut out = String::from(
            "# The settings of `plimsoll serve --config FILE`, by the names of its options.\n\
             # What is commented out isn't set; the value is an example or a kind.\n",
        );
        if let Some(secret) = secret {
            let _ = writeln!(
                out,
                "#\n# The admin token is in the environment: {secret}=********"
            );
        }
        for option in self.options.iter().filter(|option| !option.is_hide_set()) {
            self.print(option, &mut out);
        }
        out
    }

    fn print(&self, option: &Arg, out: &mut String) {
        let name = option.get_long().unwrap_or_default();
        out.push('\n');
        let help = option.get_long_help().or(option.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        for line in textwrap::wrap(&help, 98) {
            let _ = writeln!(out, "# {line}");
        }
        let kinds = option.get_possible_values();
        if !kinds.is_empty() && !matches!(option.get_action(), ArgAction::SetTrue) {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.get_name()).collect();
            let _ = writeln!(out, "# One of: {}", kinds.join(", "));
        }
        let id = option.get_id().as_str();
        let values: Vec<String> = match self.matches.try_get_raw(id) {
            Ok(Some(values)) => values
                .map(|value| shown(name, &value.to_string_lossy()))
                .collect(),
            _ => Vec::new(),
        };
        let origin = match self.matches.value_source(id) {
            Some(ValueSource::CommandLine) => "  # from the command line",
            Some(ValueSource::EnvVariable) => "  # from the environment",
            Some(_) if self.from_file.iter().any(|known| known == name) => "",
            _ => "  # the default",
        };
        let _ = match (values.as_slice(), option.get_action()) {
            ([], ArgAction::SetTrue) => writeln!(out, "{name} = {}", self.matches.get_flag(id)),
            ([], _) => {
                let kind = option.get_value_names().and_then(|names| names.first());
                writeln!(
                    out,
                    "# {name} = \"{}\"",
                    kind.map_or("", |kind| kind.as_str())
                )
            }
            ([one], action) if !matches!(action, ArgAction::Append) => {
                writeln!(out, "{name} = {}{origin}", literal(one))
            }
            (several, _) => {
                let several: Vec<_> = several.iter().map(|value| literal(value)).collect();
                writeln!(out, "{name} = [{}]{origin}", several.join(", "))
            }
        };
    }
}

/// Returns a value without its secret.
fn shown(name: &str, value: &str) -> String {
    match name {
        "store" => groupware_server::without_password(value),
        _ => value.to_owned(),
    }
}

/// Formats a value as TOML. JSON's strings are TOML's too.
fn literal(value: &str) -> String {
    let is_number = value
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == value);
    match is_number || matches!(value, "true" | "false") {
        true => value.to_owned(),
        false => serde_json::Value::from(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Values {
        parse(text, &settings(&Cli::command())).unwrap()
    }

    fn wrong(text: &str) -> String {
        let wrong = parse(text, &settings(&Cli::command())).unwrap_err();
        wrong.shown(Path::new("plimsoll.toml"), text).to_string()
    }

    fn args(text: &str, typed: &[&str]) -> Effective {
        let typed = ["plimsoll", "serve"]
            .iter()
            .chain(typed)
            .map(OsString::from);
        let effective = merged(&values(text), typed);
        effective.unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn options_count_before_the_file_and_that_before_defaults() {
        let text =
            "listen = \"127.0.0.1:1\"\nquota = 5\nlog = \"json\"\nexpose-without-tls = true\n";
        let file = args(text, &[]).args;
        assert_eq!((file.listen.port(), file.quota), (1, 5));
        assert!(file.expose_without_tls && file.log.is_some());
        assert_eq!(args("", &[]).args.listen.port(), 8340);
        let typed = args(text, &["--listen", "127.0.0.1:2"]).args;
        assert_eq!((typed.listen.port(), typed.quota), (2, 5));
    }

    #[test]
    fn the_password_of_a_database_is_not_printed() {
        let typed = args(
            "",
            &["--store", "postgres://me:secret@db/mail?sslmode=disable"],
        );
        let printed = typed.printed(None);
        assert!(!printed.contains("secret"), "{printed}");
        let line = "store = \"postgres://me@db/mail?sslmode=disable\"  # from the command line";
        assert!(printed.contains(line), "{printed}");
    }

    #[test]
    fn several_values_are_a_list() {
        let hosts = |text| args(text, &[]).args.host;
        assert_eq!(
            hosts("host = [\"a.example\", \"b.example\"]"),
            ["a.example", "b.example"]
        );
        assert_eq!(hosts("host = \"a.example\""), ["a.example"]);
        assert_eq!(hosts(""), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_has_its_line_and_the_nearest_name() {
        for (text, expected) in [
            (
                "\n\ntls_cert = \"x\"\n",
                "error: plimsoll.toml:3: there is no setting `tls_cert`\n\
                 hint: did you mean `tls-cert`?",
            ),
            (
                "lissten = 1",
                "error: plimsoll.toml:1: there is no setting `lissten`\nhint: did you mean `listen`?",
            ),
            (
                "xyzzy = 1",
                "error: plimsoll.toml:1: there is no setting `xyzzy`",
            ),
            (
                "# a comment\ndemo = true",
                "error: plimsoll.toml:2: there is no setting `demo`\n\
                 hint: `--demo` is for the command line alone",
            ),
            (
                "\nlisten = \"nowhere\"",
                "error: plimsoll.toml:2: invalid value 'nowhere' for '--listen <LISTEN>': \
                 invalid socket address syntax",
            ),
            (
                "expose-without-tls = \"yes\"",
                "error: plimsoll.toml:1: `expose-without-tls` can't be a text",
            ),
            (
                "listen = true",
                "error: plimsoll.toml:1: `listen` can't be a truth value",
            ),
            (
                "[listen]\na = 1",
                "error: plimsoll.toml:1: `listen` can't be a table",
            ),
        ] {
            assert_eq!(wrong(text), expected);
        }
        assert!(wrong("a = 1\nquota = = 3").starts_with("error: plimsoll.toml:2: "));
    }

    #[test]
    fn what_is_printed_says_the_same_when_it_is_read() {
        let text = "listen = \"127.0.0.1:1\"\nhost = [\"a.example\"]\nslow-request = \"2s\"\n\
                    domain = \"ex\\\"ample\"\nexpose-without-tls = true\nlog = \"json\"\n";
        let first = args(text, &["--quota", "7"]);
        let printed = first.printed(Some("PLIMSOLL_ADMIN_TOKEN"));
        assert!(
            printed.contains("quota = 7  # from the command line"),
            "{printed}"
        );
        assert!(
            printed.contains("PLIMSOLL_ADMIN_TOKEN=********"),
            "{printed}"
        );
        let second = args(&printed, &[]);
        assert_eq!(format!("{:?}", first.args), format!("{:?}", second.args));
    }

    #[test]
    fn settings_are_printed_with_what_they_are_for() {
        let printed = args("listen = \"[::1]:80\"", &[]).printed(None);
        for part in [
            "# Address to listen on; port 0 takes a free one\nlisten = \"[::1]:80\"\n",
            "# Certificate chain (PEM) for TLS\n# tls-cert = \"FILE\"\n",
            "# One of: sqlite, memory\nengine = \"sqlite\"  # the default\n",
        ] {
            assert!(printed.contains(part), "{part} in {printed}");
        }
        for name in NOT_SETTINGS {
            assert!(!printed.contains(&format!("\n{name} =")), "{name}");
        }
    }
}
