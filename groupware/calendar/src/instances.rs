//! Lists the instances of a recurring event, as in Domino.

use groupware_store::Snapshot;
use serde::Serialize;

use crate::{CalendarError, keys, mailbox, read::refuse_ghost};

#[derive(Serialize)]
struct Instances {
    instances: Vec<Instance>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    recurrence_id: String,
    href: String,
}

/// `{"instances":[{"recurrenceId","href"}]}`: the instances that are in the lists.
///
/// # Errors
/// 404; 400 for an event that doesn't recur, and for an invitation that was not accepted yet.
pub fn instances(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
) -> Result<Vec<u8>, CalendarError> {
    let held = mailbox::require(snapshot, mailbox, uid)?;
    refuse_ghost(&held.entry)?;
    let recurring = held.entry.imported().filter(|it| it.recurs());
    let recurring = recurring.ok_or_else(|| CalendarError::bad_request("Event does not recur."))?;
    let instance = |recurrence_id: String| Instance {
        href: keys::event_path(mailbox, &keys::instance_name(uid, &recurrence_id)),
        recurrence_id,
    };
    let instances = recurring.recurrence_ids().map(instance).collect();
    Ok(serde_json::to_vec(&Instances { instances }).expect("texts always serialise"))
}
