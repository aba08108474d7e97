//! The server that a script tests.

use std::collections::BTreeMap;

/// Variables that usually hold the address of the server.
const ADDRESSES: [&str; 6] = ["BASE_URL", "URL", "HOST", "API_URL", "TARGET", "HOSTNAME"];

/// Returns the origin that a script names: in a variable for addresses, or else most often in its texts.
pub fn server<'a>(
    mut variables: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    texts: &[String],
) -> Option<String> {
    let by_variable = variables.find_map(|(name, value)| {
        let is_address = ADDRESSES.iter().any(|known| name.ends_with(known));
        origin(value.filter(|_| is_address)?)
    });
    by_variable.or_else(|| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for text in texts {
            for (at, _) in text.match_indices("http") {
                let is_code = !line_before(text, at).trim_start().starts_with("import");
                if let Some(origin) = origin(&text[at..]).filter(|_| is_code) {
                    *counts.entry(origin).or_default() += 1;
                }
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(origin, _)| origin)
    })
}

fn line_before(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |start| start + 1);
    &text[start..at]
}

/// Returns the origin of an address at the beginning of a text.
fn origin(text: &str) -> Option<String> {
    let scheme = ["https://", "http://"]
        .into_iter()
        .find(|scheme| text.starts_with(scheme))?;
    let rest = &text[scheme.len()..];
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let end = rest.find(|c: char| !is_host(c)).unwrap_or(rest.len());
    let host = rest[..end].trim_end_matches(['.', ':']);
    (!host.is_empty() && !rest[end..].starts_with('$')).then(|| format!("{scheme}{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_the_beginning_of_an_address() {
        let cases = [
            (
                "http://127.0.0.1:8080/items?x=1",
                Some("http://127.0.0.1:8080"),
            ),
            ("https://shop.example'", Some("https://shop.example")),
            ("http://${HOST}/", None),
            ("http.get(", None),
        ];
        for (text, expected) in cases {
            assert_eq!(origin(text).as_deref(), expected, "{text}");
        }
    }
}
