//! Requests to an object store, with time limits. Knows objects by their names only.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use groupware_content::ContentError;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload,
    RetryConfig,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::address::Address;
use crate::clock;
use crate::condition::{Condition, Operation};
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::runtime::Runtime;
use crate::wire::Dial;

/// The maximum number of retries of a request that failed with a transient error.
const RETRIES: usize = 2;
/// The time after which a request is not retried.
const RETRY_WITHIN: Duration = Duration::from_secs(8);
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// The maximum duration of a request, retries included.
const WITHIN: Duration = Duration::from_secs(60);
/// The same for listings.
const LIST_WITHIN: Duration = Duration::from_secs(600);
/// The maximum wait for the next bytes of an object.
const BYTES_WITHIN: Duration = Duration::from_secs(10);
/// The maximum size of an object that is read in one piece.
const SMALL_BYTES: u64 = 4096;
/// The maximum number of concurrent puts, each of which holds a part in memory.
const PUTS: usize = 8;
/// The maximum wait for one of those to end.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// The bytes of an object, as they arrive.
pub(crate) type Stream = BoxStream<'static, object_store::Result<Bytes>>;

/// A place in an object store.
pub(crate) struct Bucket {
    store: AmazonS3,
    prefix: String,
    puts: Arc<Semaphore>,
    pub(crate) condition: Condition,
    /// The store's own name, from its first response.
    pub(crate) server: Arc<OnceLock<String>>,
    runtime: Runtime,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Bucket {
    pub(crate) fn new(address: &Address, credentials: &Credentials) -> Result<Self, OpenError> {
        let speaks_tls = !address
            .endpoint
            .as_deref()
            .is_some_and(|endpoint| endpoint.starts_with("http://"));
        let dial = Dial::new(speaks_tls)?;
        let server = dial.server();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&address.bucket)
            .with_region(&address.region)
            .with_access_key_id(&credentials.key_id)
            .with_secret_access_key(&credentials.secret)
            .with_virtual_hosted_style_request(!address.is_path_style)
            .with_allow_http(!speaks_tls)
            // Not all stores can remove several objects at once.
            .with_disable_bulk_delete(true)
            .with_retry(RetryConfig {
                backoff: BackoffConfig {
                    init_backoff: BACKOFF[0],
                    max_backoff: BACKOFF[1],
                    base: 2.0,
                },
                max_retries: RETRIES,
                retry_timeout: RETRY_WITHIN,
            })
            .with_http_connector(dial);
        if let Some(token) = &credentials.token {
            builder = builder.with_token(token);
        }
        if let Some(endpoint) = &address.endpoint {
            builder = builder.with_endpoint(match address.is_path_style {
                true => endpoint.clone(),
                false => endpoint.replacen("://", &format!("://{}.", address.bucket), 1),
            });
        }
        let store = builder.build();
        Ok(Self {
            store: store.map_err(|error| OpenError::Settings(error.to_string()))?,
            prefix: address.prefix.clone(),
            puts: Arc::new(Semaphore::new(PUTS)),
            condition: Condition::default(),
            server,
            runtime: Runtime::start()?,
        })
    }

    /// The object's full name in the store.
    fn path(&self, name: &str) -> Path {
        match self.prefix.is_empty() {
            true => Path::from(name),
            false => Path::from(format!("{}/{name}", self.prefix)),
        }
    }

