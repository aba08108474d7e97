//! The credentials of workload files.

use lab_study::load_workload;
use lab_workload::auth::Per;
use lab_workload::{Credentials, Message, Request, TOKEN_STEP, Template, Workload};

use crate::faults::{Fault, One, STUDY, WORKLOAD, load, snapshot};

const OAUTH2: &str =
    "auth: { oauth2: { token: POST /oauth/token, client_id: c, client_secret: s } }\n";
const DIGEST: &str = "auth: { digest: { username: u, password: p } }\n";

fn workload(text: &str) -> Workload {
    let read = load_workload("w.yaml", &One(text.to_owned()));
    read.unwrap_or_else(|error| panic!("{error}: {:?}", error.problems()))
}

/// The credentials of each request: a bearer token, a digest, or none.
fn shown<T>(workload: &Workload<T>) -> String {
    let of = |request: &Request<T>| match request.credentials.as_deref() {
        Some(Credentials::Bearer(_)) => 'b',
        Some(Credentials::Digest(_)) => 'd',
        None => '-',
    };
    workload.requests().map(of).collect()
}

const STEPS: &str = r#"workload: w
setup:
  - { step: Fill, request: POST /fill }
session:
  steps:
    - { step: a, request: GET /a }
    - { step: b, request: GET /b, auth: none }
    - step: c
      auth: none
      requests: [GET /c, GET /d]
      parallel: [GET /e]
    - { step: f, request: GET /f, headers: { authorization: mine } }
    - { step: g, request: GET /g, basic_auth: { username: u, password: p } }
    - step: h
      request: GET /h
      sign: { hmac: { key: k, over: "{{ path }}", headers: { Authorization: "{{ signature }}" } } }
    - step: i
      request: GET /i
      sign: { hmac: { key: k, over: "{{ path }}", headers: { X-Signature: "{{ signature }}" } } }
    - { step: j, parallel: [GET /j, { request: GET /k, auth: none }] }
"#;

#[test]
fn all_requests_show_credentials_but_those_that_say_otherwise() {
    // Requests of the setup, then of the steps a, b, c (three), f, g, h, i, and j (two).
    let digest = shown(&workload(&format!("{STEPS}{DIGEST}")));
    assert_eq!(digest, "dd-------dd-");
    // Token requests send only the credentials of the client.
    let tokens = shown(&workload(&format!("{STEPS}{OAUTH2}")));
    assert_eq!(tokens, "-bb-------bb---");
    assert!(!shown(&workload(STEPS)).contains(['b', 'd']));
}

#[test]
fn tokens_are_the_first_step_of_the_setup_and_a_name_behind_the_session() {
    let workload = workload(&format!("{STEPS}{OAUTH2}"));
    assert_eq!(workload.setup[0].name, TOKEN_STEP);
    assert_eq!(workload.setup[0].requests.len(), 1);
    let last = workload.session.steps.last().unwrap();
    assert_eq!(
        (last.name.as_str(), last.requests.len(), last.is_name()),
        (TOKEN_STEP, 0, true)
    );
    let tokens = workload.tokens.as_ref().unwrap();
    assert_eq!(
        (tokens.per, tokens.renew.as_secs(), tokens.refreshes),
        (Per::User, 30, false)
    );
    // The message to generators contains the tokens.
    let message = serde_json::to_string(&Message::new(&workload).unwrap()).unwrap();
    let message: Message = serde_json::from_str(&message).unwrap();
    let travelled: Workload<Template> = message.workload().unwrap();
    assert_eq!(shown(&travelled), shown(&workload));
    assert!(travelled.tokens.is_some());
}

