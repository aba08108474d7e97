//! Errors of the interfaces for programs as shown to browsers.

use insta::assert_snapshot;

use crate::browser::HTML;
use crate::transcript::*;

#[test]
fn failures_for_people() {
    let mut t = Transcript::with(|config| config.limits.attachment_bytes = 10);
    let documents = "/docs/ada/notes/api/data/documents";
    let page = || with(&[HTML]);
    let path = t.made(Ada, "POST", documents, &json("{}"));
    for (who, method, path, rest) in [
        (Nobody, "GET", "/nothing", page()),
        (Nobody, "DELETE", "/healthz", page()),
        (Nobody, "GET", documents, page()),
        (Ben, "GET", documents, page()),
        (
            Ada,
            "GET",
            documents,
            page().and("authorization", "Digest x"),
        ),
        (
            Ada,
            "GET",
            "/docs/ada/notes/api/data/documents/unid/x",
            page(),
        ),
        (Ada, "POST", documents, page()),
        (
            Ada,
            "PUT",
            &format!("{path}/Body/a"),
            announced("text/plain", 11).and(HTML.0, HTML.1),
        ),
        (Ada, "PATCH", "/tus/ada/x", page()),
        (Nobody, "GET", "/lookup/host/x", page()),
        (Nobody, "POST", "/login", page()),
        // Paths for programs only stay as they are.
        (Nobody, "GET", "/mail/ada/api/mail/inbox", page()),
        (Nobody, "POST", "/admin/users", page()),
    ] {
        t.check(who, method, path, rest);
    }
    assert_snapshot!(t.text());
}
