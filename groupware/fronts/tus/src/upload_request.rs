//! The parts of a request about an upload.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use groupware_documents::UploadId;
use groupware_http::{Owner, Params};

use crate::failure::UploadFailure;
use crate::front::Tus;

/// A request of an upload's owner.
pub(crate) struct UploadRequest {
    pub(crate) owner: Owner,
    pub(crate) id: UploadId,
    pub(crate) request: Request,
}

impl FromRequest<Tus> for UploadRequest {
    type Rejection = Response;

    async fn from_request(request: Request, front: &Tus) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let owner = Owner::from_request_parts(&mut parts, front).await;
        let owner = owner.map_err(IntoResponse::into_response)?;
        let params = Params::from_request_parts(&mut parts, front).await;
        let params = params.map_err(IntoResponse::into_response)?;
        let id = UploadId::parse(params.get("upload"));
        let id = id.map_err(|error| UploadFailure::from(error).into_response())?;
        let request = Request::from_parts(parts, body);
        Ok(Self { owner, id, request })
    }
}
