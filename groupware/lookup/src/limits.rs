//! Bounds on what one request may ask for and what the service holds.

/// Largest body of a request: a registration of 10,000 interfaces as the XML protocol writes them,
/// indented, has 7.2 MB.
pub const BODY_BYTES: usize = 8 << 20;
/// A longer body takes too long to read for others to wait for it; so does a longer answer to make.
pub const LARGE_BYTES: usize = 256 << 10;
/// More than this of what is kept takes too long to read.
pub const READ_BYTES: usize = 1 << 20;
/// Most keys of a record.
pub const KEYS: usize = 256;
/// Longest key.
pub const KEY_BYTES: usize = 128;
/// Most values of a record, all keys together.
pub const VALUES: usize = 60_000;
/// Most rows of the index that one change may write; addresses that lie side by side share one by tens. Others'
/// changes wait meanwhile, about as long as for a meeting of very many.
pub const INDEX_ROWS: usize = 20_000;
/// Longest value.
pub const VALUE_BYTES: usize = 4096;
/// Most records in one bulk call, and most URIs in one bulk renewal.
pub const BULK: usize = 1000;
/// Most registrations, …
pub const REGISTRATIONS: i64 = 1_000_000;
/// … and most bytes of them, as they are kept.
pub const REGISTERED_BYTES: i64 = 16 << 30;
/// Most registrations of a user: a quarter of all, …
pub const USERS_REGISTRATIONS: i64 = REGISTRATIONS / 4;
/// … and most bytes of them.
pub const USERS_BYTES: i64 = 256 << 20;
/// Most results of one query. perfSONAR's clients ask for no page, and take what they get for all that there is.
pub const RESULTS: usize = 100_000;
/// A query's results end once they have so many bytes; a message of several queries has no more either.
pub const RESULT_BYTES: usize = 16 << 20;
/// Most conditions of a query, the values of its lists counted one by one.
pub const CONDITIONS: usize = 64;
/// Most records, or entries of the index, that a query, or all queries of a message, may look at.
pub const VISITS: usize = 200_000;
/// A query that looks at more than this takes too long for others to wait for it.
pub const VISITS_AT_ONCE: usize = 1000;
/// Most bytes of records that a query may look at.
pub const VISIT_BYTES: usize = 512 << 20;
/// Most bytes of values that it may compare, once with each of its patterns that have to be.
pub const COMPARED_BYTES: usize = 1 << 30;

/// Longest lease, in seconds: 30 days. This and the next two are the simple lookup service's own.
pub const MAX_LEASE_S: i64 = 2_592_000;
/// The lease of who asks for none, or for one out of bounds.
pub const DEFAULT_LEASE_S: i64 = 7200;
/// Shortest lease.
pub const MIN_LEASE_S: i64 = 30;
/// How long after its end a lease may still be renewed; then the registration is swept away.
pub const RENEWABLE_S: i64 = 300;