    /// Puts an object in one request.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), ContentError> {
        let (path, count) = (self.path(name), bytes.len() as u64);
        let payload = PutPayload::from(bytes);
        let put = async { self.store.put(&path, payload).await.map(drop) };
        self.ask(Operation::Put, &path, WITHIN, put)?;
        self.condition.came_in(count);
        Ok(())
    }

    /// Starts a multipart upload; returns the store's ID of it.
    pub(crate) fn begin_parts(&self, name: &str) -> Result<String, ContentError> {
        let path = self.path(name);
        let begin = self.store.create_multipart(&path);
        self.ask(Operation::Put, &path, WITHIN, begin)
    }

    /// Puts a part, numbered from 0.
    pub(crate) fn put_part(
        &self,
        (name, upload): (&str, &str),
        number: usize,
        bytes: Vec<u8>,
    ) -> Result<PartId, ContentError> {
        let (path, count, upload) = (self.path(name), bytes.len() as u64, upload.to_owned());
        let payload = PutPayload::from(bytes);
        let put = self.store.put_part(&path, &upload, number, payload);
        let part = self.ask(Operation::Put, &path, WITHIN, put)?;
        self.condition.came_in(count);
        Ok(part)
    }

    /// Completes an upload to an object of this many bytes.
    pub(crate) fn end_parts(
        &self,
        (name, upload): (&str, &str),
        parts: Vec<PartId>,
        bytes: u64,
    ) -> Result<(), ContentError> {
        let (path, upload) = (self.path(name), upload.to_owned());
        let end = async {
            let ended = self.store.complete_multipart(&path, &upload, parts);
            ended.await.map(drop)
        };
        match self.ask(Operation::Put, &path, WITHIN, end) {
            // The upload was completed and the response was lost: the upload is gone, and the object exists.
            Err(error) => match self.size(name) {
                Ok(Some(found)) if found == bytes => Ok(()),
                _ => Err(error),
            },
            ended => ended,
        }
    }

    /// Removes an object and the uploaded parts of it. Succeeds if the object doesn't exist.
    pub(crate) fn remove(&self, name: &str, upload: Option<&str>) -> Result<(), ContentError> {
        let path = self.path(name);
        let gone = |removed| match removed {
            Err(ContentError::Missing { .. }) => Ok(()),
            other => other,
        };
        // This is first: an aborted upload can no longer become an object.
        if let Some(upload) = upload {
            let upload = upload.to_owned();
            let abort = self.store.abort_multipart(&path, &upload);
            gone(self.ask(Operation::Delete, &path, WITHIN, abort))?;
        }
        let delete = self.store.delete(&path);
        gone(self.ask(Operation::Delete, &path, WITHIN, delete))
    }

    /// The length of an object; `None` if it doesn't exist.
    pub(crate) fn size(&self, name: &str) -> Result<Option<u64>, ContentError> {
        let path = self.path(name);
        let head = self.store.head(&path);
        match self.ask(Operation::Head, &path, WITHIN, head) {
            Ok(found) => Ok(Some(found.size)),
            Err(ContentError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a small object; `None` if it doesn't exist.
    pub(crate) fn read_small(&self, name: &str) -> Result<Option<Bytes>, ContentError> {
        match self.size(name)? {
            None => Ok(None),
            Some(size) if size > SMALL_BYTES => {
                let words = format!("{} has {size} bytes", self.path(name));
                Err(ContentError::Refused(words.into()))
            }
            Some(_) => {
                let path = self.path(name);
                let get = async { self.store.get(&path).await?.bytes().await };
                self.ask(Operation::Get, &path, WITHIN, get).map(Some)
            }
        }
    }

    /// Starts to read a non-empty part of an object.
    pub(crate) fn open(&self, name: &str, span: Range<u64>) -> Result<Stream, ContentError> {
        let path = self.path(name);
        let options = GetOptions {
            range: Some(GetRange::Bounded(span)),
            ..GetOptions::default()
        };
        let get = self.store.get_opts(&path, options);
        let got = self.ask(Operation::Get, &path, WITHIN, get)?;
        Ok(got.into_stream())
    }

    /// Reads the next bytes of an object; `None` at its end.
    pub(crate) fn next(&self, stream: &mut Stream) -> Result<Option<Bytes>, ContentError> {
        let next = async { timeout(BYTES_WITHIN, stream.try_next()).await };
        match self.runtime.wait_for(next) {
            Ok(Ok(bytes)) => {
                let count = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
                self.condition.went_out(count);
                Ok(bytes)
            }
            Ok(Err(error)) => Err(ContentError::Away(Box::new(error))),
            Err(late) => Err(ContentError::Away(Box::new(late))),
        }
    }

    /// Lists the last path segments of all objects in a folder.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>, ContentError> {
        let path = self.path(folder);
        let list = async {
            let mut names = Vec::new();
            let mut found = self.store.list(Some(&path));
            while let Some(object) = found.try_next().await? {
                names.extend(object.location.filename().map(str::to_owned));
            }
            Ok::<_, Error>(names)
        };
        self.ask(Operation::List, &path, LIST_WITHIN, list)
    }

    /// Acquires a permit for a put, which bounds the memory in use.
    pub(crate) fn turn(&self) -> Result<tokio::sync::OwnedSemaphorePermit, ContentError> {
        let turn = Arc::clone(&self.puts).acquire_owned();
        match self
            .runtime
            .wait_for(async { timeout(TURN_WITHIN, turn).await })
        {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(closed)) => Err(ContentError::Away(Box::new(closed))),
            Err(late) => Err(ContentError::Away(Box::new(late))),
        }
    }

    fn ask<T>(
        &self,
        operation: Operation,
        path: &Path,
        limit: Duration,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, ContentError> {
        if !self.condition.is_worth_asking() {
            return Err(ContentError::Away("it was away a moment ago".into()));
        }
        let began = clock::now();
        let done = match self.runtime.wait_for(async { timeout(limit, work).await }) {
            Ok(done) => done.map_err(|error| sorted(error, path)),
            Err(late) => Err(ContentError::Away(Box::new(late))),
        };
        self.condition.note(operation, began, &done);
        done
    }
}

/// Error texts that mean a full store; stores use different status codes for it.
const FULL: [&str; 5] = [
    "status code: 507",
    "InsufficientStorage",
    "StorageFull",
    "QuotaExceeded",
    "no space left",
];
/// The library's text for a client error status.
const BLAMED: &str = "status code: 4";

/// Distinguishes transient errors from rejected requests.
fn sorted(error: Error, path: &Path) -> ContentError {
    if let Error::NotFound { .. } = error {
        return ContentError::Missing {
            path: path.to_string().into(),
        };
    }
    let words = error.to_string();
    if FULL.iter().any(|full| words.contains(full)) {
        return ContentError::Full;
    }
    match matches!(error, Error::Generic { .. }) && !words.contains(BLAMED) {
        true => ContentError::Away(Box::new(error)),
        false => ContentError::Refused(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_is_refused() {
        let generic = |words: &str| Error::Generic {
            store: "S3",
            source: words.into(),
        };
        let path = Path::from("a/b");
        let sorted = |error| sorted(error, &path);
        let away = "Error performing PUT http://x/ in 1s - HTTP error: connection refused";
        assert!(matches!(sorted(generic(away)), ContentError::Away(_)));
        let broken = "Server returned non-2xx status code: 500 Internal Server Error: ";
        assert!(matches!(sorted(generic(broken)), ContentError::Away(_)));
        let wrong = "Server returned non-2xx status code: 400 Bad Request: ";
        assert!(matches!(sorted(generic(wrong)), ContentError::Refused(_)));
        let full = "Server returned non-2xx status code: 507 Insufficient Storage: ";
        assert!(matches!(sorted(generic(full)), ContentError::Full));
        let missing = Error::NotFound {
            path: "a/b".to_owned(),
            source: "".into(),
        };
        assert!(matches!(sorted(missing), ContentError::Missing { .. }));
        let denied = Error::PermissionDenied {
            path: "a/b".to_owned(),
            source: "".into(),
        };
        assert!(matches!(sorted(denied), ContentError::Refused(_)));
    }
}
