//! Templates in a workload: their rendered texts, and their errors.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lab_study::load_workload;
use lab_workload::template::{Escape, FILTERS, Symbols};
use lab_workload::{JsonValue, RenderError, Template, User, UserScope, Workload};

struct One(&'static str);

impl lab_study::Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(self.0.as_bytes().to_vec())
    }
}

/// Variables: `password`, `name`, `links` (a list), `page` (a text).
fn workload() -> Workload {
    let text = "workload: w\nuser: { name: 'us\"er{{ pad(index, 3) }}' }\nsession:\n  steps:\n    - \
                step: s\n      request: GET /\n      capture: { links: '$[*]', page: request.path }\n";
    load_workload("w.yaml", &One(Box::leak(text.to_owned().into_boxed_str()))).unwrap()
}

fn scope(workload: &Workload) -> UserScope {
    let user = User {
        index: 7,
        users: 10,
        first: 0,
        seed: 1,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let mut scope = workload
        .scope(user, &[("password".into(), "p&q r".into())])
        .unwrap();
    scope.set_list(workload.slot("links").unwrap(), &["/a/1", "/a/2", "/a/3"]);
    scope
}

/// Why a template fails: each time, which is found when it is read, or for this user.
#[track_caller]
fn cause(text: &str) -> Option<String> {
    let workload = workload();
    let template = match Template::parse_escaped(text, &workload.variables, Escape::None) {
        Ok(template) => template,
        Err(error) => return Some(error.message),
    };
    match template.render(&mut scope(&workload), &mut String::new()) {
        Ok(()) => None,
        Err(RenderError::Failed { cause, .. }) => Some(cause),
        Err(other) => panic!("{text}: {other:?}"),
    }
}

fn render_as(escape: Escape, text: &str) -> Result<String, RenderError> {
    let workload = workload();
    let template = Template::parse_escaped(text, &workload.variables, escape).unwrap();
    let mut out = String::new();
    template
        .render(&mut scope(&workload), &mut out)
        .map(|()| out)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(
        render_as(Escape::None, text).as_deref(),
        Ok(expected),
        "{text}"
    );
}

#[test]
fn plain_expressions() {
    check("", "");
    check("just text }} with a brace {", "just text }} with a brace {");
    check("{{ name }}", "us\"er007");
    check(
        "/mail/{{name}}/x?i={{ index }}&n={{ users }}",
        "/mail/us\"er007/x?i=7&n=10",
    );
    check("{{ pad(neighbour(6), 5) }}", "00003");
    check("{{ pad(neighbour(-8), 2) }}", "09");
    check("{{ 'a }} b' }}", "a }} b");
    check(
        "{{ date(0) }} {{ date(-5) }} {{ date(13) }}",
        "2026-01-05 2025-12-31 2026-01-18",
    );
    check(
        "{{ month_start(13) }} {{ month_end(13) }}",
        "2026-01-01 2026-02-01",
    );
    check("{{ date_in(3, 3) }} {{ int_in(4, 4) }}", "2026-01-08 4");
    check("{{ links }}", "/a/1");
    check(
        "{{ take(links) }} {{ take(links) }} {{ links }}",
        "/a/1 /a/2 /a/3",
    );
}

#[test]
fn the_rest_of_the_language() {
    check("{{ index + 1 }}", "8");
    check("{{ pad(index * 2, 4) }}", "0014");
    check("{{ name | upper }}", "US\"ER007");
    check("{{ links | length }}", "3");
    check("{{ links[1] }}", "/a/2");
    check("{{ 'x' ~ links }}", "x/a/1");
    check("{{ links | join(',') }}", "/a/1,/a/2,/a/3");
    check(
        "{% for link in links %}[{{ link }}]{% endfor %}",
        "[/a/1][/a/2][/a/3]",
    );
    check("{% if index > 5 %}high{% else %}low{% endif %}\n", "high\n");
    check(
        "{% set x = take(links) %}{{ x }} then {{ take(links) }}",
        "/a/1 then /a/2",
    );
    check("{{ page | default('none') }}", "none");
    check("{{ 'a b/c' | urlencode }}", "a%20b%2Fc");
    check("a {# no #}b", "a b");
    check(
        "pipe | nofilter {% if true %}y{% endif %}",
        "pipe | nofilter y",
    );
}

#[test]
fn both_ways_of_calling_agree() {
    let pairs = [
        ("{{ uuid() }}", "{{ uuid() ~ '' }}"),
        ("{{ pick(links) }}", "{{ pick(links) ~ '' }}"),
        ("{{ date_in(0, 13) }}", "{{ date_in(0, 13) | string }}"),
        ("{{ text_of_size(33) }}", "{{ text_of_size(33) ~ '' }}"),
        ("{{ int_in(1, 1000) }}", "{{ int_in(1, 1000) + 0 }}"),
        ("{{ neighbour(4) }}", "{{ neighbour(4) | int }}"),
    ];
    for (plain, full) in pairs {
        assert_eq!(
            render_as(Escape::None, plain),
            render_as(Escape::None, full),
            "{plain}"
        );
    }
}

#[test]
fn an_empty_list_asks_for_the_step_to_be_skipped() {
    let empty = |text: &str| match render_as(Escape::None, text) {
        Err(RenderError::EmptyList { variable }) => variable,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(empty("{{ page }}"), "page");
    assert_eq!(empty("{{ take(page) }}"), "page");
    assert_eq!(empty("{{ pick(page) }}"), "page");
    assert_eq!(empty("{{ page | upper }}"), "page");
    assert_eq!(empty("{{ take(page) | upper }}"), "page");
    assert_eq!(empty("{% if true %}{{ page }}{% endif %}"), "page");
    assert_eq!(
        empty("{{take(links)}}{{take(links)}}{{take(links)}}{{take(links)}}"),
        "links"
    );
}

#[test]
fn a_taken_text_is_gone() {
    let workload = workload();
    let mut scope = scope(&workload);
    let slot = workload.slot("page").unwrap();
    scope.set_text(slot, "/p");
    let template = Template::parse("{{ take(page) }}", &workload.variables).unwrap();
    let mut out = String::new();
    assert_eq!(template.render(&mut scope, &mut out), Ok(()));
    assert_eq!(out, "/p");
    let again = template.render(&mut scope, &mut out);
    assert_eq!(
        again,
        Err(RenderError::EmptyList {
            variable: "page".into()
        })
    );
    assert_eq!(
        scope.get("name").as_deref(),
        Some("us\"er007"),
        "the scope is back in one piece"
    );
}

#[test]
fn a_password_that_nobody_gave_is_no_empty_list() {
    let workload = workload();
    let user = User {
        index: 0,
        users: 1,
        first: 0,
        seed: 1,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let mut scope = workload.scope(user, &[]).unwrap();
    let template = Template::parse("{{ password }}", &workload.variables).unwrap();
    let result = template.render(&mut scope, &mut String::new());
    assert_eq!(
        result,
        Err(RenderError::NotGiven {
            variable: "password".into()
        })
    );
}

#[test]
fn json_values_keep_their_kind() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            render_as(Escape::JsonValue, text).as_deref(),
            Ok(expected),
            "{text}"
        );
    };
    check("plain \"text\"", r#""plain \"text\"""#);
    check("{{ name }}", r#""us\"er007""#);
    check("Hello {{ name }}\n", r#""Hello us\"er007\n""#);
    check("{{ index }}", "7");
    check("{{ neighbour(1) }}", "8");
    check("{{ index + 1 }}", "8");
    check("{{ index > 3 }}", "true");
    check("{{ none }}", "null");
    check("{{ pad(index, 1) }}", r#""7""#);
    check("{{ index ~ '' }}", r#""7""#);
    check("no {{ index }}", r#""no 7""#);
    check("{% if true %}{{ name }}{% endif %}", r#""us\"er007""#);
}

#[test]
fn form_values_are_encoded() {
    assert_eq!(
        render_as(Escape::Form, "x y{{ password }}").as_deref(),
        Ok("x+yp%26q+r")
    );
    assert_eq!(
        render_as(Escape::Form, "{{ password | upper }}").as_deref(),
        Ok("P%26Q+R")
    );
}

#[test]
fn work_and_size_are_bounded() {
    let failed = |text: &str| cause(text).unwrap_or_else(|| panic!("{text} works"));
    let slow = "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
    let causes = [
        slow,
        "{{ 'x' * (10 ** 10) }}",
        "{{ text_of_size(99999999999 + index) }}",
        "{{ int_in(index, 1) }}",
        "{{ pad(name, 3) }}",
        "{{ date(99999999 * users) }}",
    ]
    .map(failed);
    insta::assert_snapshot!(causes.join("\n"), @r#"
    it never works: engine ran out of fuel
    `'x' * (10 ** 10)` never works: invalid operation: repeated string is too large
    100000000006 bytes is not within 0 to 67108864
    7 is greater than 1
    `us"er007` is not a whole number
    999999990 days after 2026-01-05 is beyond the calendar
    "#);
}

#[test]
fn every_filter_exists() {
    for filter in FILTERS {
        let text = format!("{{{{ [1, 2] | {filter} }}}}");
        let cause = cause(&text).unwrap_or_default();
        assert!(!cause.contains("unknown filter"), "{filter}: {cause}");
    }
}

#[test]
fn rounds_and_cycles_are_counted() {
    let workload = workload();
    let template = Template::parse(
        "{{ cycle }}.{{ round }}.{{ cycle + round }}",
        &workload.variables,
    );
    let template = template.unwrap();
    let mut scope = scope(&workload);
    let mut seen = Vec::new();
    for round in [0, 1] {
        scope.next_cycle();
        scope.set_round(round);
        let mut out = String::new();
        template.render(&mut scope, &mut out).unwrap();
        seen.push(out);
    }
    assert_eq!(seen, ["0.0.0", "1.1.2"]);
}

#[test]
fn values_of_an_xml_body_are_escaped_and_its_markup_is_not() {
    let xml = |text| render_as(Escape::Xml, text).unwrap();
    assert_eq!(
        xml("<a n='{{ index }}'>{{ name }}&amp;</a>"),
        "<a n='7'>us&quot;er007&amp;</a>"
    );
    assert_eq!(
        xml("<a>{% for i in range(3) %}<b>{{ i }}{{ name }}{{ pad(i, 2) }}</b>{% endfor %}</a>"),
        "<a><b>0us&quot;er00700</b><b>1us&quot;er00701</b><b>2us&quot;er00702</b></a>"
    );
    check(
        "{{ 'a<b' | xml }} {{ name | json }}",
        "a&lt;b \"us\\\"er007\"",
    );
    check(
        "[{% for i in range(2) %}{{ ',' if i }}{{ name | json }}{% endfor %}]",
        "[\"us\\\"er007\",\"us\\\"er007\"]",
    );
}

#[test]
fn a_profile_draws_its_sizes() {
    let workload = workload();
    let template = "{{ profile('500 B 50%, 2 KB 50%') }}";
    let template = Template::parse(template, &workload.variables).unwrap();
    let mut scope = scope(&workload);
    let mut draws = Vec::new();
    for _ in 0..10 {
        let mut out = String::new();
        template.render(&mut scope, &mut out).unwrap();
        draws.push(out);
    }
    let small = draws.iter().filter(|size| *size == "500").count();
    assert!((1..=9).contains(&small), "{draws:?}");
    assert!(draws.iter().all(|size| size == "500" || size == "2000"));
    let sized = render_as(Escape::None, "{{ text_of_size(profile('2 KB 100%')) }}").unwrap();
    assert_eq!(sized.len(), 2000);
    let wrong = Template::parse("{{ profile('500 B 50%') }}", &workload.variables).unwrap_err();
    assert_eq!(wrong.message, "the shares add up to 50%, not to 100%");
    let wrong = Template::parse("{{ profile(name) }}", &workload.variables).unwrap_err();
    assert_eq!(wrong.message, "`profile()` takes a text");
}

#[test]
fn people_and_numbers_are_drawn_from_the_stream_of_choices() {
    let drawn = [
        "{{ first_name() }} {{ last_name() }}",
        "{{ full_name() }}",
        "{{ email() }}",
        "{{ city() }}",
        "{{ words(4) }}",
        "{{ normal(100, 15) }}",
        "{{ normal(100, 15) | round | int }}",
        "{{ zipf(1000, 1.1) }} {{ zipf(users, 0.8) }}",
        "{{ weighted('red 80%, dark blue 20%') }}",
    ]
    .map(|text| render_as(Escape::None, text).unwrap());
    insta::assert_snapshot!(drawn.join("\n"));
    let render = |text| render_as(Escape::JsonValue, text).unwrap();
    assert!(render("{{ normal(1, 1) }}").parse::<f64>().is_ok());
    assert!(render("{{ zipf(9, 1) }}").parse::<u8>().is_ok());
    assert!(render("{{ city() }}").starts_with('"'));
}

#[test]
fn distributions_that_are_none_are_refused_when_they_are_read() {
    let workload = workload();
    let cause = |text: &str| {
        let text = format!("{{{{ {text} }}}}");
        Template::parse(&text, &workload.variables)
            .unwrap_err()
            .message
    };
    let told = [
        "weighted('a 80%, b 30%')",
        "weighted('a')",
        "weighted('100%')",
        "weighted(name)",
        "normal(1, -2)",
        "normal(1)",
        "normal(1, 2, 3) + 1",
        "zipf(0, 1)",
        "zipf(2.5, 1)",
        "zipf(10, -1)",
        "zipf(10)",
        "words(-1)",
        "city(1)",
        "frist_name()",
    ]
    .map(cause);
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn large_filler_is_as_long_as_asked_and_never_twice_the_same() {
    for size in [0, 1, 4095, 4096, 262_144, 3_000_000] {
        let text = format!("{{{{ text_of_size({size}) }}}}|{{{{ text_of_size({size}) }}}}");
        let both = render_as(Escape::None, &text).unwrap();
        let (one, other) = both.split_once('|').unwrap();
        assert_eq!((one.len(), other.len()), (size, size));
        assert!(size < 20 || one != other, "{size}");
    }
}

/// A capture of a path with at most one value works with filters for numbers, and is still a list for filters of
/// lists.
#[test]
fn a_single_captured_value_is_a_value() {
    let of = |found: &str, escape: Escape, text: &str| {
        let workload = workload();
        let template = Template::parse_escaped(text, &workload.variables, escape).unwrap();
        let mut scope = scope(&workload);
        scope.set_found(workload.slot("links").unwrap(), &[found]);
        let mut out = String::new();
        let rendered = template.render(&mut scope, &mut out);
        rendered.map(|()| out)
    };
    for (text, expected) in [
        ("{{ links | int }}", "311"),
        ("{{ links | int + 1 }}", "312"),
        ("{{ links | float / 2 }}", "155.5"),
        ("{{ links | default('x') | int }}", "311"),
        ("{{ links[0] | int }}", "311"),
        ("{{ links | first | int }}", "311"),
        ("{{ links | length }}", "1"),
        ("{{ pick(links) | int }}", "311"),
        ("{{ take(links) | int }}", "311"),
        ("{% for one in links %}[{{ one }}]{% endfor %}", "[311]"),
        ("{{ links }}", "311"),
    ] {
        assert_eq!(
            of("311", Escape::None, text).as_deref(),
            Ok(expected),
            "{text}"
        );
    }
    // A list of several has no number.
    let several = cause("{{ links | int }}").unwrap();
    assert!(several.contains("cannot convert sequence"), "{several}");
    for number in ["2.50", "340282366920938463463374607431768211457", "7e3"] {
        let sent = of(number, Escape::JsonValue, "{{ links | number }}");
        assert_eq!(sent.as_deref(), Ok(number));
    }
    assert!(of("07", Escape::JsonValue, "{{ links | number }}").is_err());
    let whole = of(
        "18446744073709551557",
        Escape::JsonValue,
        "{{ links | int }}",
    );
    assert_eq!(whole.as_deref(), Ok("18446744073709551557"));
}

/// A value captured by a JSON path stays a number, boolean, list, or object where it is a whole value in a JSON body.
#[test]
fn captured_values_keep_their_types_in_a_json_body() {
    let workload = workload();
    let sent = |text: &str, escape: Escape| {
        let template = Template::parse_escaped(text, &workload.variables, escape).unwrap();
        let mut scope = scope(&workload);
        let value = |text: &'static str, is_text| JsonValue {
            text: text.into(),
            is_text,
        };
        let several = [value("7", false), value("true", false), value("7", true)];
        scope.set_json(workload.slot("links").unwrap(), &several, false);
        let one = [value(r#"{"a":[1.10]}"#, false)];
        scope.set_json(workload.slot("page").unwrap(), &one, true);
        let mut out = String::new();
        template.render(&mut scope, &mut out).unwrap();
        out
    };
    for (text, expected) in [
        ("{{ links }}", "7"),
        ("{{ links | default(0) }}", "7"),
        ("{{ take(links) }}", "7"),
        ("{{ (take(links)) }}", "7"),
        ("{{ take(links) if take(links) else 0 }}", "true"),
        ("{{ links | string }}", "\"7\""),
        ("{{ take(links) | string }}", "\"7\""),
        ("{{ take(links) | int + 1 }}", "8"),
        ("{{ links[2] }}", "\"7\""),
        ("a{{ links }}", "\"a7\""),
        ("{{ page }}", r#"{"a":[1.10]}"#),
        ("{{ pick(page) }}", r#"{"a":[1.10]}"#),
        ("{{ page | string }}", r#""{\"a\":[1.10]}""#),
    ] {
        assert_eq!(sent(text, Escape::JsonValue), expected, "{text}");
    }
    assert_eq!(sent("{{ links }}", Escape::JsonString), "\"7\"");
    assert_eq!(sent("{{ links }}", Escape::None), "7");
}

/// Numbers of a JSON body go out with the digits that the file has.
#[test]
fn numbers_of_a_body_keep_their_digits() {
    let text = "workload: w\nsession:\n  steps:\n    - step: s\n      request: POST /\n      json: \
                { id: 18446744073709551557, price: &p 4.70, again: *p, many: 2e2, below: -9223372036854775809, \
                long: 0.1234567890123456789, odd: .5 }\n";
    let workload = load_workload("w.yaml", &One(text)).unwrap();
    let lab_workload::Body::Json(body) = &workload.session.steps[0].requests[0].body else {
        panic!("{:?}", workload.session.steps[0].requests[0].body);
    };
    assert_eq!(
        body.as_literal(),
        Some(
            "{\"id\":18446744073709551557,\"price\":4.70,\"again\":4.70,\"many\":2e2,\
             \"below\":-9223372036854775809,\"long\":0.1234567890123456789,\"odd\":0.5}"
        )
    );
}

/// The claims of a token, as JSON.
fn claims_of(token: &str) -> String {
    let claims = token.split('.').nth(1).unwrap();
    String::from_utf8(URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// `page` is captured by a path that finds one value, `links` by one that finds several.
#[test]
fn claims_of_a_token_are_values_as_they_were_captured() {
    let workload = workload();
    let claims = |text: &str, page: Option<&str>| {
        let template = Template::parse(&format!("{{{{ {text} }}}}"), &workload.variables).unwrap();
        let mut scope = scope(&workload);
        if let Some(page) = page {
            scope.set_found(workload.slot("page").unwrap(), &[page]);
        }
        let mut out = String::new();
        let rendered = template.render(&mut scope, &mut out);
        rendered.map(|()| claims_of(&out))
    };
    let of_page = claims("jwt({'sub': page, 'n': page | number}, 'k')", Some("47"));
    assert_eq!(of_page.as_deref(), Ok(r#"{"n":47,"sub":"47"}"#));
    let of_links = claims("jwt({'all': links, 'user': index}, 'k')", None);
    assert_eq!(
        of_links.as_deref(),
        Ok(r#"{"all":["/a/1","/a/2","/a/3"],"user":7}"#)
    );
    // The step is skipped: the server gave no page.
    let missing = claims("jwt({'sub': page}, 'k')", None);
    assert!(
        matches!(missing, Err(RenderError::EmptyList { .. })),
        "{missing:?}"
    );
}

#[test]
fn bytes_are_no_text() {
    for filter in ["urlencode", "json", "xml"] {
        let cause = cause(&format!("{{{{ name | sha256('raw') | {filter} }}}}"));
        let cause = cause.expect("bytes are refused");
        assert!(cause.contains("these are bytes"), "{filter}: {cause}");
    }
    check("{{ (index == 7) | base64 }}", "dHJ1ZQ==");
    check("{{ links | replace_all('/[0-9]/', index) }}", "/a/7");
}

#[test]
fn time_of_day_is_the_same_in_all_of_a_request_and_has_no_place_in_a_condition() {
    let workload = workload();
    let text = "{{ now_us() }} {{ now_us() }} {{ now() * 1000000 <= now_us() }} {{ now_text('%s') | int - now() }}";
    let template = Template::parse(text, &workload.variables).unwrap();
    let mut scope = scope(&workload);
    let render = |scope: &mut UserScope| {
        scope.begin_request();
        let mut out = String::new();
        template.render(scope, &mut out).unwrap();
        out
    };
    let first = render(&mut scope);
    let words: Vec<&str> = first.split(' ').collect();
    assert_eq!(words[0], words[1]);
    assert_eq!(words[2..], ["true", "0"]);
    let later = render(&mut scope);
    assert!(later[..words[0].len()] > *words[0], "{first} {later}");
    let symbols = Symbols::new(&workload.variables);
    let refused = Template::condition("now() > 5", symbols).unwrap_err();
    assert!(
        refused.message.contains("can't ask for the time of day"),
        "{refused:?}"
    );
    // A variable may be called so.
    let now = ["now".to_owned()];
    let named = Symbols::new(&now);
    Template::condition("now > 5", named).unwrap();
}

#[test]
fn steps_that_the_seed_does_not_fix_are_named() {
    let text = "workload: w\nuser: { since: '{{ now() }}' }\nsession:\n  steps:\n    \
                - { step: Before, request: 'GET /{{ token }}' }\n    \
                - { step: Fixed, request: 'GET /{{ uuid() }}' }\n    \
                - { step: Of the user, request: 'GET /{{ since }}' }\n    \
                - { step: Set, set: { token: \"{{ jwt({'sub': 1}, secret('K'), 'PS256') }}\" }, request: GET / }\n    \
                - { step: By a secret, request: \"GET /{{ jwt({'sub': 'ESP-32'}, secret('K')) }}\" }\n";
    let workload = load_workload("w.yaml", &One(Box::leak(text.to_owned().into_boxed_str())));
    let steps = workload.unwrap().unseeded_steps();
    // A step that sets such a value, and sends none, is fixed.
    assert_eq!(steps, ["Before", "Of the user"]);
}
