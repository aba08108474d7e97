//! The study for a few flags, and the workload of one request.

use std::fmt::Write as _;
use std::time::Duration;

use lab_units::yaml::{comment, literal, short_name, text};

/// A study of one attached server.
#[derive(Debug, Clone, PartialEq)]
pub struct Quick {
    /// Its name; made a short name.
    pub name: String,
    /// One line for reports.
    pub title: String,
    /// The file of its workload, relative to the study's folder.
    pub workload: String,
    /// The server, without a path.
    pub url: String,
    /// Its process, if it runs on this machine.
    pub pid: Option<u32>,
    /// Its connection settings.
    pub reach: ConnectOptions,
    /// What starts sessions.
    pub load: QuickLoad,
    /// Length of the ramp.
    pub ramp: Duration,
    /// Length of the hold.
    pub hold: Duration,
    /// Timeout of a response; `None` is the study's default.
    pub timeout: Option<Duration>,
    /// True if a trial that was disturbed from outside is repeated.
    pub repeats: bool,
}

/// Connection settings of a server; all optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectOptions {
    /// A PEM file with its authority.
    pub ca: Option<String>,
    /// True if any certificate is accepted.
    pub insecure: bool,
    /// The version of HTTP: `1`, `2`, or `auto`.
    pub http: Option<String>,
}

/// What starts sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QuickLoad {
    /// So many users, each of which repeats its session.
    Users(u32),
    /// Sessions that arrive evenly at a rate, over so many connections at most.
    Rate {
        /// Sessions per second.
        per_s: f64,
        /// Most concurrent sessions; `None` is the study's default.
        connections: Option<u32>,
    },
}

/// A request that all users repeat.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OneRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query, from `/`.
    pub target: String,
    /// In this order.
    pub headers: Vec<(String, String)>,
    /// Headers whose values are secret: the environment variables for them.
    pub secret_headers: Vec<(String, String)>,
    /// The longest body of a response, in bytes; `None` is the default.
    pub max_body: Option<u64>,
    /// Cookies by name: the environment variables for their values.
    pub secret_cookies: Vec<(String, String)>,
    /// The body, if it has one.
    pub body: Option<String>,
}

impl OneRequest {
    /// Adds these headers. Values of cookies and of secret headers stay out of the file: they are returned with the
    /// names of their environment variables.
    ///
    /// # Errors
    /// In words, when a `Cookie` is invalid.
    pub fn with_headers(
        mut self,
        headers: Vec<(String, String)>,
        is_secret: impl Fn(&str) -> bool,
    ) -> Result<(Self, Vec<(String, String)>), String> {
        let mut secrets = Vec::new();
        let mut keep = |value: String| {
            let variable = format!("PLIMSOLL_BENCH_SECRET_{}", secrets.len() + 1);
            secrets.push((variable.clone(), value));
            variable
        };
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("cookie") {
                for (name, value) in cookies(&value)? {
                    self.secret_cookies.retain(|(known, _)| *known != name);
                    self.secret_cookies.push((name, keep(value)));
                }
            } else if is_secret(&name) {
                self.secret_headers.push((name, keep(value)));
            } else {
                self.headers.push((name, value));
            }
        }
        Ok((self, secrets))
    }
}

/// The cookies of a `Cookie` header.
fn cookies(header: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = header
        .split(';')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let read = |pair: &str| match pair.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!(
            "`{}` is no cookie: write -H 'Cookie: name=value; other=value'",
            pair.escape_debug()
        )),
    };
    pairs.map(read).collect()
}

/// The study as a file.
#[must_use]
pub fn study(quick: &Quick) -> String {
    let mut out = comment(0, "Made by plimsoll from the flags of its command line.");
    let _ = writeln!(out, "study: {}", short_name(&quick.name, "quick"));
    let _ = writeln!(out, "title: {}", text(&quick.title));
    let _ = writeln!(out, "workload: {}", text(&quick.workload));
    out.push_str(&system(&quick.url, quick.pid, &quick.reach));
    let load = match quick.load {
        QuickLoad::Users(users) => format!("users: {users}"),
        QuickLoad::Rate { per_s, connections } => {
            let connections = connections.map(|n| format!(", connections: {n}"));
            let connections = connections.unwrap_or_default();
            format!("arrival: {{ rate: {per_s}/s, spacing: constant{connections} }}")
        }
    };
    let _ = write!(
        out,
        "load: {{ {load}, ramp: {}, hold: {}",
        length(quick.ramp),
        length(quick.hold)
    );
    if let Some(timeout) = quick.timeout {
        let _ = write!(out, ", timeout: {}", length(timeout));
    }
    out.push_str(" }\n");
    if !quick.repeats {
        out.push_str("repeats: 0\n");
    }
    out
}

