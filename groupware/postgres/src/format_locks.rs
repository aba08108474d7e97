//! Compatibility of concurrent servers: each session holds a lock for the record formats that its
//! server can't read. A server that is going to write such a format records that in the store
//! first, and can't while any session holds the lock; a later server finds the record.

use std::sync::Arc;

use groupware_store::{
    FORMS_KEY, FORMS_PARTITION, Forms, GROUP_BATCHES, StoreError, forms_bytes, forms_number,
};

use crate::address::Database;
use crate::error::{MessageError, OpenError, kind};
use crate::group::hash;
use crate::session::Session;
use crate::sql;

/// The record formats that a server reads and writes, and their locks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FormatLocks {
    forms: Forms,
    /// The base of the lock numbers of this store.
    store: u64,
}

impl FormatLocks {
    pub(crate) fn new(schema: &str, forms: Forms) -> Self {
        Self {
            forms,
            store: hash(format!("plimsoll forms {schema}").as_bytes()),
        }
    }

    /// The lock of the servers that don't read the format of this number.
    fn lock_of(self, number: u32) -> i64 {
        self.store.wrapping_add(u64::from(number)).cast_signed()
    }

    /// Declares the formats that this server can't read for the life of the session; checks that none was written.
    pub(crate) async fn share(self, session: &Session) -> Result<(), StoreError> {
        let lock = self.lock_of(self.forms.reads.saturating_add(1));
        let shared = session.client.execute(sql::SHARE_SITE, &[&lock]).await;
        shared.map_err(kind)?;
        if written(session).await? > self.forms.reads {
            let words = "a later version has written records in forms that this one doesn't read";
            return Err(StoreError::Database(Arc::new(MessageError(
                words.to_owned(),
            ))));
        }
        Ok(())
    }

    /// Checks that this server reads all formats that were written.
    pub(crate) async fn read_by(
        self,
        session: &Session,
        database: &Database,
    ) -> Result<(), OpenError> {
        let at = || database.to_string();
        let found = written(session).await;
        let found = found.map_err(|source| OpenError::Away { at: at(), source })?;
        let known = self.forms.reads;
        match found <= known {
            true => Ok(()),
            false => Err(OpenError::NewerForms {
                at: at(),
                found,
                known,
            }),
        }
    }

    /// Records the formats that this server is going to write; false while a server is connected that can't read them.
    pub(crate) async fn raise(self, session: &Session) -> Result<bool, StoreError> {
        let client = &session.client;
        let found = written(session).await?;
        let (mut held, mut is_free) = (Vec::new(), true);
        for number in found.saturating_add(1)..=self.forms.writes {
            let lock = self.lock_of(number);
            let tried = client.query_one(sql::TRY_SITE, &[&lock]).await;
            is_free = tried.map_err(kind)?.get(0);
            if !is_free {
                break;
            }
            held.push(lock);
        }
        if is_free && !held.is_empty() {
            session.warned();
            let (partition, value) = (FORMS_PARTITION.as_bytes(), forms_bytes(self.forms.writes));
            let batches = GROUP_BATCHES as i64;
            let noted = client
                .execute(
                    sql::WRITE_FORMS,
                    &[&partition, &FORMS_KEY, &batches, &value],
                )
                .await;
            noted.map_err(kind)?;
            // The record must be durable before any data in the new format.
            if let Some(warning) = session.warned() {
                return Err(warning);
            }
        }
        for lock in held {
            let freed = client.execute(sql::FREE_SITE, &[&lock]).await;
            freed.map_err(kind)?;
        }
        Ok(is_free)
    }
}

/// Returns the highest format number recorded in the store.
async fn written(session: &Session) -> Result<u32, StoreError> {
    let partition = FORMS_PARTITION.as_bytes();
    let row = session
        .client
        .query_opt(sql::WRITTEN, &[&partition, &FORMS_KEY])
        .await;
    let Some(row) = row.map_err(kind)? else {
        return Ok(0);
    };
    let value: &[u8] = row.try_get(0).map_err(kind)?;
    let number = forms_number(value);
    number.map_err(|error| StoreError::Database(Arc::new(MessageError(error.to_string()))))
}
