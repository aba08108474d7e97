//! Paths with or without a final slash. Knows no route.

use http::Uri;
use http::uri::PathAndQuery;

/// Returns the address without its final slash; `None` if there is none, the usual case.
///
/// Clients join addresses by rules of their own: perfSONAR's asks for `/lookup/records/?…`, and
/// people type one. No route here ends with a slash, so that it has no meaning.
pub(crate) fn without_final_slash(uri: &Uri) -> Option<Uri> {
    let path = uri
        .path()
        .strip_suffix('/')
        .filter(|path| !path.is_empty())?;
    let bare = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(bare.ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, bare: Option<&str>) {
        let found = without_final_slash(&written.parse().unwrap());
        assert_eq!(
            found.map(|uri| uri.to_string()).as_deref(),
            bare,
            "{written}"
        );
    }

    #[test]
    fn one_slash_at_the_end_goes() {
        check("/", None);
        check("/lookup/records", None);
        check("/lookup/records?a=/", None);
        check("/lookup/records/", Some("/lookup/records"));
        check(
            "/lookup/records/?type=host&x=/",
            Some("/lookup/records?type=host&x=/"),
        );
        check("/a//", Some("/a/"));
        check("//", Some("/"));
        check("http://host:1/a/?b", Some("http://host:1/a?b"));
        check("*", None);
        check("/a%2F", None);
    }
}
