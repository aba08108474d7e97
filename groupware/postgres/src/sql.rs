//! All statements. Tables are named without their schema, which is every session's search path.

/// The version of the tables and of the locking protocol between servers. A change of either gets
/// the next number and an upgrade step.
pub(crate) const SCHEMA_VERSION: i32 = 2;
/// Servers of this version don't declare the record formats that they read, and exclude all others.
/// The tables are the same.
pub(crate) const SILENT_VERSION: i32 = 1;

/// Partitions are bytes, as keys are: their order is the store's own in any collation and encoding,
/// and a name may hold any character. Long values are stored out of line, uncompressed: most are
/// read as a whole, and some are compressed already.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE records (
        partition bytea NOT NULL,
        key bytea NOT NULL,
        revision bigint NOT NULL,
        value bytea NOT NULL,
        PRIMARY KEY (partition, key)
    ) WITH (fillfactor = 80);
    ALTER TABLE records ALTER value SET STORAGE EXTERNAL;
    CREATE SEQUENCE revisions;
    CREATE TABLE writers (
        node bigint PRIMARY KEY,
        last bigint NOT NULL,
        seen timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE store (version integer NOT NULL, owner bigint);
";
pub(crate) const VERSION: &str = "SELECT version FROM store";
/// Runs only while this server owns the store exclusively.
pub(crate) const UPGRADE: &str = "UPDATE store SET version = $1 WHERE version < $1";
/// The existing tables of a store in this session's schema, and whether they survive a crash.
pub(crate) const TABLES: &str = "SELECT relname::text, relpersistence = 'p' FROM pg_class
    WHERE relnamespace = to_regnamespace(quote_ident($1))::oid
        AND relname IN ('records', 'revisions', 'writers', 'store')";
pub(crate) const SETTINGS: &str = "SELECT name, setting FROM pg_settings WHERE name IN
    ('fsync', 'full_page_writes', 'synchronous_commit', 'server_version_num',
     'max_locks_per_transaction', 'transaction_read_only', 'max_connections')";

/// Every lookup is of few rows by key, whatever the statistics. The server detects a silently lost
/// client within five seconds.
pub(crate) const TUNE: &str = "
    SET jit = off;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET enable_bitmapscan = off;
    SET plan_cache_mode = force_generic_plan;
    SET client_min_messages = warning;
    SET default_transaction_read_only = off;
    SET statement_timeout = 0;
    SET tcp_keepalives_idle = 2;
    SET tcp_keepalives_interval = 1;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = 5000;
";

/// In the order of the numbers, to avoid deadlocks.
pub(crate) const LOCK: &str = "SELECT CASE WHEN exclusive
        THEN pg_advisory_xact_lock($1, number)
        ELSE pg_advisory_xact_lock_shared($1, number) END
    FROM unnest($2::int[], $3::bool[]) AS t(number, exclusive)";
/// The number of a group, from which its batches' revisions derive.
pub(crate) const NUMBER: &str = "SELECT nextval('revisions')";
/// The records that a group asserts or adds to, and the values of the latter.
pub(crate) const LOOK: &str = "SELECT t.at, r.revision, CASE WHEN t.with_value THEN r.value END
    FROM unnest($1::bytea[], $2::bytea[], $3::bool[])
        WITH ORDINALITY AS t(partition, key, with_value, at)
    JOIN records r ON r.partition = t.partition AND r.key = t.key";
pub(crate) const PUT: &str = "INSERT INTO records (partition, key, revision, value)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[])
    ON CONFLICT (partition, key)
    DO UPDATE SET revision = excluded.revision, value = excluded.value";
pub(crate) const DELETE: &str = "DELETE FROM records r
    USING unnest($1::bytea[], $2::bytea[]) AS t(partition, key)
    WHERE r.partition = t.partition AND r.key = t.key";
pub(crate) const DELETE_RANGES: &str = "DELETE FROM records r
    USING unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS t(partition, first, after)
    WHERE r.partition = t.partition AND r.key >= t.first AND r.key < t.after";
pub(crate) const EMPTY: &str = "DELETE FROM records r
    USING unnest($1::bytea[]) AS t(partition) WHERE r.partition = t.partition";
/// A number that doesn't follow the last one becomes NULL, which the table rejects: nothing is stored then.
pub(crate) const MARK: &str = "INSERT INTO writers AS w (node, last) VALUES ($1, $2)
    ON CONFLICT (node)
    DO UPDATE SET last = CASE WHEN w.last = excluded.last - 1 THEN excluded.last END";

/// Returns a writer's marker, and creates or touches its row: this commit, and so every one before
/// it, is durable.
pub(crate) const ENROL: &str = "INSERT INTO writers AS w (node, last) VALUES ($1, 0)
    ON CONFLICT (node) DO UPDATE SET seen = now() RETURNING last";
pub(crate) const LEAVE: &str = "DELETE FROM writers WHERE node = $1";
/// Deletes the rows of lost writers. The row of a writer that is only briefly disconnected is younger.
pub(crate) const FORGET: &str = "DELETE FROM writers
    WHERE seen < now() - interval '30 days' AND pg_try_advisory_xact_lock(node)";

pub(crate) const LOCK_NODE: &str = "SELECT pg_advisory_lock($1)";
pub(crate) const TRY_SITE: &str = "SELECT pg_try_advisory_lock($1)";
pub(crate) const SHARE_SITE: &str = "SELECT pg_advisory_lock_shared($1)";
pub(crate) const FREE_SITE: &str = "SELECT pg_advisory_unlock($1)";
pub(crate) const FREE_SHARED_SITE: &str = "SELECT pg_advisory_unlock_shared($1)";
/// The record formats that were written.
pub(crate) const WRITTEN: &str = "SELECT value FROM records WHERE partition = $1 AND key = $2";
pub(crate) const WRITE_FORMS: &str = "INSERT INTO records (partition, key, revision, value)
    VALUES ($1, $2, nextval('revisions') * $3::bigint, $4)
    ON CONFLICT (partition, key)
    DO UPDATE SET revision = excluded.revision, value = excluded.value";
pub(crate) const OWNER: &str = "SELECT owner FROM store";
pub(crate) const OWN: &str = "UPDATE store SET owner = $1";

pub(crate) const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
pub(crate) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub(crate) const COMMIT: &str = "COMMIT";
pub(crate) const ROLLBACK: &str = "ROLLBACK";

pub(crate) const GET: &str =
    "SELECT revision, value FROM records WHERE partition = $1 AND key = $2";
pub(crate) const GET_MANY: &str = "SELECT t.at, r.revision, r.value
    FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS t(partition, key, at)
    JOIN records r ON r.partition = t.partition AND r.key = t.key";
/// The first records of several ranges.
pub(crate) const SCAN_MANY: &str = "SELECT t.at, r.key, r.revision, r.value
    FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])
        WITH ORDINALITY AS t(partition, first, after, at)
    CROSS JOIN LATERAL (SELECT key, revision, value FROM records
        WHERE partition = t.partition AND key >= t.first AND key < t.after
        ORDER BY key LIMIT $4) r
    ORDER BY t.at, r.key";
