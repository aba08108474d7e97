//! Tests of `protobuf`.

use proptest::prelude::*;
use protox::Compiler;
use protox::file::{File, FileResolver, GoogleFileResolver};
use serde_json::{Value, json};

use super::*;

const NOTES: &str = r#"
    syntax = "proto3";
    package notes;
    import "google/protobuf/any.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    message Note {
        string text = 1;
        int64 long_number = 2;
        repeated Note notes = 3;
        map<string, Note> by_name = 4;
        bytes raw = 5;
        google.protobuf.Timestamp at = 6;
        uint64 large = 7;
    }
    service Notes {
        rpc Say(Note) returns (Note);
        rpc Talk(stream Note) returns (stream Note);
        rpc Put(google.protobuf.Struct) returns (google.protobuf.Value);
        rpc List(google.protobuf.ListValue) returns (google.protobuf.Any);
    }
"#;

struct Sources;

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "notes.proto" => File::from_source(name, NOTES),
            other => GoogleFileResolver::new().open_file(other),
        }
    }
}

fn notes() -> Descriptors {
    let mut compiler = Compiler::with_file_resolver(Sources);
    compiler.include_imports(true);
    compiler.open_file("notes.proto").unwrap();
    Descriptors::parse(&compiler.encode_file_descriptor_set()).unwrap()
}

fn note() -> MessageKind {
    notes().method("notes.Notes/Say").unwrap().says
}

/// Encodes and decodes.
fn there_and_back(json: &Value) -> Result<Value, String> {
    let (mut bytes, mut text) = (Vec::new(), Vec::new());
    note().encode(&json.to_string(), &mut bytes)?;
    note().decode(&bytes, &mut text)?;
    Ok(serde_json::from_slice(&text).unwrap())
}

#[test]
fn methods_are_found_by_their_names() {
    let notes = notes();
    let names = ["Say", "Talk", "Put", "List"].map(|name| format!("notes.Notes/{name}"));
    assert_eq!(notes.methods(), names);
    let talk = notes.method("/notes.Notes/Talk").unwrap();
    assert_eq!(talk.path, "/notes.Notes/Talk");
    assert!(talk.says_many && talk.hears_many);
    for none in ["Notes/Say", "notes.Notes/Sing", "notes.Notes", ""] {
        assert!(notes.method(none).is_none(), "{none}");
    }
}

#[test]
fn an_answer_has_all_its_fields_by_their_own_names() {
    let said = json!({ "longNumber": "-7", "by_name": { "a": { "text": "b" } }, "at": "2026-11-23T10:00:00Z" });
    let heard = there_and_back(&said).unwrap();
    assert_eq!(heard["long_number"], json!(-7));
    assert_eq!(heard["text"], json!(""));
    assert_eq!(heard["notes"], json!([]));
    assert_eq!(heard["by_name"]["a"]["text"], json!("b"));
    assert_eq!(heard["at"], said["at"]);
}

#[test]
fn messages_with_json_of_their_own_are_said_and_heard() {
    let (put, list) = (
        notes().method("notes.Notes/Put"),
        notes().method("notes.Notes/List"),
    );
    let (put, list) = (put.unwrap(), list.unwrap());
    for (kind, json) in [
        (
            &put.says,
            json!({ "a": 1.0, "b": null, "c": [true, { "d": "e" }] }),
        ),
        (&put.hears, json!(["x"])),
        (&put.hears, json!("text")),
        (&list.says, json!([1.0, "two"])),
        (
            &list.hears,
            json!({ "@type": "type.googleapis.com/notes.Note", "text": "in it" }),
        ),
    ] {
        assert!(matches!(kind.as_field(), Field::Plain), "{}", kind.name());
        let (mut bytes, mut text) = (Vec::new(), Vec::new());
        kind.encode(&json.to_string(), &mut bytes).unwrap();
        kind.decode(&bytes, &mut text).unwrap();
        let heard: Value = serde_json::from_slice(&text).unwrap();
        match json.get("@type") {
            Some(_) => assert_eq!(heard["text"], json["text"]),
            None => assert_eq!(heard, json),
        }
    }
    assert!(matches!(note().as_field(), Field::Message(_)));
}

#[test]
fn what_is_no_message_is_told() {
    for wrong in [
        json!({ "txt": 1 }),
        json!({ "long_number": "x" }),
        json!([]),
    ] {
        let told = there_and_back(&wrong).unwrap_err();
        assert!(told.starts_with("no notes.Note: "), "{told}");
    }
    assert!(note().decode(b"\xff", &mut Vec::new()).is_err());
    assert!(note().encode("{} {}", &mut Vec::new()).is_err());
    assert!(Descriptors::parse(b"\xff\xff").is_err());
    let large = vec![0; MAX_DESCRIPTOR_BYTES + 1];
    assert_eq!(
        Descriptors::parse(&large).unwrap_err(),
        DescriptorsError::TooLarge
    );
}

#[test]
fn what_a_field_has_in_it_is_known() {
    let kinds = |name: &str| note().field(name);
    assert!(matches!(kinds("text"), Some(Field::Text)));
    assert!(matches!(kinds("notes"), Some(Field::Message(_))));
    let Some(Field::Map(inner)) = kinds("byName") else {
        panic!("a map");
    };
    assert!(matches!(*inner, Field::Message(_)));
    // These have a JSON form of their own.
    assert!(matches!(kinds("at"), Some(Field::Plain)));
    assert!(matches!(kinds("raw"), Some(Field::Plain)));
    assert!(kinds("txt").is_none());
}

#[test]
fn they_travel_as_they_were_written() {
    let text = serde_json::to_string(&notes()).unwrap();
    let there: Descriptors = serde_json::from_str(&text).unwrap();
    assert_eq!(there.sha256(), notes().sha256());
    assert_eq!(there.methods(), notes().methods());
    assert!(serde_json::from_str::<Descriptors>("\"_\"").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_said_is_heard(text in any::<String>(), number in any::<i64>(), deep in 0_usize..20) {
        let mut said = json!({ "text": text, "long_number": number });
        for _ in 0..deep {
            said = json!({ "notes": [said] });
        }
        let mut heard = there_and_back(&said).unwrap();
        for _ in 0..deep {
            heard = heard["notes"][0].take();
        }
        prop_assert_eq!(&heard["text"], &json!(text));
        prop_assert_eq!(&heard["long_number"], &json!(number));
    }

    #[test]
    fn any_bytes_are_a_message_or_told(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut text = Vec::new();
        if note().decode(&bytes, &mut text).is_ok() {
            prop_assert!(serde_json::from_slice::<Value>(&text).is_ok());
        }
    }
}

#[test]
fn unsigned_numbers_keep_their_digits() {
    let mut bytes = Vec::new();
    note()
        .encode("{\"large\": 18446744073709551557}", &mut bytes)
        .unwrap();
    let mut text = Vec::new();
    note().decode(&bytes, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("18446744073709551557"), "{text}");
}
