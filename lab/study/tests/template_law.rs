//! The two evaluators of templates agree: a template compiled to plain pieces renders byte for byte as
//! minijinja renders it, reports the same errors, and leaves the user in the same state.

use std::sync::LazyLock;

use lab_study::load_workload;
use lab_workload::template::Escape;
use lab_workload::{RenderError, Template, User, UserScope, Workload};
use proptest::prelude::*;

const WORKLOAD: &str = "\
workload: w
user: { name: 'us\"er {{ index }} <&>' }
session:
  steps:
    - step: s
      request: GET /
      capture: { links: '$[*]', numbers: '$[*]', empty: '$[*]', id: request.path, word: request.path, unset: request.path }
";

struct One;

impl lab_study::Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(WORKLOAD.as_bytes().to_vec())
    }
}

static SHARED: LazyLock<Workload> =
    LazyLock::new(|| load_workload("w.yaml", &One).expect("the workload above is valid"));

/// A user with lists, a text that is a number, one that isn't, an empty list, and one never set.
fn scope() -> UserScope {
    let user = User {
        index: 7,
        users: 10,
        first: 0,
        seed: 1,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let mut scope = SHARED.scope(user, &[]).expect("no failing template");
    let slot = |name: &str| SHARED.slot(name).expect("it is captured");
    scope.set_list(slot("links"), &["/a/1", "/a/\"2\"", "<3>"]);
    scope.set_list(slot("numbers"), &["3", " 12 ", "-1"]);
    scope.set_list::<&str>(slot("empty"), &[]);
    scope.set_text(slot("id"), "42");
    scope.set_text(slot("word"), "ab c");
    scope
}

const ESCAPES: [Escape; 5] = [
    Escape::None,
    Escape::JsonText,
    Escape::JsonValue,
    Escape::Form,
    Escape::Xml,
];

/// Returns the state of a user after a rendering: the next draws, and the remaining list entries.
fn rest(scope: &mut UserScope) -> String {
    let all = "{{ uuid() }} {{ profile('1 B 50%, 2 B 50%') }} {% for l in links | default([]) %}{{ l }},{% endfor %} \
               {% for n in numbers | default([]) %}{{ n }},{% endfor %}";
    let template = Template::parse(all, &SHARED.variables).expect("it compiles");
    let mut out = String::new();
    template.render(scope, &mut out).expect("it renders");
    out
}

type Rendered = (Result<String, RenderError>, String);

fn render(template: &Template) -> Rendered {
    let mut scope = scope();
    let mut out = String::new();
    let result = template.render(&mut scope, &mut out).map(|()| out);
    (result, rest(&mut scope))
}

/// The error of an expression in parentheses, with the parser's message.
fn refused(expression: &str, message: &str) -> RenderError {
    let cause = message.strip_prefix(&format!("`({expression})` never works: "));
    RenderError::Failed {
        template: format!("({expression})"),
        cause: cause.expect("a constant that fails").to_owned(),
    }
}

/// Compares both evaluators, including the text of errors.
#[track_caller]
fn agree(expression: &str) {
    compare(expression, true);
}

/// Compares both evaluators; parentheses alone take an expression to minijinja. Where several parts of an
/// expression fail, each reports the first that it evaluates: `to_the_word` is for expressions with one.
#[track_caller]
fn compare(expression: &str, to_the_word: bool) {
    for escape in ESCAPES {
        let parse = |text: &str| Template::parse_escaped(text, &SHARED.variables, escape);
        let by_jinja = parse(&format!("a{{{{ ({expression}) }}}}"));
        // A constant that fails each time is refused by either.
        let is_refused = by_jinja.is_err();
        let (mut by_jinja, jinja_rest) = match by_jinja {
            Ok(template) => render(&template),
            Err(error) => (Err(refused(expression, &error.message)), String::new()),
        };
        if let Err(RenderError::Failed { template, .. }) = &mut by_jinja {
            assert_eq!(*template, format!("({expression})"));
            expression.clone_into(template);
        }
        match parse(&format!("a{{{{ {expression} }}}}")) {
            Ok(plain) => {
                let (plain, plain_rest) = render(&plain);
                if is_refused {
                    let is_failed = matches!(plain, Err(RenderError::Failed { .. }));
                    assert!(
                        is_failed,
                        "{expression}: {plain:?}, but minijinja refuses it"
                    );
                    continue;
                }
                if to_the_word || plain.is_ok() || by_jinja.is_ok() {
                    assert_eq!(plain, by_jinja, "{expression} as {escape:?}");
                }
                assert_eq!(plain_rest, jinja_rest, "after {expression}");
            }
            // Constants that can never work are refused at once.
            Err(error) => {
                assert!(
                    by_jinja.is_err(),
                    "{expression}: {error:?}, but minijinja renders {by_jinja:?}"
                );
                let expected = format!("`{expression}` never works: ");
                assert!(error.message.starts_with(&expected), "{}", error.message);
            }
        }
    }
}

#[test]
fn captured_texts_are_numbers_in_both() {
    for expression in [
        "pad(id, 5)",
        "pad(numbers, 5)",
        "pad('7', 3)",
        "pad(take(numbers), 4)",
        "date(pad(3, 2))",
        "neighbour(id)",
    ] {
        agree(expression);
    }
    let template = Template::parse("{{ pad(id, 5) | upper }}", &SHARED.variables);
    let (rendered, _) = render(&template.expect("it compiles"));
    assert_eq!(rendered.as_deref(), Ok("00042"));
}

#[test]
fn failures_are_told_alike() {
    for expression in [
        "pad(word, 5)",
        "pad(unset, 5)",
        "pad(empty, word)",
        "pad(word, unset)",
        "pad(unset, take(empty))",
        "pad(unset, pad(word, 2))",
        "pad(word, take(numbers))",
        "pad(1, 200)",
        "int_in(id, 1)",
        "date(99999999999)",
        "take(empty)",
        "pick(unset)",
        "text_of_size(-1)",
        "uuid()",
        "pad(uuid(), 2)",
    ] {
        agree(expression);
    }
}

/// An expression for a call, or on its own.
fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        (-20_i64..40).prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        (0_u32..40).prop_map(|n| format!("{n:03}")),
        Just("- 3".to_owned()),
        prop::sample::select(vec![
            "index", "users", "round", "cycle", "name", "links", "numbers", "empty", "id", "word",
            "unset",
        ])
        .prop_map(str::to_owned),
        "['][ -&(-\\[\\]-z|}~äß]{0,6}[']",
        "[\"][0-9 +-]{0,4}[\"]",
        prop::sample::select(vec!["links", "numbers", "empty", "id", "word", "unset"])
            .prop_flat_map(|name| prop::sample::select(vec![
                format!("take({name})"),
                format!("pick( {name} )"),
            ])),
        Just("profile('500 B 10%, 2 KB 90%')".to_owned()),
        prop::sample::select(vec![
            "uuid()",
            "normal(5, 2)",
            "normal(-0.5, 1.25)",
            "zipf(100, 1.1)",
            "weighted('a b 80%, \"c\" 20%')",
            "first_name()",
            "last_name()",
            "full_name()",
            "email()",
            "city()",
            "words(3)",
        ])
        .prop_map(str::to_owned),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 12, 2, |inner| {
        let one = prop::sample::select(vec!["neighbour", "date", "month_start", "month_end"]);
        let two = prop::sample::select(vec!["pad", "date_in", "int_in"]);
        prop_oneof![
            (one, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            (two, inner.clone(), inner).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
        ]
    })
}

