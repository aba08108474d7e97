//! Any text as a template: it compiles, or the error names a place in the text. Rendered as a JSON value it is JSON,
//! and the user's variables are unchanged.

use std::sync::OnceLock;

use lab_study::{Files, load_workload};
use lab_workload::template::Escape;
use lab_workload::{RenderError, Template, User, Workload};

const WORKLOAD: &[u8] =
    b"workload: w\nuser: { name: 'us\"er' }\nsession:\n  steps:\n    - step: s\n      \
                          request: GET /\n      capture: { links: '$[*]', page: request.path }\n";

struct One;

impl Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(WORKLOAD.to_vec())
    }
}

fn workload() -> &'static Workload {
    static SHARED: OnceLock<Workload> = OnceLock::new();
    SHARED.get_or_init(|| load_workload("w.yaml", &One).expect("the workload above is valid"))
}

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let workload = workload();
    let base_date = jiff::civil::date(2026, 1, 5);
    let user = User {
        index: 7,
        users: 10,
        first: 0,
        seed: 1,
        block: 0,
        base_date,
    };
    for escape in [
        Escape::None,
        Escape::JsonText,
        Escape::JsonValue,
        Escape::Form,
    ] {
        let template = match Template::parse_escaped(text, &workload.variables, escape) {
            Ok(template) => template,
            Err(error) => {
                assert!(
                    error.at.start <= error.at.end && error.at.end <= text.len(),
                    "{error:?}"
                );
                continue;
            }
        };
        let mut scope = workload
            .scope(user, &[])
            .expect("its user has no failing template");
        let links = workload.slot("links").expect("it is captured");
        scope.set_list(links, &["/a/1", "/a/\"2\""]);
        let mut out = String::new();
        match template.render(&mut scope, &mut out) {
            Ok(()) if escape == Escape::JsonValue => {
                serde_json::from_str::<serde_json::Value>(&out).expect("a JSON value");
            }
            Ok(()) | Err(RenderError::Failed { .. } | RenderError::TooLong { .. }) => {}
            Err(
                RenderError::EmptyList { .. }
                | RenderError::Unknown { .. }
                | RenderError::NotGiven { .. }
                | RenderError::NoRow { .. },
            ) => {}
        }
        assert_eq!(
            scope.get("name").as_deref(),
            Some("us\"er"),
            "the scope is back in one piece"
        );
    }
}
