//! The headers of tus.

use http::HeaderName;

pub(crate) const RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
pub(crate) const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
pub(crate) const LENGTH: HeaderName = HeaderName::from_static("upload-length");
pub(crate) const METADATA: HeaderName = HeaderName::from_static("upload-metadata");
pub(crate) const CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");
pub(crate) const EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
pub(crate) const CONCAT: HeaderName = HeaderName::from_static("upload-concat");
pub(crate) const DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");
