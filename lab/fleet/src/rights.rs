//! Who may connect to the server of NATS, with which rights, as that server's configuration says it.

use serde_json::{Value, json};

use crate::subject::Rights;

/// An owner of a key, by its public half. The server's configuration has JSON in it.
pub(crate) fn user(key: &str, rights: &Rights) -> Value {
    let publish = match rights.publish.is_empty() {
        true => json!({ "deny": ">" }),
        false => json!({ "allow": rights.publish }),
    };
    let mut permissions = json!({
        "publish": publish,
        "subscribe": { "allow": rights.subscribe },
    });
    if rights.answers {
        permissions["allow_responses"] = json!({ "max": 1, "expires": "10s" });
    }
    json!({ "nkey": key, "permissions": permissions })
}
