//! The bounds of one request and of the whole service.

/// The largest body of a request: a registration of 10,000 interfaces in the XML protocol,
/// indented, has 7.2 MB.
pub const BODY_BYTES: usize = 8 << 20;
/// Longer bodies are parsed, and longer responses built, in the background pool.
pub const LARGE_BYTES: usize = 256 << 10;
/// Larger stored data is read in the background pool.
pub const READ_BYTES: usize = 1 << 20;
/// The maximum number of keys of a record.
pub const KEYS: usize = 256;
/// The longest key.
pub const KEY_BYTES: usize = 128;
/// The maximum number of values of a record, over all keys.
pub const VALUES: usize = 60_000;
/// The maximum number of index rows that one change may write; adjacent addresses share one by
/// tens. Other changes wait about as long as for a very large meeting.
pub const INDEX_ROWS: usize = 20_000;
/// The longest value.
pub const VALUE_BYTES: usize = 4096;
/// The maximum number of records in one bulk call, and of URIs in one bulk renewal.
pub const BULK: usize = 1000;
/// The maximum number of registrations, …
pub const REGISTRATIONS: i64 = 1_000_000;
/// … and of their stored bytes.
pub const REGISTERED_BYTES: i64 = 16 << 30;
/// The maximum number of registrations of a user: a quarter of all, …
pub const USERS_REGISTRATIONS: i64 = REGISTRATIONS / 4;
/// … and of their bytes.
pub const USERS_BYTES: i64 = 256 << 20;
/// The maximum number of results of one query. perfSONAR's clients don't page, and take one response for all results.
pub const RESULTS: usize = 100_000;
/// The bytes after which a query's results end; a message of several queries has the same limit.
pub const RESULT_BYTES: usize = 16 << 20;
/// The maximum number of conditions of a query, counting each value of a list.
pub const CONDITIONS: usize = 64;
/// The maximum number of records, or index entries, that a query, or all queries of a message, may read.
pub const VISITS: usize = 200_000;
/// A query that reads more than this runs in the background pool.
pub const VISITS_AT_ONCE: usize = 1000;
/// The maximum bytes of records that a query may read.
pub const VISIT_BYTES: usize = 512 << 20;
/// The maximum bytes of values that it may compare, counted once per compared pattern.
pub const COMPARED_BYTES: usize = 1 << 30;

/// The longest lease, in seconds: 30 days. This and the next two are the simple lookup service's own.
pub const MAX_LEASE_S: i64 = 2_592_000;
/// The lease for requests without one, or with one out of bounds.
pub const DEFAULT_LEASE_S: i64 = 7200;
/// The shortest lease.
pub const MIN_LEASE_S: i64 = 30;
/// The time after its end in which a lease may be renewed; then the registration is swept.
pub const RENEWABLE_S: i64 = 300;
