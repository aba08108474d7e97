//! The routes of grants: whom a database is granted to. Knows no rule of access.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::get;
use groupware_documents::{self as documents, Access};

use super::params::Params;
use super::{Reply, change, reply};
use crate::error::ApiError;
use crate::{AppState, Owner};

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(
        "/docs/{mailbox}/{database}/api/data/access",
        get(read).put(replace).delete(remove),
    )
}

async fn read(State(state): State<AppState>, owner: Owner, params: Params) -> Reply {
    let database = params.database()?;
    let registered = |name: &str| registered(&state, name);
    let body = state
        .store()
        .read(|snapshot| documents::access(snapshot, owner.who(), &database, &registered))?;
    Ok(reply::json(body))
}

/// A name that nobody has is told, lest a slip of the pen lock somebody out unseen.
async fn replace(
    State(state): State<AppState>,
    owner: Owner,
    params: Params,
    body: Bytes,
) -> Reply {
    let (database, to) = (params.database()?, Access::parse(&body)?);
    if let Some(unknown) = to.names().find(|name| registered(&state, name).is_none()) {
        let message = format!("There is no user {unknown}.");
        return Err(ApiError::bad_request(message));
    }
    grant(&state, &owner, &database, to).await
}

async fn remove(State(state): State<AppState>, owner: Owner, params: Params) -> Reply {
    grant(&state, &owner, &params.database()?, Access::default()).await
}

async fn grant(
    state: &AppState,
    owner: &Owner,
    database: &documents::DatabaseName,
    to: Access,
) -> Reply {
    change(state, owner.who(), |context| {
        documents::grant(context, database, to.clone(), &|name| {
            registered(state, name)
        })
    })
    .await?;
    Ok(reply::nothing())
}

/// When the user of this name was registered, if there is one.
fn registered(state: &AppState, name: &str) -> Option<i64> {
    let account = state.directory().find(name);
    account.map(|account| account.created)
}
