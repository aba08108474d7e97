//! Requirements of workloads on the environment: listed for the user, and reported with their place if missing.

use std::io;
use std::sync::Arc;

use lab_study::{Environment, Files, Workload, load_workload};
use lab_workload::{DEFAULT_DATES_FROM, MASK, Message, Request, User, UserScope};

const WORKLOAD: &str = r#"workload: asks
user: { name: "{{ env('NAME') }}{{ index }}", password: "{{ secret('API_PASSWORD') }}" }
session:
  steps:
    - step: Sign in
      request: POST /login
      form: { user: "{{ name }}", password: "{{ password }}" }
    - step: With a token
      request: GET /{{ env(STAGE) }}
      headers: { Authorization: "Bearer {{ secret('TOKEN') | upper }}" }
    - step: In a loop
      request: POST /loop
      text: "{% for i in range(2) %}{{ secret('TOKEN') }};{% endfor %}"
"#;

struct Variables(&'static [(&'static str, &'static str)]);

impl Files for Variables {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(WORKLOAD.as_bytes().to_vec())
    }

    fn environment(&self, name: &str) -> Environment {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map_or(Environment::Unset, |(_, value)| {
            Environment::Set((*value).to_owned())
        })
    }
}

struct NoVariables;

impl Files for NoVariables {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(WORKLOAD.as_bytes().to_vec())
    }
}

const ALL: &[(&str, &str)] = &[
    ("NAME", "ada"),
    ("API_PASSWORD", "correct horse"),
    ("STAGE", "test"),
    ("TOKEN", "t0ken"),
];

fn user() -> User {
    User {
        index: 3,
        users: 10,
        first: 0,
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
    }
}

/// The targets, headers, and bodies of a user's session, or why one can't be made.
fn rendered(workload: &Workload) -> Result<Vec<String>, String> {
    let scope = workload.scope(user(), &[]);
    let mut scope = scope.map_err(|error| error.to_string())?;
    let steps = workload.session.steps.iter();
    let text = |request: &Request, scope: &mut UserScope| {
        let mut out = String::new();
        request.target.render(scope, &mut out)?;
        for (_, value) in &request.headers {
            out.push(' ');
            value.render(scope, &mut out)?;
        }
        match &request.body {
            lab_workload::Body::Text(text) => {
                out.push(' ');
                text.render(scope, &mut out)?;
            }
            lab_workload::Body::Form(fields) => {
                for (_, value) in fields {
                    out.push(' ');
                    value.render(scope, &mut out)?;
                }
            }
            _ => {}
        }
        Ok::<_, lab_workload::RenderError>(out)
    };
    steps
        .flat_map(|step| &step.requests)
        .map(|request| text(request, &mut scope).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn values_of_the_environment_stand_where_templates_ask_for_them() {
    let workload = load_workload("w.yaml", &Variables(ALL)).expect("a workload");
    let expected = [
        "/login ada3 correct+horse",
        "/test Bearer T0KEN",
        "/loop t0ken;t0ken;",
    ];
    assert_eq!(
        rendered(&workload).as_deref(),
        Ok(&expected.map(str::to_owned)[..])
    );
    // Elsewhere, too: the values travel with the workload.
    let message = Message::new(&workload).expect("a message");
    let there = message.workload().expect("a workload");
    assert_eq!(
        rendered(&there).as_deref(),
        Ok(&expected.map(str::to_owned)[..])
    );
    // And nowhere else.
    let shown = format!("{workload:?}");
    assert!(
        !shown.contains("correct horse") && !shown.contains("t0ken"),
        "{shown}"
    );
    assert_eq!(
        workload.inputs.mask("password=correct+horse, t0ken"),
        format!("password={MASK}, {MASK}")
    );
    assert_eq!(workload.inputs.mask("at test"), "at test");
}

#[test]
fn what_is_not_set_is_missed_before_the_run() {
    let error = load_workload("w.yaml", &Variables(&ALL[..2])).expect_err("two are missing");
    let said: Vec<String> = error
        .problems()
        .iter()
        .map(|p| {
            format!(
                "{:?} {} / {}",
                p.position(),
                p.message,
                p.help.as_deref().unwrap_or("")
            )
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    Some((9, 28)) the environment variable `STAGE` is not set / set it for this command: `STAGE=… plimsoll run …`
    Some((10, 52)) the environment variable `TOKEN` is not set / set it for this command: `TOKEN=… plimsoll run …`
    ");
}

#[test]
fn who_only_judges_a_file_needs_no_environment() {
    let workload = load_workload("w.yaml", &NoVariables).expect("a workload");
    assert_eq!(
        rendered(&workload),
        Err(
            "`env('NAME')` can't be rendered: the environment variable `NAME` is not set"
                .to_owned()
        )
    );
    // Other parameters and values give the same result: the requirements are in the templates.
    let asked: Vec<String> = workload
        .inputs
        .names()
        .map(|asked| asked.name.clone())
        .collect();
    assert_eq!(asked, ["API_PASSWORD", "NAME", "STAGE", "TOKEN"]);
    assert!(Arc::strong_count(&workload.inputs) >= 1);
}
