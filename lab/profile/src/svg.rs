//! Helpers for all pictures: texts and positions in SVG.

/// A text that can't end an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Percent with two digits: a tenth of a pixel.
pub(crate) fn hundredths(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_name_ends_no_element_and_no_attribute() {
        assert_eq!(
            escaped("<T as A>::b & \"c\""),
            "&lt;T as A&gt;::b &amp; &quot;c&quot;"
        );
    }
}
