//! Granting a database, and listing the granted users.

use groupware_store::Snapshot;

use crate::access::{load, owner_only};
use crate::mailbox::Changes;
use crate::{
    Access, Context, DatabaseName, Decision, DocumentError, Principal, Reason, Registered, keys,
    limits,
};

/// Returns the users with access to a database, as JSON, for its owner. Lapsed names are omitted.
///
/// # Errors
/// 403 for all others; errors of the store.
pub fn access(
    snapshot: &dyn Snapshot,
    who: Principal<'_>,
    database: &DatabaseName,
    registered: Registered<'_>,
) -> Result<Vec<u8>, DocumentError> {
    owner_only(who)?;
    let granted = load(snapshot, who.mailbox, database)?;
    let to = granted.map(|(granted, _)| granted.living(registered));
    let to = to.transpose()?.unwrap_or_default();
    Ok(serde_json::to_vec(&to).expect("names always serialise to memory"))
}

/// Grants a database to exactly these users; an empty grant revokes all access but the owner's.
///
/// # Errors
/// 403 for all but the owner; 409 for a name that had access before and now belongs to another
/// user; 507 if too many databases are granted.
pub fn grant(
    context: &Context<'_>,
    database: &DatabaseName,
    to: Access,
    registered: Registered<'_>,
) -> Result<Decision<()>, DocumentError> {
    owner_only(context.who)?;
    let (snapshot, mailbox) = (context.snapshot, context.who.mailbox);
    let (old, revision) = load(snapshot, mailbox, database)?.unzip();
    let mut changes = Changes::new(context)?;
    let key = keys::access(database);
    if !to.is_empty() {
        if revision.is_none() {
            if count(snapshot, mailbox)? >= limits::DATABASES {
                let message = "There are too many databases.";
                return Err(DocumentError::refused(Reason::OverQuota, message));
            }
            let list = snapshot.get(mailbox, keys::GRANTS)?;
            let list = list.map(|record| record.revision);
            changes.put(keys::GRANTS.to_vec(), list, Some(Vec::new()));
        }
        let granted = old
            .unwrap_or_default()
            .followed_by((to, context.now), registered)?;
        let value = serde_json::to_vec(&granted).expect("names always serialise to memory");
        changes.put(key, revision, Some(value));
    } else if revision.is_some() {
        changes.put(key, revision, None);
    }
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

/// Returns the number of granted databases, counted up to the limit.
fn count(snapshot: &dyn Snapshot, mailbox: &str) -> Result<usize, DocumentError> {
    let (from, to) = keys::all_access();
    let mut count = 0;
    snapshot.scan(mailbox, &from, Some(&to), limits::DATABASES, &mut |_, _| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(count)
}