#[test]
fn faults_of_credentials() {
    const HEAD: &str = "workload: pages\n";
    let top = |auth: &str| &*format!("{HEAD}auth: {auth}\n").leak();
    let faults: Vec<Fault> = vec![
        ("no kind", HEAD, top("{ oauth: { token: POST /t } }")),
        ("NTLM", HEAD, top("{ ntlm: { username: u } }")),
        ("Kerberos", HEAD, top("{ negotiate: {} }")),
        ("a word", HEAD, top("none")),
        (
            "no secret",
            HEAD,
            top("{ oauth2: { token: POST /t, client_id: c } }"),
        ),
        (
            "no password",
            HEAD,
            top("{ oauth2: { token: POST /t, grant: password, username: u } }"),
        ),
        (
            "a key that the grant has no use for",
            HEAD,
            top("{ oauth2: { token: POST /t, client_id: c, client_secret: s, username: u } }"),
        ),
        (
            "a field that has a key of its own",
            HEAD,
            top(
                "{ oauth2: { token: POST /t, client_id: c, client_secret: s, form: { scope: read } } }",
            ),
        ),
        (
            "another method",
            HEAD,
            top("{ oauth2: { token: GET /t, client_id: c, client_secret: s } }"),
        ),
        (
            "an unknown key",
            HEAD,
            top("{ oauth2: { token: POST /t, client_id: c, client_secret: s, renews: 3s } }"),
        ),
        (
            "no time",
            HEAD,
            top("{ oauth2: { token: POST /t, client_id: c, client_secret: s, renew: soon } }"),
        ),
        (
            "a digest without a password",
            HEAD,
            top("{ digest: { username: u } }"),
        ),
        (
            "another protocol",
            HEAD,
            "workload: pages\nprotocol: redis\nauth: { digest: { username: u, password: p } }\n",
        ),
        (
            "a protocol with metadata",
            HEAD,
            "workload: pages\nprotocol: { name: websocket, path: / }\nauth: { digest: { username: u, password: p } }\n",
        ),
        (
            "a variable of the same name",
            HEAD,
            "workload: pages\nauth: { oauth2: { token: POST /t, client_id: c, client_secret: s } }\nsetup: [{ step: a, \
             request: GET /, capture: { auth_token: $.t } }]\n",
        ),
        (
            "a step of the same name",
            "step: Read the list",
            "step: \"auth: Token\"",
        ),
        (
            "a step of the setup of the same name",
            HEAD,
            "workload: pages\nauth: { oauth2: { token: POST /t, client_id: c, client_secret: s } }\nsetup: [{ step: \
             \"auth: Token\", request: GET / }]\n",
        ),
        (
            "credentials of a request",
            "request: GET /list",
            "request: GET /list\n      auth: { digest: { username: u, password: p } }",
        ),
        (
            "another word of a request",
            "request: GET /list",
            "request: GET /list\n      auth: digest",
        ),
    ];
    let with_tokens = format!("{WORKLOAD}{OAUTH2}");
    let loaded = |text: &str| load(STUDY.as_bytes(), text.as_bytes());
    let (own, given): (Vec<Fault>, Vec<Fault>) =
        faults.into_iter().partition(|(_, from, _)| *from == HEAD);
    insta::assert_snapshot!(
        snapshot(WORKLOAD, &own, loaded) + &snapshot(&with_tokens, &given, loaded)
    );
}

#[test]
fn a_step_may_have_the_name_where_there_are_no_tokens() {
    for auth in ["", DIGEST] {
        let text = STEPS.replace("step: a,", "step: \"auth: Token\",");
        assert_eq!(
            workload(&format!("{text}{auth}")).session.steps[0].name,
            TOKEN_STEP
        );
    }
}

#[test]
fn literal_secrets_are_kept_nowhere() {
    let auth = "auth:\n  oauth2:\n    token: POST /t\n    client_id: the-client\n    client_secret: s3cret-of-it\n    \
                grant: password\n    username: ada\n    password: pw\n    form: { api_key: k-12 }\n";
    let loaded = load(STUDY.as_bytes(), format!("{WORKLOAD}{auth}").as_bytes()).unwrap();
    let lab_study::LoadedAny::Study(loaded) = loaded else {
        panic!("a study");
    };
    let kept = loaded
        .files
        .iter()
        .find(|(name, _)| name == "workload.yaml");
    let kept = String::from_utf8(kept.unwrap().1.clone()).unwrap();
    let masked = auth
        .replace("s3cret-of-it", "'***'")
        .replace("password: pw", "password: '***'")
        .replace("k-12", "'***'");
    assert_eq!(kept, format!("{WORKLOAD}{masked}"));
}
