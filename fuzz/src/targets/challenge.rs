//! Parses any text as challenges of `WWW-Authenticate`, and answers them.

use lab_workload::auth::{Answer, Digest, challenges};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let all = challenges(text);
    let parameters: usize = all.iter().map(|one| one.parameters.len()).sum();
    assert!(all.len() + parameters <= text.len());
    let Ok(answer) = Answer::to(text) else {
        return;
    };
    assert!(all.iter().any(|one| one.scheme == "digest"));
    let who = Digest {
        username: "u".to_owned(),
        password: "p".to_owned(),
    };
    let header = answer.header(&who, ("GET", "/"), (1, "c"));
    assert!(header.starts_with("Digest username=\"u\", realm="));
}
