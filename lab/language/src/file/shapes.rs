//! The shapes of single values for the JSON Schema, so that an editor detects a wrong unit during typing. A template
//! may replace any of them. `units` interprets the values.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A template that gives the value.
const TEMPLATE: &str = r"\{\{|\{%";
const TIME: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*(us|µs|μs|ms|s|min|m|h|d)";
const NUMBER: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)";

/// Defines a shape with its own pattern, or a template.
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
    /// A wait: `5s..15s`, `10s`, `exponential(10s)`, `lognormal(10s, 0.5)`, `seconds(pause)`, `none`.
    WaitTime,
    format!(
        r"none|({TIME}\s*)+(\.\.\s*({TIME}\s*)+)?|exponential\s*\(\s*({TIME}\s*)+\)|lognormal\s*\(\s*({TIME}\s*)+,\s*{NUMBER}\s*\)|seconds\s*\(\s*[A-Za-z_][A-Za-z0-9_]*\s*\)"
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
    /// The limit of a figure: `p(95) < 300ms`, `rate < 0.1%`; of a measure in its own unit: `max < 20 messages`.
    Limit,
    format!(
        r"(p\s*\(\s*{NUMBER}\s*\)|avg|mean|min|max|med|rate|sum)\s*(<|>)=?\s*({NUMBER}\s*[^0-9]*|({TIME}\s*)+)"
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
mod tests;
