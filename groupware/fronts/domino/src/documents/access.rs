//! The routes of grants: the users with access to a database. Knows no rule of access.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::get;
use groupware_documents::{self as documents, Access};
use groupware_http::reply::{json, nothing};
use groupware_http::{ApiError, Owner};

use super::params::DocumentParams;
use super::user::change_as;
use crate::failure::Reply;
use crate::front::Domino;

pub(crate) fn routes() -> Router<Domino> {
    Router::new().route(
        "/docs/{mailbox}/{database}/api/data/access",
        get(read).put(replace).delete(remove),
    )
}

async fn read(State(domino): State<Domino>, owner: Owner, params: DocumentParams) -> Reply {
    let database = params.database()?;
    let registered = domino.service.auth.registrations();
    let body = domino
        .service
        .store()
        .read(|snapshot| documents::access(snapshot, owner.who(), &database, &registered))?;
    Ok(json(body))
}

/// Replaces the grants. An unknown name is an error, so that a typing error locks no user out unnoticed.
async fn replace(
    State(domino): State<Domino>,
    owner: Owner,
    params: DocumentParams,
    body: Bytes,
) -> Reply {
    let (database, to) = (params.database()?, Access::parse(&body)?);
    for name in to.names() {
        if domino.service.auth.find(name)?.is_none() {
            let message = format!("There is no user {name}.");
            return Err(ApiError::bad_request(message).into());
        }
    }
    grant(&domino, &owner, &database, to).await
}

async fn remove(State(domino): State<Domino>, owner: Owner, params: DocumentParams) -> Reply {
    grant(&domino, &owner, &params.database()?, Access::default()).await
}

async fn grant(
    domino: &Domino,
    owner: &Owner,
    database: &documents::DatabaseName,
    to: Access,
) -> Reply {
    change_as(domino, (owner.caller(), owner.who()), |context| {
        let registered = domino.service.auth.registrations();
        documents::grant(context, database, to.clone(), &registered)
    })
    .await?;
    Ok(nothing())
}
