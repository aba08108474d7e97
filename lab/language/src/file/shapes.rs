//! The shapes of single values for the JSON Schema, so that an editor finds a wrong unit while it is
//! typed. A template may stand for any of them. What a value means is for `units`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A template that gives the value.
const TEMPLATE: &str = r"\{\{|\{%";
const TIME: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*(us|µs|μs|ms|s|min|m|h|d)";
const NUMBER: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)";

/// A shape with a pattern of its own, or a template.
macro_rules! shape {
    ($(#[$doc:meta])* $name:ident, $pattern:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let pattern = format!(r"^\s*({})\s*$|{TEMPLATE}", $pattern);
                json_schema!({ "type": "string", "pattern": pattern })
            }
        }
    };
}

shape!(
    /// A length of time: `250ms`, `1h30m`.
    Time,
    format!(r"({TIME}\s*)+")
);
shape!(
    /// A hold: a time, or `4 cycles`.
    HoldTime,
    format!(r"({TIME}\s*)+|[0-9]+\s*cycles?")
);
shape!(
    /// A wait: `5s..15s`, `10s`, `exponential(10s)`, `lognormal(10s, 0.5)`, `none`.
    WaitTime,
    format!(
        r"none|({TIME}\s*)+(\.\.\s*({TIME}\s*)+)?|exponential\s*\(\s*({TIME}\s*)+\)|lognormal\s*\(\s*({TIME}\s*)+,\s*{NUMBER}\s*\)"
    )
);
shape!(
    /// A rate: `1000/s`, `60/min`.
    Rate,
    format!(r"{NUMBER}\s*/\s*(s|min|m|h)")
);
shape!(
    /// A size: `4096`, `64 KiB`, `30 MB`.
    SizeText,
    format!(r"{NUMBER}\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?")
);
shape!(
    /// A whole number as text.
    CountText,
    "[0-9]+"
);
shape!(
    /// What a figure is compared with: `p(95) < 300ms`, `rate < 0.1%`.
    Limit,
    format!(
        r"(p\s*\(\s*{NUMBER}\s*\)|avg|mean|min|max|med|rate)\s*(<|>)=?\s*({NUMBER}\s*(%|/s)?|({TIME}\s*)+)"
    )
);

/// A whole number, or a template that gives one.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(
    missing_docs,
    reason = "they would stand in the schema as descriptions"
)]
pub enum Count {
    Number(u32),
    Template(CountText),
}

/// A size in bytes, or with its unit.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(
    missing_docs,
    reason = "they would stand in the schema as descriptions"
)]
pub enum Size {
    Bytes(u64),
    Text(SizeText),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use regex::Regex;

    use super::*;
    use crate::units;

    fn pattern<T: JsonSchema>() -> Regex {
        let schema = schemars::schema_for!(T).to_value();
        Regex::new(schema["pattern"].as_str().unwrap()).unwrap()
    }

    /// The pattern lets through what the parser reads, and nothing else.
    #[track_caller]
    fn agree<T: JsonSchema>(texts: &[&str], reads: impl Fn(&str) -> bool) {
        let pattern = pattern::<T>();
        let mut read = 0;
        for text in texts {
            let is_read = reads(text);
            read += usize::from(is_read);
            assert_eq!(pattern.is_match(text), is_read, "{text}");
        }
        assert!(read > 0 && read < texts.len(), "both sides are tried");
        assert!(pattern.is_match("{{ x }}") && pattern.is_match("1{% if x %}0{% endif %}s"));
    }

    const MOST: Duration = Duration::from_secs(86_400 * 365);

    #[test]
    fn patterns_know_the_units_that_the_parsers_know() {
        let times = [
            "10s",
            "1h30m",
            "1.5 s",
            "250us",
            "2min",
            "3 d",
            " 5s ",
            "",
            "10",
            "2sec",
            "5 seconds",
            "s",
            "-5s",
            "1m 30",
            "4 cycles",
            "1 cycle",
            "x cycles",
            "one",
        ];
        agree::<Time>(&times, |text| units::duration(text, MOST).is_ok());
        agree::<HoldTime>(&times, |text| units::hold(text, MOST).is_ok());
        let waits = [
            "none",
            "5s..15s",
            "5s .. 1m30s",
            "10s",
            "exponential(10s)",
            "lognormal(10s, 0.5)",
            "exponential(10)",
            "5..15s",
            "uniform(1s, 2s)",
            "lognormal(10s)",
            "soon",
        ];
        agree::<WaitTime>(&waits, |text| units::wait(text).is_ok());
        let rates = [
            "1000/s", "60/min", "5 / h", "0.5/s", "1000", "10/sec", "/s", "ten/s",
        ];
        agree::<Rate>(&rates, |text| units::rate(text).is_ok());
        let sizes = [
            "4096", "64 KiB", "30MB", "1.5 GB", "2 kb", "10 bytes", "MB", "12 TB",
        ];
        agree::<SizeText>(&sizes, |text| units::size(text, u64::MAX).is_ok());
        agree::<CountText>(&["12", " 7 ", "one", "1.5", "-3", ""], |text| {
            units::whole_number(text, 0..=u64::MAX).is_ok()
        });
    }
}
