//! Options for the import of a log.

/// Options for the import of a log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The name of the files, without extensions.
    pub name: String,
    /// The displayed name of the log.
    pub shown: String,
    /// The name of a format, or the format itself; detected by default.
    pub format: Option<String>,
    /// The member of a line of JSON for each field.
    pub fields: Vec<(String, String)>,
    /// Only imports requests to these hosts; all if empty.
    pub hosts: Vec<String>,
    /// Imported methods.
    pub methods: Vec<String>,
    /// The target of the replay.
    pub url: String,
    /// Expects the exact recorded status, instead of its class.
    pub exact_status: bool,
    /// Spreads times of whole seconds.
    pub seed: u64,
    /// Salt of the hashes of client addresses, so that they can't be found by trying all addresses.
    pub salt: [u8; 16],
}
