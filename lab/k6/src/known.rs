//! The options that are read, and what becomes of others: a load that they would change is not run without them.

use serde_json::Value;

use crate::options::Options;

/// Those of a script that are read, here or by its engine.
const OF_SCRIPT: [&str; 10] = [
    "scenarios",
    "stages",
    "vus",
    "duration",
    "iterations",
    "thresholds",
    "discardResponseBodies",
    "maxRedirects",
    "userAgent",
    "throw",
];

/// Those of a scenario that are read.
const OF_SCENARIO: [&str; 15] = [
    "executor",
    "startTime",
    "exec",
    "env",
    "vus",
    "duration",
    "startVUs",
    "stages",
    "rate",
    "timeUnit",
    "startRate",
    "preAllocatedVUs",
    "maxVUs",
    "iterations",
    "maxDuration",
];

/// Those that change no load and no figure.
const HARMLESS: [&str; 6] = [
    "tags",
    "systemTags",
    "summaryTrendStats",
    "summaryTimeUnit",
    "noUsageReport",
    "cloud",
];

/// Those that change the load or where it goes, each with what to do.
const REFUSED: [(&str, &str); 9] = [
    ("rps", "use a scenario `constant-arrival-rate`"),
    ("ext", "leave it out: there is no cloud"),
    ("blacklistIPs", "leave the requests out of the script"),
    ("blockHostnames", "leave the requests out of the script"),
    (
        "hosts",
        "write the addresses into the requests, or into /etc/hosts",
    ),
    (
        "minIterationDuration",
        "call `sleep` in the function, or use a scenario `constant-arrival-rate`",
    ),
    (
        "noConnectionReuse",
        "leave it out: each user keeps its connections",
    ),
    (
        "noVUConnectionReuse",
        "leave it out: each user keeps its connections",
    ),
    (
        "noCookiesReset",
        "leave it out: an iteration begins without cookies",
    ),
];

type IsRight = fn(&Value) -> bool;

/// The types of those that the engine reads.
const TYPES: [(&str, IsRight, &str); 4] = [
    ("discardResponseBodies", Value::is_boolean, "true or false"),
    ("maxRedirects", Value::is_u64, "a whole number such as 10"),
    ("userAgent", Value::is_string, "a text"),
    ("throw", Value::is_boolean, "true or false"),
];

/// Refuses options of a script that change its load and can't be run; the others that nothing reads are noted.
pub(super) fn of_script(options: &mut Options<'_>, notes: &mut Vec<String>) {
    for (key, is_right, right) in TYPES {
        if let Some(value) = options.get(key).filter(|value| !is_right(value)) {
            let message = format!("`{key}` must be {right}, not {value}");
            options.refuse(key, message, &format!("write {right}"));
        }
    }
    unread(&OF_SCRIPT, options, notes);
}

/// The same of a scenario.
pub(super) fn of_scenario(options: &mut Options<'_>, notes: &mut Vec<String>) {
    unread(&OF_SCENARIO, options, notes);
}

fn unread(read: &[&str], options: &mut Options<'_>, notes: &mut Vec<String>) {
    for key in options.keys() {
        if read.contains(&key) || HARMLESS.contains(&key) {
            continue;
        }
        // Without a value, or with `false`, an option is as if it were absent.
        if options.get(key).is_none_or(|value| *value == false) {
            continue;
        }
        let place = options.place();
        match REFUSED.iter().find(|(name, _)| *name == key) {
            Some((_, help)) => {
                let message = format!("the option `{key}`{place} is not supported");
                options.refuse(key, message, help);
            }
            None => notes.push(format!("the option `{key}`{place} is ignored")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load::tests::made;
    use crate::script::Flags;

    #[test]
    fn an_option_is_read_or_harmless_or_noted_or_refused() {
        for key in OF_SCRIPT.iter().chain(&HARMLESS) {
            let made = made(&json!({ *key: null }), Flags::default()).unwrap();
            assert_eq!(made.notes, [""; 0], "{key}");
        }
        for (key, help) in REFUSED {
            let refused = made(&json!({ key: 1 }), Flags::default()).unwrap_err();
            let message = format!("the option `{key}` is not supported");
            assert_eq!((&refused[0].message, &*refused[0].help), (&message, help));
            assert!(made(&json!({ key: false }), Flags::default()).is_ok());
        }
        for key in ["batch", "dns", "setupTimeout", "insecureSkipTLSVerify"] {
            let note = format!("the option `{key}` is ignored");
            let made = made(&json!({ key: "5s" }), Flags::default()).unwrap();
            assert_eq!(made.notes, [note]);
        }
        for (key, _, right) in TYPES {
            let refused = made(&json!({ key: [] }), Flags::default()).unwrap_err();
            let message = format!("`{key}` must be {right}, not []");
            assert_eq!(refused[0].message, message);
        }
        let one = json!({ "executor": "constant-vus", "duration": "1m", "tags": {}, "gracefulStop": "0s" });
        let made = made(&json!({ "scenarios": { "one": one } }), Flags::default()).unwrap();
        let note = "the option `gracefulStop` of the scenario `one` is ignored";
        assert_eq!(made.notes, [note]);
    }
}
