//! The list of checks with their limits, for the documentation.

use lab_plan::checks::{CheckId, Limit};

use crate::format;

const LEAD: &str = "\
# Checks on the measurement

<!-- Made by `plimsoll schema checks`: don't edit. -->

A check judges the measurement, never the server. Beyond its first limit it warns. Beyond its second limit
the trial is invalid and counts nowhere. A study can set limits itself:

```yaml
checks:
  other_programs: 40%                     # trials are valid up to this
  lateness: { warn: 20ms, invalid: 200ms }
```

The report then says so first. *Cause* is where the cause of a failure lies: outside (neither system
nor generator), in the generator, in the system, or in the study. A trial that is invalid for an outside
cause is repeated; no trial is ever repeated because of its result.
";

/// All checks with their default limits, as Markdown.
#[must_use]
pub fn checks_markdown() -> String {
    let mut text = LEAD.to_owned();
    text.push_str("\n| check | asks | cause |\n| --- | --- | --- |\n");
    for row in CheckId::ALL.iter().map(|id| id.row()) {
        let cause = row.cause.name();
        text.push_str(&format!("| {} | {} | {cause} |\n", row.title, row.asks));
    }
    text.push_str(
        "\n## Limits\n\n| limit | of | what is held against it | warns beyond | invalid beyond |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- |\n");
    for row in CheckId::ALL.iter().map(|id| id.row()) {
        for limit in row.limits {
            let beyond = |value: Option<f64>| beyond(limit, value);
            text.push_str(&format!(
                "| `{}` | {} | {} | {} | {} |\n",
                limit.key,
                row.title,
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
