//! Limits the DNS queries for a message.
//!
//! `mail-auth` reads a cache supplied by its user before each query. This cache counts the queries and answers those
//! above the limit with no data. The resolver has the actual cache.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use mail_auth::{DnsError, DnssecStatus, Error, Parameters, RecordSet, ResolverCache, Txt};

/// The remaining queries.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u32,
    asked: AtomicU32,
}

/// Parameters of a check with a budget of queries.
pub(crate) type Bounded<'a, P> = Parameters<'a, P, Budget, Budget, Budget, Budget, Budget>;

impl Budget {
    pub(crate) const fn of(questions: u32) -> Self {
        Self {
            most: questions,
            asked: AtomicU32::new(0),
        }
    }

    /// Returns true if a check needed more queries than allowed.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.asked.load(Relaxed) > self.most
    }

    /// Attaches this budget to the parameters of a check.
    pub(crate) fn bound<P>(&self, params: P) -> Bounded<'_, P> {
        Parameters {
            params,
            cache_txt: Some(self),
            cache_mx: Some(self),
            cache_ptr: Some(self),
            cache_ipv4: Some(self),
            cache_ipv6: Some(self),
        }
    }
}

/// The answer to a query above the limit.
trait Unanswered {
    fn unanswered() -> Self;
}

impl Unanswered for Txt {
    fn unanswered() -> Self {
        let words = "the message had too much asked";
        Self::Error(Error::Dns(DnsError::Resolver(words.to_owned())))
    }
}

impl<T> Unanswered for RecordSet<T>
where
    Arc<[T]>: FromIterator<T>,
{
    fn unanswered() -> Self {
        Self {
            rrset: std::iter::empty().collect(),
            dnssec_status: DnssecStatus::Indeterminate,
        }
    }
}

impl<K, V: Unanswered> ResolverCache<K, V> for Budget {
    fn get<Q>(&self, _: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let before = self.asked.fetch_add(1, Relaxed);
        (before >= self.most).then(V::unanswered)
    }

    fn remove<Q>(&self, _: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        None
    }

    fn insert(&self, _: K, _: V, _: Instant) {}
}