/// The attached server of a study.
#[must_use]
pub fn system(url: &str, pid: Option<u32>, of: &ConnectOptions) -> String {
    let pid = pid.map(|pid| format!(", pid: {pid}"));
    format!(
        "system: {{ attach: {{ url: {}{} }}{} }}\n",
        text(url),
        pid.unwrap_or_default(),
        reach(of)
    )
}

/// Further keys of the study's system.
fn reach(reach: &ConnectOptions) -> String {
    let mut tls = Vec::new();
    if let Some(ca) = &reach.ca {
        tls.push(format!("ca: {}", text(&literal(ca))));
    }
    if reach.insecure {
        tls.push("insecure: true".to_owned());
    }
    let mut out = String::new();
    if !tls.is_empty() {
        let _ = write!(out, ", tls: {{ {} }}", tls.join(", "));
    }
    if let Some(http) = &reach.http {
        let _ = write!(out, ", http: {}", text(http));
    }
    out
}

/// Replaces keys with flags in the advice of an error, if there is no study file.
#[must_use]
pub fn by_flags(said: &str) -> String {
    [
        (
            "say `tls: { server_name: … }`",
            "use the certificate's name in the URL",
        ),
        ("`tls: { ca: FILE }`", "`--ca FILE`"),
        ("`tls: { insecure: true }`", "`--insecure`"),
        ("`insecure: true`", "`--insecure`"),
        ("the workload's `max_body`", "`--max-body`"),
        ("`http: auto`, or `http: 1`", "`--http auto`, or `--http 1`"),
        ("write http://, or `scheme: http`", "write http://"),
    ]
    .iter()
    .fold(said.to_owned(), |said, (key, flag)| said.replace(key, flag))
}

/// The workload of one request as a file.
#[must_use]
pub fn workload(name: &str, request: &OneRequest) -> String {
    let mut out = comment(0, "Made by plimsoll from the flags of its command line.");
    let _ = writeln!(out, "workload: {}", short_name(name, "quick"));
    if let Some(bytes) = request.max_body {
        let _ = writeln!(out, "max_body: {bytes} B");
    }
    if !request.secret_cookies.is_empty() {
        out.push_str("cookies:\n");
    }
    for (name, variable) in &request.secret_cookies {
        let value = secret_in(variable);
        let _ = writeln!(out, "  {}: {}", text(name), text(&value));
    }
    out.push_str("session:\n  steps:\n    - step: Request\n");
    let line = format!("{} {}", request.method, literal(&request.target));
    let _ = writeln!(out, "      request: {}", text(&line));
    if !request.headers.is_empty() || !request.secret_headers.is_empty() {
        out.push_str("      headers:\n");
        for (name, value) in &request.headers {
            let _ = writeln!(out, "        {}: {}", text(name), text(&literal(value)));
        }
        for (name, variable) in &request.secret_headers {
            let value = secret_in(variable);
            let _ = writeln!(out, "        {}: {}", text(name), text(&value));
        }
    }
    if let Some(body) = &request.body {
        let _ = writeln!(out, "      text: {}", text(&literal(body)));
    }
    out
}

fn secret_in(variable: &str) -> String {
    format!("{{{{ secret('{variable}') }}}}")
}

