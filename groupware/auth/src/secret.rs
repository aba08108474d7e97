//! A secret shared by all servers over one store, from which they derive keys: each can verify what another has signed.

use groupware_runtime::random;
use groupware_store::{Batch, CommitError, Store};

const PARTITION: &str = "$server";
const KEY: &str = "secret";

/// Returns the key for a purpose, the same at every start of every server over this store. Blocks.
///
/// # Errors
/// If the secret can be neither read nor, for the first time, stored.
pub fn key(store: &Store, purpose: &str) -> Result<[u8; 32], CommitError> {
    loop {
        let record = store.read(|snapshot| snapshot.get(PARTITION, KEY.as_bytes()))?;
        if let Some(record) = record {
            return Ok(blake3::derive_key(purpose, &record.value));
        }
        let mut batch = Batch::new();
        let made = random::bytes::<32>().to_vec();
        batch
            .assert_absent(PARTITION, KEY)
            .put(PARTITION, KEY, made);
        match store.commit_blocking(batch) {
            // After a conflict, the secret is another server's.
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;

    use super::*;

    #[test]
    fn servers_over_one_store_have_the_same_keys() {
        let store = || Store::memory(StoreOptions::default()).unwrap();
        let (one, other) = (store(), store());
        let first = key(&one, "forms").unwrap();
        assert_eq!(key(&one, "forms").unwrap(), first);
        assert_ne!(key(&one, "other").unwrap(), first);
        assert_ne!(key(&other, "forms").unwrap(), first);
    }
}
