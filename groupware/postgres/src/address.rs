//! The address of a database and its user, `postgres://user@host:5432/database`, displayed without the password.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// The longest address, in bytes.
const MOST_BYTES: usize = 4096;
const PORT: u16 = 5432;
const SCHEMA: &str = "plimsoll";
/// The longest name that PostgreSQL doesn't truncate.
const SCHEMA_BYTES: usize = 63;
/// The directory where Debian's server listens for local programs.
const SOCKETS: &str = "/var/run/postgresql";
/// The parameters that are passed to PostgreSQL's client unchanged.
const PASSED_ON: [&str; 8] = [
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "channel_binding",
    "application_name",
];

/// The reason why a text is no address of a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

/// A database and its connection settings. Its displayed form has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Database {
    /// Boxed because it is large.
    pub(crate) config: Box<Config>,
    pub(crate) schema: String,
    /// The authorities that verify the server's certificate, if not this machine's.
    pub(crate) root_cert: Option<PathBuf>,
}

impl Database {
    /// Parses an address, `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…&schema=…`. It
    /// may name several hosts, separated by commas: the one that accepts writes is used.
    ///
    /// Connections to remote hosts use TLS with a verified certificate, unless the address has
    /// `sslmode=disable`.
    ///
    /// # Errors
    /// If the address is invalid, or requests less security than it seems to.
    pub fn parse(address: &str) -> Result<Self, AddressError> {
        let wrong = |words: &str| Err(AddressError(words.to_owned()));
        if address.len() > MOST_BYTES {
            return wrong("the address is longer than 4096 bytes");
        }
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| address.starts_with(scheme))
        {
            return wrong("the address of a database begins with postgres://");
        }
        let (place, query) = address.split_once('?').unwrap_or((address, ""));
        let said = UrlParameters::read(query)?;
        let rest = format!("{place}?{}", said.passed_on);
        let config = Config::from_str(&rest);
        let config = config.map_err(|error| AddressError(groupware_text::chain(&error)))?;
        check_counts(&config)?;
        let mut database = Self {
            config: Box::new(config),
            schema: said.schema.unwrap_or_else(|| SCHEMA.to_owned()),
            root_cert: said.root_cert,
        };
        database.set_tls(said.tls)?;
        database.set_the_rest();
        Ok(database)
    }

    fn set_tls(&mut self, asked: Option<bool>) -> Result<(), AddressError> {
        let is_far = self.hosts().iter().any(|(host, _)| is_remote(host));
        let speaks_tls = asked.unwrap_or(is_far);
        if !speaks_tls && self.root_cert.is_some() {
            let words = "sslrootcert says how TLS is checked, and sslmode that there is none";
            return Err(AddressError(words.to_owned()));
        }
        self.config.ssl_mode(match speaks_tls {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        Ok(())
    }

    fn set_the_rest(&mut self) {
        if self.config.get_hosts().is_empty() && self.config.get_hostaddrs().is_empty() {
            self.config.host_path(SOCKETS);
        }
        if self.config.get_application_name().is_none() {
            self.config.application_name("plimsoll");
        }
    }

    /// Returns one configuration for each host, with the host's settings and the common ones.
    pub(crate) fn by_host(&self) -> Vec<Config> {
        let all = &*self.config;
        let count = all.get_hosts().len().max(all.get_hostaddrs().len());
        let one = |at: usize| {
            let mut one = Config::new();
            match all.get_hosts().get(at) {
                Some(Host::Tcp(name)) => _ = one.host(name),
                Some(Host::Unix(path)) => _ = one.host_path(path),
                None => {}
            }
            if let Some(address) = all.get_hostaddrs().get(at) {
                one.hostaddr(*address);
            }
            let ports = all.get_ports();
            one.port(ports.get(at).or(ports.first()).copied().unwrap_or(PORT));
            all.get_user().map(|user| one.user(user));
            all.get_password().map(|password| one.password(password));
            all.get_dbname().map(|name| one.dbname(name));
            let name = all.get_application_name();
            name.map(|name| one.application_name(name));
            one.channel_binding(all.get_channel_binding())
                .ssl_mode(all.get_ssl_mode());
            set_limits(&mut one);
            one
        };
        (0..count).map(one).collect()
    }

    /// Returns true if the address has no password.
    pub fn wants_password(&self) -> bool {
        self.config.get_password().is_none()
    }

    /// Adds the password, which the address then needn't contain.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Adds the password for this database from the text of a password file (`~/.pgpass`), if it has one.
    #[must_use]
    pub fn with_passfile(self, text: &str) -> Self {
        let user = self.config.get_user().unwrap_or_default().to_owned();
        let database = self.name().to_owned();
        let password = self.hosts().into_iter().find_map(|(host, port)| {
            let host = if host.starts_with('/') {
                "localhost"
            } else {
                &host
            };
            password_in(text, [host, &port.to_string(), &database, &user])
        });
        match password {
            Some(password) => self.with_password(&password),
            None => self,
        }
    }

    /// Sets another schema.
    #[must_use]
    pub fn in_schema(mut self, schema: &str) -> Self {
        schema.clone_into(&mut self.schema);
        self
    }

    fn name(&self) -> &str {
        let user = self.config.get_user();
        self.config.get_dbname().or(user).unwrap_or_default()
    }

    fn hosts(&self) -> Vec<(String, u16)> {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let named: Vec<String> = match self.config.get_hosts() {
            [] => self
                .config
                .get_hostaddrs()
                .iter()
                .map(ToString::to_string)
                .collect(),
            hosts => hosts.iter().map(shown).collect(),
        };
        (0..)
            .zip(named)
            .map(|(at, host)| (host, port(at)))
            .collect()
    }
}

/// Checks the counts: hosts, their addresses, and their ports are matched by position.
fn check_counts(config: &Config) -> Result<(), AddressError> {
    let (hosts, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
    let ports = config.get_ports().len();
    let are_as_many = hosts == 0 || addresses == 0 || hosts == addresses;
    if are_as_many && (ports <= 1 || ports == hosts.max(addresses)) {
        return Ok(());
    }
    let words = "an address with several hosts has as many in hostaddr, and one port or as many";
    Err(AddressError(words.to_owned()))
}

/// Detects a silently lost server within five seconds, also while a response is pending.
fn set_limits(config: &mut Config) {
    config
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .connect_timeout(Duration::from_secs(2))
        .tcp_user_timeout(Duration::from_secs(5))
        .keepalives_idle(Duration::from_secs(2))
        .keepalives_interval(Duration::from_secs(1))
        .keepalives_retries(3);
}

/// Removes what may be a password from a text that is meant as an address.
pub fn without_password(address: &str) -> String {
    let (place, query) = address.split_once('?').unwrap_or((address, ""));
    let (scheme, rest) = place.split_once("://").unwrap_or(("", place));
    let place = match rest.rsplit_once('@') {
        Some((who, host)) => {
            let user = who.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => place.to_owned(),
    };
    let told = |pair: &&str| !pair.trim_start().to_ascii_lowercase().starts_with("pass");
    let query: Vec<_> = query.split('&').filter(told).collect();
    match query.concat().is_empty() {
        true => place,
        false => format!("{place}?{}", query.join("&")),
    }
}

fn shown(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

/// Returns true if the host is not this machine.
fn is_remote(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_here = host.starts_with('/') || host.eq_ignore_ascii_case("localhost");
    !is_here && !address.is_some_and(|address| address.is_loopback())
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        for (at, (host, port)) in (0..).zip(self.hosts()) {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}:{port}", host.replace('/', "%2F"))?;
        }
        write!(f, "/{}", self.name())?;
        match self.schema.as_str() {
            SCHEMA => Ok(()),
            schema => write!(f, "?schema={schema}"),
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}

/// The parameters after the question mark of an address.
#[derive(Default)]
struct UrlParameters {
    passed_on: String,
    tls: Option<bool>,
    root_cert: Option<PathBuf>,
    schema: Option<String>,
}

impl UrlParameters {
    fn read(query: &str) -> Result<Self, AddressError> {
        let mut said = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sslmode" => said.tls = Some(speaks_tls(value)?),
                "sslrootcert" => said.root_cert = Some(Path::new(&decoded(value)).to_owned()),
                "schema" => said.schema = Some(schema(value)?),
                _ if PASSED_ON.contains(&name) => {
                    said.passed_on += pair;
                    said.passed_on.push('&');
                }
                _ => {
                    let words = format!("the address has an option {name:?}, which is unknown");
                    return Err(AddressError(words));
                }
            }
        }
        said.passed_on.pop();
        Ok(said)
    }
}

fn speaks_tls(mode: &str) -> Result<bool, AddressError> {
    match mode {
        "disable" => Ok(false),
        "require" | "verify-ca" | "verify-full" => Ok(true),
        _ => Err(AddressError(
            "sslmode is verify-full, which speaks TLS and checks the certificate, or disable; what \
             lies between protects nobody"
                .to_owned(),
        )),
    }
}

fn schema(name: &str) -> Result<String, AddressError> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_name = name.bytes().next().is_some_and(is_letter)
        && name
            .bytes()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && name.len() <= SCHEMA_BYTES
        && !name.starts_with("pg_");
    match is_name {
        true => Ok(name.to_owned()),
        false => Err(AddressError(
            "schema is a name of a-z, 0-9, and _, at most 63 of them, that doesn't begin with a \
             digit or pg_"
                .to_owned(),
        )),
    }
}

/// Decodes `%2F` in a path to slashes; other characters stay.
fn decoded(value: &str) -> String {
    value
        .replace("%2F", "/")
        .replace("%2f", "/")
        .replace("%20", " ")
}

/// Returns the password for host, port, database, and user from the text of a password file: lines
/// of `host:port:database:user:password`, of which the first match counts. A star matches anything;
/// a backslash escapes a colon or a backslash in a field.
pub fn password_in(text: &str, of: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let (password, places) = fields.split_last()?;
            let fits = places.len() == of.len()
                && places.iter().zip(of).all(|(field, wanted)| match field {
                    Field {
                        text,
                        is_plain: true,
                    } if text == "*" => true,
                    Field { text, .. } => text == wanted,
                });
            (fits && !password.text.is_empty()).then(|| password.text.clone())
        })
}

