//! What is taken of a log, and what becomes of it.

/// What to take of a log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The name of the files, without their ends.
    pub name: String,
    /// What the log is called to people.
    pub shown: String,
    /// The name of a format, or the format itself; found out where none is given.
    pub format: Option<String>,
    /// Which member of a line of JSON is what.
    pub fields: Vec<(String, String)>,
    /// Take requests to these hosts alone; all where there are none.
    pub hosts: Vec<String>,
    /// Methods that are taken.
    pub methods: Vec<String>,
    /// Where the replay goes.
    pub url: String,
    /// Expect the very status that was recorded, in the place of its class.
    pub exact_status: bool,
    /// Spreads stamps of whole seconds.
    pub seed: u64,
    /// Goes into the hash of a client's address, so that nobody can find the address by trying all.
    pub salt: [u8; 16],
}
