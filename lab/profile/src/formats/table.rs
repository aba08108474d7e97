//! The functions of a profile as a table for people.

use std::fmt::Write as _;

use super::plain;
use crate::sums::Sums;

/// The functions with the most CPU time of their own, a line each, at most `most`. With a number of transactions,
/// CPU time is in µs per transaction, else in ms.
///
/// Names are shown without control characters, so they can't control a terminal.
pub fn table(sums: &Sums, transactions: Option<f64>, most: usize) -> String {
    let (unit, divisor) = match transactions.filter(|count| *count > 0.0) {
        Some(count) => ("µs/tx", 1e3 * count),
        None => ("ms", 1e6),
    };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:>6}  {:>9}  {:>6}  {:>9}  function",
        "self", "", "total", ""
    );
    let _ = writeln!(text, "{:>6}  {unit:>9}  {:>6}  {unit:>9}", "%", "%");
    let all = sums.all.ns.max(1) as f64;
    for sum in sums.functions.iter().take(most) {
        let (own, total) = (sum.own.ns as f64, sum.total.ns as f64);
        let name = plain(&sum.key.name);
        let _ = writeln!(
            text,
            "{:>6.1}  {:>9.2}  {:>6.1}  {:>9.2}  {}",
            100.0 * own / all,
            own / divisor,
            100.0 * total / all,
            total / divisor,
            name
        );
    }
    let left_out = sums.functions.len().saturating_sub(most);
    if left_out > 0 {
        let own = sums
            .functions
            .iter()
            .skip(most)
            .map(|sum| sum.own.ns as f64);
        let own: f64 = own.sum();
        let _ = writeln!(
            text,
            "{:>6.1}  {:>9.2}  {:>6}  {:>9}  {left_out} further functions",
            100.0 * own / all,
            own / divisor,
            "",
            ""
        );
    }
    text
}