#[derive(Default)]
struct Field {
    text: String,
    /// The field has no escaped character.
    is_plain: bool,
}

fn fields(line: &str) -> Vec<Field> {
    let new = || Field {
        text: String::new(),
        is_plain: true,
    };
    let mut fields = vec![new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        // The fifth field is the password, up to the end of the line.
        let is_last = fields.len() == 5;
        let Some(field) = fields.last_mut() else {
            break;
        };
        match letter {
            '\\' => {
                field.is_plain = false;
                field.text.extend(letters.next());
            }
            ':' if !is_last => fields.push(new()),
            letter => field.text.push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_shows_no_password() {
        let check = |address: &str, expected: &str, is_tls: bool| {
            let database = Database::parse(address).unwrap();
            assert_eq!(database.to_string(), expected);
            assert_eq!(format!("{database:?}"), format!("Database({expected})"));
            assert_eq!(
                database.config.get_ssl_mode() == SslMode::Require,
                is_tls,
                "{address}"
            );
        };
        check(
            "postgres://me:pa55word@db.example:6432/mail",
            "postgres://me@db.example:6432/mail",
            true,
        );
        check(
            "postgresql://me@127.0.0.1/mail",
            "postgres://me@127.0.0.1:5432/mail",
            false,
        );
        check(
            "postgres://me:x@a,b:1/m",
            "postgres://me@a:5432,b:1/m",
            true,
        );
        check(
            "postgres://me@%2Frun%2Fpg/m",
            "postgres://me@%2Frun%2Fpg:5432/m",
            false,
        );
        check(
            "postgres://me@/m",
            "postgres://me@%2Fvar%2Frun%2Fpostgresql:5432/m",
            false,
        );
        check(
            "postgres:///m?user=me&password=secret&host=localhost&schema=two&sslmode=verify-full",
            "postgres://me@localhost:5432/m?schema=two",
            true,
        );
        check(
            "postgres://me@10.0.0.1/m?sslmode=disable",
            "postgres://me@10.0.0.1:5432/m",
            false,
        );
    }

    #[test]
    fn what_an_address_says_is_said_to_each_of_its_hosts() {
        let all = "postgres://me:x@a,b:1/m?hostaddr=10.0.0.1,10.0.0.2&channel_binding=disable";
        let configs = Database::parse(all).unwrap().by_host();
        let mut first =
            Config::from_str("postgres://me:x@a:5432/m?hostaddr=10.0.0.1&channel_binding=disable")
                .unwrap();
        first
            .ssl_mode(SslMode::Require)
            .application_name("plimsoll");
        set_limits(&mut first);
        assert_eq!(configs[0], first);
        assert_eq!(configs[1].get_hosts(), [Host::Tcp("b".to_owned())]);
        assert_eq!(configs[1].get_ports(), [1]);
        assert_eq!(configs.len(), 2);
        let socket = Database::parse("postgres://me@/m").unwrap().by_host();
        assert_eq!(socket[0].get_hosts(), [Host::Unix(SOCKETS.into())]);
        let addresses = Database::parse("postgres:///m?user=me&hostaddr=10.0.0.1,10.0.0.2");
        assert_eq!(addresses.unwrap().by_host().len(), 2);
    }

    #[test]
    fn an_address_is_printed_without_its_password() {
        let check = |address: &str, expected| assert_eq!(without_password(address), expected);
        check(
            "postgres://me:a:b@db:1/m?schema=x",
            "postgres://me@db:1/m?schema=x",
        );
        check("postgres://me:a@b@db/m", "postgres://me@db/m");
        check(
            "postgres:///m?password=secret&user=me",
            "postgres:///m?user=me",
        );
        check("postgres:///m?Password=secret", "postgres:///m");
        check("postgres://db/m", "postgres://db/m");
    }

    #[test]
    fn what_is_no_address_is_told_without_its_password() {
        let check = |address: &str, expected: &str| {
            let error = Database::parse(address).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("pa55word"), "{error}");
        };
        check("mysql://me:pa55word@db/m", "begins with postgres://");
        check("postgres://me:pa55word@db:port/m", "port");
        check("postgres://me:pa55word@db/m?sslmode=prefer", "verify-full");
        check("postgres://me:pa55word@db/m?slmode=disable", "\"slmode\"");
        check("postgres://me:pa55word@db/m?schema=pg_temp", "schema is");
        check("postgres://me:pa55word@db/m?schema=a\"b", "schema is");
        check(
            "postgres://me:pa55word@::1/m?sslmode=disable&sslrootcert=x",
            "",
        );
        check(&format!("postgres://{}", "x".repeat(5000)), "longer");
        check("postgres://me@a/m?hostaddr=10.0.0.1,10.0.0.2", "as many");
        check("postgres://me@a,b,c/m?port=1,2", "as many");
    }

    #[test]
    fn passwords_are_found_as_postgresql_finds_them() {
        let text =
            "# mine\nother:*:*:*:no\ndb:5432:mail:me:a:b\\:c\\\\\n*:*:*:you:any\nshort:line\n";
        let find = |host, user| password_in(text, [host, "5432", "mail", user]);
        assert_eq!(find("db", "me").unwrap(), "a:b:c\\");
        assert_eq!(find("anywhere", "you").unwrap(), "any");
        assert_eq!(find("anywhere", "me"), None);
        let database = Database::parse("postgres://me@db/mail?sslmode=disable").unwrap();
        assert!(database.wants_password());
        let database = database.with_passfile(text);
        assert_eq!(database.config.get_password(), Some(&b"a:b:c\\"[..]));
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_an_error(text in "(postgres://)?\\PC{0,80}") {
            let _ = Database::parse(&text);
        }

        #[test]
        fn a_password_that_is_written_is_found(
            parts in prop::array::uniform4("[a-z:\\\\*]{1,9}"), password in "[ -~]{1,20}",
        ) {
            let quoted = |text: &str| {
                let text = text.replace('\\', "\\\\").replace(':', "\\:");
                text.replace('*', "\\*")
            };
            let line = parts.iter().chain([&password]).map(|part| quoted(part));
            let line = line.collect::<Vec<_>>().join(":");
            let of = [&*parts[0], &*parts[1], &*parts[2], &*parts[3]];
            prop_assert_eq!(password_in(&line, of), Some(password));
        }

        #[test]
        fn any_text_is_a_file_of_passwords(text in "[\\PC\n]{0,200}") {
            let _ = password_in(&text, ["a", "b", "c", "d"]);
        }
    }
}
