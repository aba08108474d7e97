//! The files of a script, what is wrong with them, and the places that call the lab.

/// A file that a script consists of or opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path relative to the folder of the entry, with `/`; it may begin with `../`.
    pub name: String,
    /// The content.
    pub text: Vec<u8>,
}

/// Reads the files of a script.
pub trait Files {
    /// The content of a file, named relative to the folder of the entry.
    ///
    /// # Errors
    ///
    /// A sentence if it can't be read, or is outside the folders that may be read.
    fn read(&self, name: &str) -> Result<Vec<u8>, String>;
}

/// Files that are in memory, such as those of a script that was sent to another machine.
#[derive(Debug, Clone, Copy)]
pub struct Bundle<'a>(pub &'a [Source]);

impl Files for Bundle<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|source| source.name == name);
        found
            .map(|source| source.text.clone())
            .ok_or_else(|| "the file is not among those of the script".to_owned())
    }
}

/// A problem of a script that prevents it from being loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct LoadError {
    /// The file, as in [`Source::name`].
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to do; empty if there is nothing more to say.
    pub help: String,
}

/// A place in a script that calls the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The file, as in [`Source::name`].
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What is called.
    pub kind: SiteKind,
    /// A name for reports: `GET /items/{id}` of a request, the text of a group.
    pub name: String,
    /// The names of the groups around the call in the same function, outermost first.
    pub group: Vec<String>,
}

/// What a call site calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// The place of all calls whose place isn't known: the first of [`crate::Converted::sites`].
    Unknown,
    /// A request of HTTP.
    Request,
    /// Several requests at once.
    Batch,
    /// A check.
    Check,
    /// A group.
    Group,
    /// A wait.
    Sleep,
}

/// What a script may read or set, by the names in its syntax tree. A false value is certain unless the script composes
/// the name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mentions {
    /// `http.cookieJar()` or `new http.CookieJar()`.
    pub cookie_jars: bool,
    /// `Response.request`.
    pub sent_requests: bool,
    /// `params.responseType`.
    pub response_types: bool,
}

/// The modules that scripts can import besides their own files.
pub trait Api {
    /// Returns the module that an import names, or `None` if there is none.
    fn resolve(&self, specifier: &str) -> Option<&'static str>;

    /// Returns why an import is refused and what to do; `None` if it isn't known.
    fn refused(&self, specifier: &str) -> Option<(String, &'static str)>;
}
