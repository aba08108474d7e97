//! The records of a data folder made anew, without the room that deletions have left.

use std::path::Path;

use groupware_content::ContentStore;
use groupware_store::Compacted;

use crate::BackupError;

/// Makes the file of the records in a data folder anew. No server and no backup may use it meanwhile. `told`
/// hears how many bytes of how many are written.
///
/// # Errors
/// See [`BackupError`]; then the records are as they were.
pub fn compact(data: &Path, told: impl Fn(u64, u64) + Sync) -> Result<Compacted, BackupError> {
    if !data.join(groupware_store::FILE_NAME).is_file() {
        return Err(BackupError::NoData(data.to_path_buf()));
    }
    // A backup holds the content while it copies.
    let Some(_alone) = ContentStore::open(data)?.hold_alone()? else {
        return Err(BackupError::Busy(data.to_path_buf()));
    };
    Ok(groupware_store::compact(data, told)?)
}
