//! Parses the text of Prometheus exporters, line by line. It knows no metric by name and
//! fetches nothing.
//!
//! The format is "Prometheus text exposition format 0.0.4": `name{label="value",…} number [time]`;
//! a line that begins with `#` is a comment or metadata of a name.

use std::borrow::Cow;

/// One number of an exporter.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// Name of the metric.
    pub name: &'a str,
    /// Labels in their order.
    pub labels: Labels<'a>,
    /// Its value; may be infinite or no number.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(label, _)| *label == name);
        found.map(|(_, value)| value.as_ref())
    }
}

/// The samples of an answer. Invalid lines are skipped: an invalid line of an unused
/// collector must not cost the others.
pub fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(sample)
}

/// One line; `None` where it is no sample.
fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim();
    let end = line.find(|c: char| !is_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split_ascii_whitespace();
    let value = number(words.next()?)?;
    let time = words.next().map(str::parse::<i64>);
    if matches!(time, Some(Err(_))) || words.next().is_some() {
        return None;
    }
    Some(Sample {
        name,
        labels,
        value,
    })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Names and values.
pub type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Parses the text in braces; returns the rest, too.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_end();
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        labels.push((name, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(rest) => rest,
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// Parses text up to its closing quote, without its escapes; returns the rest, too.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut plain: Option<String> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, &mut plain) {
            ('"', _) => {
                let value = plain.map_or(Cow::Borrowed(&text[..at]), Cow::Owned);
                return Some((value, &text[at + 1..]));
            }
            ('\\', _) => {
                let escaped = match chars.next()?.1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                };
                plain
                    .get_or_insert_with(|| text[..at].to_owned())
                    .push(escaped);
            }
            (c, Some(plain)) => plain.push(c),
            (_, None) => {}
        }
    }
    None
}

/// Parses numbers as Go writes them: also `+Inf`, `-Inf`, `NaN`, and `1e+09`.
fn number(word: &str) -> Option<f64> {
    match word {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // Rust also reads words such as `infinity`, which are none here.
        _ if word.contains(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E') => None,
        _ => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_parse() {
        let text = "# HELP up Whether it is up.\n# TYPE up gauge\nup 1\n\
            node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1.5e+06\n\
            a:b{ path = \"C:\\\\x \\\"y\\\"\\nz\" , } -Inf 1395066363000\n\
            odd{} NaN\n";
        let found: Vec<Sample<'_>> = samples(text).collect();
        assert_eq!(found.len(), 4);
        assert_eq!((found[0].name, found[0].value), ("up", 1.0));
        assert_eq!(found[1].label("mode"), Some("idle"));
        assert!((found[1].value - 1.5e6).abs() < 1e-9);
        assert_eq!(found[2].label("path"), Some("C:\\x \"y\"\nz"));
        assert!(found[3].value.is_nan() && found[3].labels.is_empty());
    }

    #[test]
    fn what_is_no_sample_is_left_out() {
        for line in [
            "",
            "#",
            "up",
            "9up 1",
            "up one",
            "up infinity",
            "up 1 2 3",
            "up 1 x",
            "up{ 1",
            "up{a} 1",
            "up{a=b} 1",
            "up{a=\"b} 1",
            "up{a=\"\\x\"} 1",
            "up{a=\"b\" c=\"d\"} 1",
            "up{=\"b\"} 1",
            "<html>",
        ] {
            assert_eq!(samples(line).count(), 0, "{line}");
        }
    }

    fn escape(value: &str) -> String {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        escaped.replace('\n', "\\n")
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            name in "[a-z_:][a-z0-9_:]{0,9}",
            labels in proptest::collection::vec(("[a-z_]{1,5}", "[^\r\u{85}\u{2028}\u{2029}]{0,9}"), 0..4),
            value in any::<f64>().prop_filter("a number", |v| v.is_finite()),
        ) {
            let inner: Vec<String> =
                labels.iter().map(|(n, v)| format!("{n}=\"{}\"", escape(v))).collect();
            let line = format!("{name}{{{}}} {value:e}", inner.join(","));
            let found: Vec<Sample<'_>> = samples(&line).collect();
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].name, name);
            prop_assert_eq!(found[0].value.to_bits(), value.to_bits());
            let read: Vec<(String, String)> = found[0].labels.iter()
                .map(|(n, v)| ((*n).to_owned(), v.to_string())).collect();
            prop_assert_eq!(read, labels);
        }
    }
}
