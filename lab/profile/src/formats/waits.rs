//! Waits as a table for people.

use std::fmt::Write as _;

use super::plain;
use crate::waits::{CodeWait, Summary};

/// The longest waits, a line each, `most` of them at most; waits for work last. Times are of all threads together.
///
/// Names are shown without control characters, so that nothing in them can steer a terminal.
pub fn waits_table(summary: &Summary, most: usize) -> String {
    let per = summary.per.short();
    let mut text = String::new();
    let (us, waits) = (format!("µs/{per}"), format!("waits/{per}"));
    let _ = writeln!(text, "{us:>10}  {waits:>9}  {:<17}  function", "waits for");
    let mut is_for_work = false;
    for one in summary.waits.iter().take(most) {
        if one.is_for_work && !is_for_work {
            text.push_str("waits for work:\n");
        }
        is_for_work = one.is_for_work;
        let _ = writeln!(
            text,
            "{:>10.2}  {:>9.3}  {:<17}  {}{}",
            one.us,
            one.count,
            one.class.label(),
            plain(&one.function),
            ended(one)
        );
    }
    let left_out = summary
        .waits_found
        .saturating_sub(most.min(summary.waits.len()));
    if left_out > 0 {
        let _ = writeln!(text, "further waits: {left_out}");
    }
    text
}

fn ended(of: &CodeWait) -> String {
    of.wakers.first().map_or_else(String::new, |waker| {
        let percent = 100.0 * waker.part;
        format!(", ended by {} ({percent:.0} %)", plain(&waker.name))
    })
}
