//! Rebuilds the records of a data folder without the space left by deletions.

use std::path::Path;

use groupware_content::ContentStore;
use groupware_store::Compacted;

use crate::BackupError;

/// Rebuilds the records file of a data folder. No server and no backup may use it meanwhile. `told` receives the number
/// of bytes written and the total.
///
/// # Errors
/// See [`BackupError`]; then the records are unchanged.
pub fn compact(data: &Path, told: impl Fn(u64, u64) + Sync) -> Result<Compacted, BackupError> {
    if !data.join(groupware_store::FILE_NAME).is_file() {
        return Err(BackupError::NoData(data.to_path_buf()));
    }
    // A backup has a hold on the content while it copies.
    let Some(_alone) = ContentStore::open(data)?.hold_alone()? else {
        return Err(BackupError::Busy(data.to_path_buf()));
    };
    Ok(groupware_store::compact(data, told)?)
}
