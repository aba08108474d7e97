//! What rendering and signing a request cost: the plain pieces beside the same text given to minijinja alone, hashes beside
//! the hash itself.
//!
//! `cargo run --release -p lab-study --example render_cost`

use std::hint::black_box;
use std::time::Instant;

use lab_study::{Files, load_workload};
use lab_workload::sign::Outgoing;
use lab_workload::{Signer, Template, User, UserScope, Workload, sha256};

const ROUNDS: u32 = 200_000;

struct One(&'static str);

impl Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(self.0.as_bytes().to_vec())
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement, not a library")]
fn cost(name: &str, mut render: impl FnMut(&mut String)) {
    let mut out = String::with_capacity(4096);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        out.clear();
        render(&mut out);
        black_box(&out);
    }
    let nanos = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
    println!("{name:<36} {nanos:>8.0} ns");
}

fn main() {
    let file = "workload: w\nuser: { name: 'user{{ pad(index, 5) }}', mailbox: '/mail/{{ name }}', text: '{{ text_of_size(100) }}' }\n\
                session: { steps: [\
                { step: hmac, request: POST /a, text: b, sign: { hmac: { key: k, over: '{{ method }} {{ path }} {{ body_sha256 }}', headers: { X-Sum: '{{ signature }}' } } } },\
                { step: aws, request: POST /a, text: b, sign: { aws_sigv4: { service: s3, region: eu-west-1, access_key: AKID, secret_key: k } } }] }\n";
    let workload = load_workload("w.yaml", &One(file)).expect("the workload above is valid");
    let base_date = jiff::civil::date(2026, 1, 5);
    let user = User {
        index: 7,
        users: 3000,
        first: 0,
        seed: 1,
        block: 0,
        base_date,
    };
    let mut scope = workload
        .scope(user, &[])
        .expect("its user has no failing template");

    // A whitespace mark sends a text to minijinja as a whole; the output is the same.
    let texts = [
        ("literal", "/login", "/login{{- '' }}"),
        (
            "one variable",
            "{{ mailbox }}/api/calendar/events?count=100",
            "{{- mailbox }}/api/calendar/events?count=100",
        ),
        (
            "six calls",
            "{{ pad(neighbour(1), 5) }},{{ pad(neighbour(2), 5) }},{{ pad(neighbour(3), 5) }},\
             {{ date_in(0, 13) }},{{ uuid() }},{{ name }}",
            "{{- pad(neighbour(1), 5) }},{{ pad(neighbour(2), 5) }},{{ pad(neighbour(3), 5) }},\
             {{ date_in(0, 13) }},{{ uuid() }},{{ name }}",
        ),
    ];
    for (name, plain, full) in texts {
        for (kind, text) in [("pieces", plain), ("minijinja", full)] {
            let template = Template::parse(text, &workload.variables).expect("a valid template");
            cost(&format!("{name}, {kind}"), |out| {
                template
                    .render(&mut scope, out)
                    .expect("a template without lists");
            });
        }
    }
    hash_and_sign(&workload, &mut scope);
    let bare = minijinja::Environment::new();
    let bare = bare
        .template_from_str("{{ mailbox }}/api/calendar/events?count=100")
        .expect("valid");
    let context = std::collections::BTreeMap::from([("mailbox", "/mail/user00007")]);
    cost("one variable, minijinja alone", |out| {
        let value = minijinja::Value::from(context.clone());
        out.push_str(&bare.render(value).expect("renders"));
    });
}

/// Filters that hash, the hash itself, and signatures of requests.
fn hash_and_sign(workload: &Workload, scope: &mut UserScope) {
    for (name, text) in [
        ("SHA-256 of 100 B, filter", "{{ text | sha256 }}"),
        (
            "HMAC of 100 B, filter",
            "{{ text | hmac('key', 'sha256', 'base64') }}",
        ),
    ] {
        let template = Template::parse(text, &workload.variables).expect("a valid template");
        cost(name, |out| template.render(scope, out).expect("renders"));
    }
    let hundred = "a".repeat(100);
    cost("SHA-256 of 100 B, itself", |out| {
        out.push_str(&sha256(hundred.as_bytes()));
    });
    let head = "POST /a HTTP/1.1\r\nHost: example.org\r\nContent-Type: text/plain\r\n";
    for step in &workload.session.steps {
        let signer = Signer::new(&step.requests[0], &[], &workload.variables).expect("it signs");
        cost(&format!("signature by {}", step.name), |out| {
            let request = Outgoing::new(head, false, vec![b"b"]);
            let headers = signer.headers(request, false, scope).expect("it signs");
            out.push_str(&headers[0].1);
        });
    }
}
