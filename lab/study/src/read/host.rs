//! Reads the settings of the machine of a system, or of a process of it.

use lab_language::host::{HostTemplate, KernelTemplate, twice};
use lab_language::machine;
use lab_language::settings::Settings;

use super::storage;
use crate::file::{At, Scalar, StorageFile, Table};

/// The settings of a machine, as written.
pub(super) struct Around<'a> {
    pub(super) kernel: &'a Table<At<Scalar>>,
    pub(super) cpus: Option<&'a At<Scalar>>,
    pub(super) storage: Option<&'a At<StorageFile>>,
    pub(super) on: Option<&'a At<Scalar>>,
}

/// Returns the settings around a system, or a process of it; `None` when a problem was noted.
pub(super) fn host(around: &Around<'_>, settings: &mut Settings<'_>) -> Option<HostTemplate> {
    let kernel = kernel(around.kernel, settings);
    let cpus = settings.optional("cpus", around.cpus);
    let on = settings.optional("on", around.on);
    let storage = storage::template(around.storage, settings);
    Some(HostTemplate {
        kernel: kernel?,
        cpus: cpus?,
        storage: storage?,
        on: on?,
    })
}

fn kernel(table: &Table<At<Scalar>>, settings: &mut Settings<'_>) -> Option<Vec<KernelTemplate>> {
    let mut made = Vec::new();
    for (name, value) in table.iter() {
        let path = machine::kernel_path(&name.value).map_err(|error| {
            let problem = name.span.text_problem("kernel", &name.value, &error);
            settings.problems.push(problem);
        });
        let value = settings.required(&format!("kernel {}", name.value), value);
        made.push(path.ok().zip(value).map(|(path, value)| KernelTemplate {
            name: name.value.clone(),
            path,
            value,
        }));
    }
    let made: Vec<KernelTemplate> = made.into_iter().collect::<Option<_>>()?;
    let names = made.iter().map(|k| (k.name.as_str(), k.path.as_str()));
    if let Some(again) = twice(names) {
        let mut keys = table.iter().map(|(name, _)| name).rev();
        if let Some(key) = keys.find(|key| key.value == again) {
            let message = format!("`{again}` is set twice");
            let problem = key.span.problem(message, "another key names the same file");
            settings.problems.push(problem.help("keep one of them"));
        }
        return None;
    }
    Some(made)
}
