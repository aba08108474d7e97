//! Errors in expectations on responses, and in captures from them.

use crate::faults::{Fault, Folder, STUDY, WORKLOAD, load, snapshot};

#[test]
fn faults_of_answers() {
    let step = "request: GET /list\n";
    let with = |keys: &str| format!("{step}      {keys}\n");
    let cases = [
        ("size of words", "expect: { size: small }"),
        ("size of nothing", "expect: { size: < 0 B }"),
        ("sizes the wrong way round", "expect: { size: 2 kB..1 kB }"),
        ("size of an open range", "expect: { size: 1 kB.. }"),
        ("no size", "expect: { size: < }"),
        ("time without a sign", "expect: { time: 1s }"),
        ("time without a unit", "expect: { time: < 1 }"),
        ("time of nothing", "expect: { time: < 0s }"),
        ("graphql of words", "expect: { graphql: ok }"),
        ("absent by no path", "expect: { absent: errors }"),
        (
            "mapping in the place of a value",
            "expect: { json: { $.a: { is: null } } }",
        ),
        (
            "value near a comparison",
            "expect: { json: { $.a: '> {{ mots }}' } }",
        ),
    ];
    let fault = |(name, keys): (&'static str, &str)| -> Fault {
        (name, step, Box::leak(with(keys).into_boxed_str()))
    };
    let mut faults: Vec<Fault> = cases.map(fault).into();
    let capture = "\"$.items[*].href\"";
    faults.extend([
        ("no selector", capture, "html()"),
        ("selector of siblings", capture, "'html(h1 + a)@href'"),
        ("selector left open", capture, "'html(a[)'"),
        ("attribute without a name", capture, "html(a)@"),
        ("something behind it", capture, "html(a).href"),
    ]);
    let load = |text: &str| load(STUDY.as_bytes(), text.as_bytes());
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, load));
}

/// A workload with schema files.
struct WithSchemas(Folder);

impl lab_study::Files for WithSchemas {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(match path.rsplit('/').next() {
            Some("good.schema.json") => b"{ \"type\": \"object\" }".to_vec(),
            Some("open.schema.json") => b"{ \"type\": ".to_vec(),
            Some("wrong.schema.json") => {
                b"{ \"properties\": { \"a\": { \"type\": \"objekt\" } } }".to_vec()
            }
            Some("far.schema.json") => b"{ \"$ref\": \"https://example.org/a.json\" }".to_vec(),
            _ => return self.0.read(path),
        })
    }

    fn names(&self, _: &str) -> Vec<String> {
        vec!["good.schema.json".to_owned()]
    }
}

#[test]
fn faults_of_schemas() {
    let step = "request: GET /list\n";
    let with = |name: &str| format!("{step}      expect: {{ schema: {name} }}\n");
    let load = |text: &str| {
        let files = WithSchemas(crate::faults::folder(STUDY.as_bytes(), text.as_bytes()));
        lab_study::load_any("studies/pages.study.yaml", &files)
    };
    assert!(load(&WORKLOAD.replace(step, &with("good.schema.json"))).is_ok());
    let cases = [
        ("none there", "god.schema.json"),
        ("no JSON", "open.schema.json"),
        ("no schema", "wrong.schema.json"),
        ("one that refers elsewhere", "far.schema.json"),
        ("one of each user", "\"{{ name }}.json\""),
    ];
    let fault = |(name, file): (&'static str, &str)| -> Fault {
        (name, step, Box::leak(with(file).into_boxed_str()))
    };
    let faults: Vec<Fault> = cases.map(fault).into();
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, load));
}
