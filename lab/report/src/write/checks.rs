//! The list of checks with their limits, for the documentation.

use lab_plan::checks::{CHECKS, Check, Limit};

use crate::format;

const LEAD: &str = "\
# Checks on the measurement

<!-- Made by `plimsoll schema checks`: don't edit. -->

A check judges the measurement, never the server. Beyond the first limit it warns; beyond the second
the trial is no measurement, and counts nowhere. A study sets limits itself where it must:

```yaml
checks:
  other_programs: 40%                     # a trial is a measurement up to this
  lateness: { warn: 20ms, invalid: 200ms }
```

The report then says so first. *Cause* is where it lies if the check fails: outside (neither system
nor generator), in the generator, in the system, or in the study. A trial that is invalid for a reason
outside is repeated; none is ever repeated for its result.
";

/// All checks with their default limits, as Markdown.
#[must_use]
pub fn checks_markdown() -> String {
    let mut text = LEAD.to_owned();
    text.push_str("\n| check | asks | cause |\n| --- | --- | --- |\n");
    for check in CHECKS {
        let Check { name, asks, .. } = check;
        text.push_str(&format!("| {name} | {asks} | {} |\n", check.cause.name()));
    }
    text.push_str(
        "\n## Limits\n\n| limit | of | what is held against it | warns beyond | invalid beyond |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- |\n");
    for check in CHECKS {
        for limit in check.limits {
            let beyond = |value: Option<f64>| beyond(limit, value);
            text.push_str(&format!(
                "| `{}` | {} | {} | {} | {} |\n",
                limit.key,
                check.name,
                limit.figure,
                beyond(limit.warn),
                beyond(limit.invalid)
            ));
        }
    }
    text
}

fn beyond(limit: &Limit, value: Option<f64>) -> String {
    value.map_or_else(
        || format::NONE.to_owned(),
        |value| format::limit(value, limit.unit),
    )
}