/// A duration as in files.
fn length(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (seconds, 0) => format!("{seconds}s"),
        _ => format!("{}ms", time.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use lab_study::plan::{LoadKind, PlanOptions, plan};
    use lab_study::{Files, load_study, load_workload};
    use lab_workload::{Body, User};
    use proptest::prelude::*;

    use super::*;

    struct Two(String, String);

    impl Files for Two {
        fn read(&self, path: &str) -> io::Result<Vec<u8>> {
            Ok(match path.ends_with("study.yaml") {
                true => self.0.clone().into_bytes(),
                false => self.1.clone().into_bytes(),
            })
        }
    }

    fn quick(load: QuickLoad) -> Quick {
        Quick {
            name: "Shop.example:8080".to_owned(),
            title: "GET / at \"http://shop\"".to_owned(),
            workload: "my shop.workload.yaml".to_owned(),
            url: "http://shop.example:8080".to_owned(),
            pid: Some(17),
            reach: ConnectOptions::default(),
            load,
            ramp: Duration::from_millis(1500),
            hold: Duration::from_secs(10),
            timeout: Some(Duration::from_secs(5)),
            repeats: false,
        }
    }

    #[test]
    fn a_study_is_read_as_it_was_meant() {
        let rate = QuickLoad::Rate {
            per_s: 0.5,
            connections: Some(20),
        };
        for (load, users) in [(QuickLoad::Users(50), 50), (rate, 20)] {
            let one = OneRequest {
                method: "GET".to_owned(),
                target: "/".to_owned(),
                ..OneRequest::default()
            };
            let files = Two(study(&quick(load)), workload("w", &one));
            let loaded = load_study("study.yaml", &files, &[]).unwrap();
            let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
            let spec = &plan.trials[0].load;
            assert_eq!(
                (spec.users, spec.ramp_ms, spec.hold_ms),
                (users, 1500, 10_000)
            );
            assert_eq!(spec.timeout_ms, Some(5000));
            if let LoadKind::Arrival { rate_per_s, .. } = spec.kind {
                assert!((rate_per_s - 0.5).abs() < 1e-9);
            }
            assert_eq!(
                (plan.study.as_str(), plan.question.repeats),
                ("shop-example-8080", 0)
            );
        }
    }

    #[test]
    fn a_server_is_reached_as_was_said() {
        let one = OneRequest {
            method: "GET".to_owned(),
            target: "/".to_owned(),
            ..OneRequest::default()
        };
        let reach = ConnectOptions {
            ca: Some("/etc/it's {{ ours }}.pem".to_owned()),
            insecure: true,
            http: Some("2".to_owned()),
        };
        let quick = Quick {
            url: "https://shop.example".to_owned(),
            reach,
            ..quick(QuickLoad::Users(1))
        };
        let files = Two(study(&quick), workload("w", &one));
        let loaded = load_study("study.yaml", &files, &[]).unwrap();
        let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
        let reach = format!("{:?}", plan.trials[0].reach);
        for said in ["/etc/it's {{ ours }}.pem", "insecure: true", "Two"] {
            assert!(reach.contains(said), "{said} in {reach}");
        }
    }

    #[test]
    fn values_of_cookies_and_secret_headers_stay_out_of_the_file() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![
            header("Cookie", "a=1; b=x=y;"),
            header("X-Plain", "shown"),
            header("Authorization", "Basic eA=="),
            header("cookie", "a=2"),
        ];
        let is_secret = |name: &str| name == "Authorization";
        let (request, secrets) = OneRequest::default()
            .with_headers(headers, is_secret)
            .unwrap();
        assert_eq!(request.headers, [header("X-Plain", "shown")]);
        let values = |names: &[(String, String)]| -> Vec<(String, String)> {
            let value = |variable: &str| secrets.iter().find(|(name, _)| name == variable);
            let pair = |(name, variable): &(String, String)| {
                (name.clone(), value(variable).unwrap().1.clone())
            };
            names.iter().map(pair).collect()
        };
        let cookies = [header("b", "x=y"), header("a", "2")];
        assert_eq!(values(&request.secret_cookies), cookies);
        let headers = [header("Authorization", "Basic eA==")];
        assert_eq!(values(&request.secret_headers), headers);
        let refused = OneRequest::default().with_headers(vec![header("Cookie", "none")], is_secret);
        assert!(refused.unwrap_err().contains("`none` is no cookie"));
    }

    /// Messages about certificates name keys of a study, which a bench doesn't have.
    #[test]
    fn a_cure_is_a_flag_where_there_is_no_study() {
        for (said, cure) in [
            (
                "name that with `tls: { ca: FILE }`, or take any with `tls: { insecure: true }`",
                "name that with `--ca FILE`, or take any with `--insecure`",
            ),
            (
                "is for a, not for b: say `tls: { server_name: … }`, or take any",
                "is for a, not for b: use the certificate's name in the URL, or take any",
            ),
            (
                "it doesn't speak TLS there: write http://, or `scheme: http`",
                "it doesn't speak TLS there: write http://",
            ),
            (
                "not checked (`insecure: true`)",
                "not checked (`--insecure`)",
            ),
        ] {
            assert_eq!(by_flags(said), cure);
        }
    }

    proptest! {
        /// All characters of a request, including braces, are sent unchanged.
        #[test]
        fn a_request_is_sent_as_it_was_given(
            target in "/[!-~]{0,40}",
            value in "([!-~]([ -~]{0,30}[!-~])?)?",
            body in "(\\PC|[\\n\\t{}%#]){0,60}",
        ) {
            let request = OneRequest {
                method: "POST".to_owned(),
                target: target.clone(),
                headers: vec![("X-Value".to_owned(), value.clone())],
                secret_headers: vec![],
                secret_cookies: vec![],
                max_body: None,
                body: Some(body.clone()),
            };
            let files = Two(String::new(), workload("w", &request));
            let loaded = load_workload("w.workload.yaml", &files);
            let loaded = loaded.map_err(|e| TestCaseError::fail(format!("{e}\n{}", files.1)))?;
            let user = User {
                index: 0,
                users: 1,
                first: 0,
                seed: 1,
                block: 0,
                base_date: lab_workload::DEFAULT_DATES_FROM,
            };
            let mut scope = loaded.scope(user, &[]).unwrap();
            let read = &loaded.session.steps[0].requests[0];
            let mut rendered = |template: &lab_workload::Template| {
                let mut out = String::new();
                template.render(&mut scope, &mut out).unwrap();
                out
            };
            prop_assert_eq!(rendered(&read.target), target);
            prop_assert_eq!(rendered(&read.headers[0].1), value);
            let Body::Text(text) = &read.body else { panic!("a text") };
            prop_assert_eq!(rendered(text), body);
        }
    }
}
