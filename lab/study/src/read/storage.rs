//! The location of a system's data: its settings as templates, each with its place.

use lab_language::settings::Settings;
use lab_language::{FilesystemTemplate, StorageTemplate};

use crate::file::{At, StorageFile};

/// Returns the storage settings of a system for which they are optional.
pub(super) fn template(
    file: Option<&At<StorageFile>>,
    settings: &mut Settings<'_>,
) -> Option<StorageTemplate> {
    let (folder, written) = match file.map(|at| &at.value) {
        None => (None, None),
        Some(StorageFile::Folder(folder)) => (Some(folder), None),
        Some(StorageFile::Filesystem(written)) => (None, Some(written)),
    };
    let Some(written) = written else {
        return Some(StorageTemplate {
            folder: settings.optional("storage", folder)?,
            filesystem: None,
        });
    };
    let kind = settings.required("filesystem", &written.filesystem);
    let size = settings.required("size", &written.size);
    let folder = settings.optional("folder", written.folder.as_ref());
    let options = settings.optional("options", written.options.as_ref());
    let arguments = (1..).zip(written.mkfs.iter().flat_map(|list| &list.value));
    let mkfs: Vec<_> = arguments
        .map(|(n, at)| settings.required(&format!("mkfs {n}"), at))
        .collect();
    Some(StorageTemplate {
        folder: folder?,
        filesystem: Some(FilesystemTemplate {
            kind: kind?,
            size: size?,
            mkfs: mkfs.into_iter().collect::<Option<_>>()?,
            options: options?,
        }),
    })
}
