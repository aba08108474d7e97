//! Who gets a message, and who doesn't.

use serde_json::json;

use crate::mail::world_with;
use crate::support::*;

#[test]
fn a_namesake_of_another_organization_gets_nothing() {
    for (organization, to, status) in [
        (None, "CN=bob", 201),
        (None, "CN=bob/O=Elsewhere", 400),
        (Some("Acme"), "CN=bob/O=Elsewhere", 400),
        (Some("Acme"), "CN=Bob/OU=East/O=ACME", 201),
        (Some("Acme"), "CN=bob", 201),
    ] {
        let world = world_with(|config| config.organization = organization.map(str::to_owned));
        let message = json!({ "to": [to], "subject": "Pier", "content": [] });
        let reply = world.json("ann", "POST", "/outbox", &message);
        assert_eq!(reply.status, status, "{organization:?} {to}: {reply:?}");
        let came = usize::from(status == 201);
        assert_eq!(world.list("bob", "/inbox").len(), came, "{to}");
        if status != 201 {
            assert_error(&reply, status);
        }
    }
}