#[test]
fn filters_fail_alike_in_both() {
    for expression in [
        "unset | sha256",
        "(unset ~ 'a') | sha256",
        "('a' ~ unset) | sha256",
        "(unset ~ take(numbers)) | sha256",
        "('a' ~ unset ~ take(numbers)) | sha256",
        "unset | hmac(take(numbers))",
        "word | hmac(unset)",
        "take(empty) | hmac(take(numbers))",
        "(unset | sha256) | hmac(take(numbers))",
        "word | unhex | hex",
        "word | unhex | hmac(take(numbers))",
        "links | unbase64 | hex",
        "empty | hex",
        "secret('NOT_THERE') | sha256",
        "('a' ~ env('NOT_THERE')) | base64",
        "pad(word, 2) ~ 'a'",
        "word | sha256('base32')",
        "word | hmac('k', 'md5')",
        "word | hmac",
        "word | sha256('raw')",
        "(word | sha256('raw')) ~ 'a'",
        "word | sha256('raw') | urlencode",
        "id | unhex | urlencode",
        "'zz' | unhex | hex",
        "text_of_size(17000000) | sha256",
    ] {
        agree(expression);
    }
}

/// A published vector for each notation (RFC 4231, 4.3), so that both can't have the same error.
#[test]
fn compiled_chains_give_the_published_values() {
    let template = "{{ ('what do ya want for ' ~ 'nothing?' ~ empty_text) | hmac(empty_text ~ 'Jefe') }} \
                    {{ 'a\\n' ~ id | hex ~ \"'\" }} {{ (id ~ -3) | base64 | urlencode }}";
    let variables: Vec<String> = ["id".to_owned(), "empty_text".to_owned()].into();
    let template = Template::parse(template, &variables).expect("it compiles");
    let mut scope = scope();
    scope.set_text(0, "42");
    scope.set_text(1, "");
    let mut rendered = String::new();
    template
        .render(&mut scope, &mut rendered)
        .expect("it renders");
    let sum = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(rendered, format!("{sum} a\n3432' NDItMw%3D%3D"));
}

/// Values through filters and joined, which compile, among some that don't.
fn chain() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        leaf(),
        expression(),
        Just("now_text('%Y', '-2h')".to_owned()),
        Just(r"'a\n\'\\b'".to_owned()),
        Just(r"'\x41'".to_owned()),
    ];
    value.prop_recursive(4, 16, 3, |inner| {
        let filter = prop::sample::select(vec![
            "md5",
            "sha1",
            "sha256",
            "sha384('base64')",
            "sha512('raw')",
            "base64",
            "base64url",
            "hex",
            "unbase64",
            "unhex",
            "urldecode",
            "urlencode",
            "upper",
            "sha256('base32')",
        ]);
        let output = prop::sample::select(vec![
            "",
            ", 'sha1'",
            ", 'sha256', 'base64'",
            ", 'sha512', 'raw'",
            ", 'sha384', 'base64url'",
        ]);
        prop_oneof![
            (inner.clone(), filter).prop_map(|(of, filter)| format!("({of}) | {filter}")),
            (inner.clone(), inner.clone(), output)
                .prop_map(|(of, key, output)| format!("({of}) | hmac({key}{output})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) ~ ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} ~ {b}")),
            inner.prop_map(|of| format!("{of} | hex")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]
    #[test]
    fn compiled_chain_renders_as_minijinja_does(expression in chain()) {
        compare(&expression, false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]
    #[test]
    fn what_is_plain_renders_as_minijinja_does(expression in expression()) {
        compare(&expression, false);
    }
}