pub(crate) const SCAN_FROM: &str = "SELECT key, revision, value FROM records
    WHERE partition = $1 AND key >= $2 ORDER BY key LIMIT $3";
pub(crate) const SCAN_RANGE: &str = "SELECT key, revision, value FROM records
    WHERE partition = $1 AND key >= $2 AND key < $4 ORDER BY key LIMIT $3";
/// The server returns the length of a long value without reading it.
pub(crate) const MEASURE_FROM: &str = "SELECT key, octet_length(value)::bigint FROM records
    WHERE partition = $1 AND key >= $2 ORDER BY key LIMIT $3";
pub(crate) const MEASURE_RANGE: &str = "SELECT key, octet_length(value)::bigint FROM records
    WHERE partition = $1 AND key >= $2 AND key < $4 ORDER BY key LIMIT $3";
pub(crate) const WALK: &str = "SELECT partition, key, revision, value FROM records
    WHERE (partition, key) > ($1, $2) ORDER BY partition, key LIMIT $3";
pub(crate) const SIZE: &str =
    "SELECT pg_total_relation_size('records') + pg_total_relation_size('writers')";
/// The number of rows by the table, and by its index.
pub(crate) const COUNT_BY_TABLE: &str =
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off;
     SET LOCAL enable_indexonlyscan = off";
pub(crate) const COUNT: &str = "SELECT count(*) FROM records";
