//! Hostile requests: deep nesting, and names that are special to a JSON library.

use groupware_calendar::{NewEvent, parse_json_events};

/// serde_json's name for JSON that is kept as text. In a `Value`, that text is parsed as JSON with a separate depth.
const EMBEDDED: &str = "$serde_json::private::RawValue";

fn parse(member: &str, value: &str) -> Result<NewEvent, (u16, String)> {
    let body = format!(r#"{{"start":{{"date":"2026-01-05"}},"{member}":{value}}}"#);
    parse_json_events(body.as_bytes())
        .map(|mut events| events.remove(0))
        .map_err(|error| (error.status(), error.to_string()))
}

/// Quotes a JSON string, in the form that grows by at most five bytes per level.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\u005c").replace('"', "\\u0022");
    format!("\"{text}\"")
}

fn brackets(depth: usize, inner: &str) -> String {
    format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn embedded_json_is_refused_on_the_smallest_stack() {
    const STACK_BYTES: usize = 2 * 1024 * 1024;
    let levels = (0..138).fold(String::from("1"), |inner, _| {
        brackets(115, &format!("{{\"{EMBEDDED}\":{}}}", quoted(&inner)))
    });
    let check = move || {
        for member in ["alarm", "recurrenceRule", "x-mine", "unknown"] {
            let value = match member {
                "x-mine" => format!(r#"{{"data":{levels}}}"#),
                _ => levels.clone(),
            };
            let result = parse(member, &value);
            match member {
                "unknown" => assert!(result.is_ok(), "ignored unread"),
                _ => assert_eq!(result.unwrap_err().0, 400, "{member}"),
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(check).unwrap().join().unwrap();
}

#[test]
fn names_that_the_json_library_keeps_for_itself_are_refused() {
    for value in [
        format!(r#"{{"{EMBEDDED}":"[1]"}}"#),
        format!(r#"[{{"a":1,"{EMBEDDED}":"[1]"}}]"#),
        r#"{"$serde_json::private::Number":"1"}"#.to_owned(),
    ] {
        let (status, message) = parse("alarm", &value).unwrap_err();
        assert_eq!(status, 400, "{value}");
        assert!(message.contains("$serde_json"), "{message}");
        let data = format!(r#"{{"data":{value}}}"#);
        assert_eq!(parse("x-mine", &data).unwrap_err().0, 400, "{value}");
    }
}

#[test]
fn values_nest_sixteen_levels_deep_and_no_deeper() {
    let kept = parse("alarm", &brackets(16, "1")).unwrap();
    let alarm = kept.details.alarm.unwrap().to_string();
    assert_eq!(alarm, brackets(16, "1"));
    assert_eq!(parse("alarm", &brackets(17, "")).unwrap_err().0, 400);
    let data = |depth| format!(r#"{{"data":{}}}"#, brackets(depth, ""));
    assert_eq!(parse("x-mine", &data(15)).unwrap().details.extra.len(), 1);
    assert_eq!(parse("x-mine", &data(16)).unwrap_err().0, 400);
    assert_eq!(parse("alarm", "null").unwrap().details.alarm, None);
}

#[test]
fn every_kind_of_value_is_kept_as_it_is() {
    let alarm = r#"[{"a":null,"b":true,"c":-7,"d":18446744073709551615,"e":0.5,"f":"é"},"x"]"#;
    let kept = parse("alarm", alarm).unwrap().details.alarm.unwrap();
    assert_eq!(kept.to_string(), alarm);
}
