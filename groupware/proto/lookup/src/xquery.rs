//! The supported queries: by key, and by an interface's address.
//!
//! The protocol permits any XQuery. Clients of the time find a service by paths with its key; only
//! these, and the path with an address, are answered.

/// A supported query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The service itself.
    Service(String),
    /// Its blocks, in their data element.
    Data(String),
    /// Its blocks alone.
    Blocks(String),
    /// The data of all services with an interface of this address.
    ByAddress(String),
}

const STORE: &str = "/nmwg:store[@type='LSStore']";

/// Parses the text of a query; `None` if it is not supported.
pub fn parse_query(text: &str) -> Option<Wanted> {
    let text = without_declarations(text)?;
    let text: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| if c == '"' { '\'' } else { c })
        .collect();
    let text = text
        .strip_prefix('/')
        .filter(|_| text.starts_with("//"))
        .unwrap_or(&text);
    let path = text.strip_prefix(STORE)?;
    if let Some(rest) = path.strip_prefix("/nmwg:metadata[@id=") {
        let (key, rest) = literal(rest)?;
        return (rest == "]").then_some(Wanted::Service(key));
    }
    if let Some(rest) = path.strip_prefix("/nmwg:data[@metadataIdRef=") {
        let (key, rest) = literal(rest)?;
        return match rest {
            "]" => Some(Wanted::Data(key)),
            "]/nmwg:metadata" => Some(Wanted::Blocks(key)),
            _ => None,
        };
    }
    let rest = path.strip_prefix("/nmwg:data[.//nmwgt:ifAddress=")?;
    let (address, rest) = literal(rest)?;
    (rest == "]").then_some(Wanted::ByAddress(address))
}

/// Skips all leading `declare namespace x="…";`.
fn without_declarations(text: &str) -> Option<&str> {
    let mut text = text.trim();
    while let Some(rest) = text.strip_prefix("declare namespace ") {
        text = rest.split_once(';')?.1.trim();
    }
    Some(text)
}

/// Returns a quoted text, and the rest.
fn literal(text: &str) -> Option<(String, &str)> {
    let (literal, rest) = text.strip_prefix('\'')?.split_once('\'')?;
    (!literal.is_empty() && literal.len() <= 1024).then(|| (literal.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_by_key_and_address_are_understood() {
        let check = |text: &str, expected: Option<Wanted>| {
            assert_eq!(parse_query(text), expected, "{text}");
        };
        let service = Wanted::Service("k1".into());
        check(
            "\n declare namespace nmwg=\"http://ggf.org/ns/nmwg/base/2.0/\";\n \
             /nmwg:store[@type=\"LSStore\"]/nmwg:metadata[@id=\"k1\"]\n ",
            Some(service.clone()),
        );
        check(
            "//nmwg:store[@type='LSStore']/nmwg:metadata[@id='k1']",
            Some(service),
        );
        let data = "/nmwg:store[@type=\"LSStore\"]/nmwg:data[@metadataIdRef=\"k1\"]";
        check(data, Some(Wanted::Data("k1".into())));
        check(
            &format!("{data}/nmwg:metadata"),
            Some(Wanted::Blocks("k1".into())),
        );
        check(
            "/nmwg:store[@type='LSStore']/nmwg:data[.//nmwgt:ifAddress = '10.0.0.1']",
            Some(Wanted::ByAddress("10.0.0.1".into())),
        );
        for other in [
            "",
            "declare namespace a=",
            "/nmwg:store[@type='LSStore-control']/nmwg:metadata[@id='k1']",
            "/nmwg:store[@type='LSStore']/nmwg:metadata",
            "/nmwg:store[@type='LSStore']/nmwg:metadata[@id='']",
            "/nmwg:store[@type='LSStore']/nmwg:metadata[@id='k1' or 1=1]",
            "for $x in collection() return $x",
        ] {
            check(other, None);
        }
    }
}
