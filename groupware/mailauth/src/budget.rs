//! How much a message may have the DNS asked.
//!
//! `mail-auth` looks into a cache of its user's before each question. Here that is where questions are counted,
//! and where those too many are told that there is no answer. What is remembered is the resolver's matter.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use mail_auth::{DnsError, DnssecStatus, Error, Parameters, RecordSet, ResolverCache, Txt};

/// What may still be asked.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u32,
    asked: AtomicU32,
}

/// What is asked about, under a budget.
pub(crate) type Bounded<'a, P> = Parameters<'a, P, Budget, Budget, Budget, Budget, Budget>;

impl Budget {
    pub(crate) const fn of(questions: u32) -> Self {
        Self {
            most: questions,
            asked: AtomicU32::new(0),
        }
    }

    /// Whether more was to be asked than may be.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.asked.load(Relaxed) > self.most
    }

    /// What is asked about, counted here.
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

/// An answer's kind, where there is none.
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
