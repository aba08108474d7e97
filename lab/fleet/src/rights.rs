//! Clients and their rights in the NATS server's configuration.

use serde_json::{Value, json};

use crate::subject::Rights;

/// Returns the entry of a key's owner, by its public half. The server's configuration embeds JSON.
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
