//! All data of a user as one archive, for an administrator.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::routing::get;
use groupware_http::Admin;
use groupware_runtime::Caller;
use groupware_takeout::{Source, file_name, write};

use crate::failure::Reply;
use crate::front::AdminFront;
use crate::people::find;

pub(crate) fn routes() -> Router<AdminFront> {
    Router::new().route("/admin/users/{name}/takeout", get(take))
}

async fn take(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    let mailbox = Arc::clone(find(&front, &name)?.name.key());
    let (store, content) = (front.service.store().clone(), front.content.clone());
    let now_s = front.service.now_s();
    let (of, name) = (Arc::clone(&mailbox), file_name(&mailbox, now_s));
    let written = front.streams.written(&caller, &of, move |to| {
        let source = Source {
            store: &store,
            content: &content,
            mailbox: &mailbox,
            now_s,
        };
        Ok(write(source, to)?)
    });
    Ok(written.await?.into_file(&name, "application/zip"))
}
