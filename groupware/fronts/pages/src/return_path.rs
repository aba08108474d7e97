//! The target of a sign-in: the originally requested path of this server, and no other.

use http::Uri;

const START: &str = "/";
/// Longest accepted path.
const MAX_PATH: usize = 1000;

/// Returns the sign-in page that returns to the requested path.
pub(crate) fn return_path(asked: &Uri) -> String {
    let path = asked.path_and_query().map_or(START, |path| path.as_str());
    if path == START || !is_ours(path) {
        return "/sign-in".to_owned();
    }
    let mut to = String::with_capacity(path.len() + 16);
    to.push_str("/sign-in?to=");
    groupware_text::push_encoded(&mut to, path, b"/");
    to
}

/// Returns true for a path of this server's pages, rather than a link to another server: browsers
/// accept `//host`, and `\` for `/`, and drop control characters.
pub(crate) fn is_ours(path: &str) -> bool {
    let rest = path.strip_prefix('/');
    rest.is_some_and(|rest| !rest.starts_with('/'))
        && path.len() <= MAX_PATH
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && !path.starts_with("/sign-")
}

/// Returns the path if it is ours, else the start page.
pub(crate) fn destination(to: &str) -> &str {
    if is_ours(to) { to } else { START }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_gone_back_to() {
        for good in ["/calendar", "/calendar/week/2026-11-21?x=/y", "/a%0d%0ab"] {
            assert_eq!(destination(good), good);
        }
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "evil",
            "/\t/evil.example",
            "/\r\nset-cookie: a",
            "/sign-out",
            "/sign-in",
            "/ä",
            "\\\\evil",
        ] {
            assert_eq!(destination(bad), "/", "{bad:?}");
        }
        let uri: Uri = "/calendar/new?day=2026-11-21&x=%26".parse().unwrap();
        let path = "/sign-in?to=/calendar/new%3Fday%3D2026-11-21%26x%3D%2526";
        assert_eq!(return_path(&uri), path);
        assert_eq!(return_path(&"/".parse().unwrap()), "/sign-in");
        assert_eq!(return_path(&"//evil/x".parse().unwrap()), "/sign-in");
    }
}
