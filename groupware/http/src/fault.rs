//! What went wrong on the server's side while a request was answered. It travels with the response as
//! far as the gate, which writes it to the log; whoever asked is not told.

use std::error::Error;
use std::panic::Location;
use std::sync::Arc;

use axum::response::Response;

/// Longest chain of causes that is kept, in bytes: some causes quote what they were given.
const MOST_BYTES: usize = 2048;

/// A fault of the server, for its log.
#[derive(Debug, Clone)]
pub struct Fault {
    causes: Arc<str>,
    at: &'static Location<'static>,
}

impl Fault {
    /// A fault that this error tells of, with all its causes. Where the function that is called by is
    /// marked `#[track_caller]`, the place is its caller's.
    #[track_caller]
    pub fn of(error: &dyn Error) -> Self {
        Self::said(groupware_text::chain(error))
    }

    /// A fault in words.
    #[track_caller]
    pub fn said(words: impl Into<String>) -> Self {
        let mut words = words.into();
        if let Some((end, _)) = words.char_indices().find(|(at, _)| *at >= MOST_BYTES) {
            words.truncate(end);
            words.push('…');
        }
        Self {
            causes: words.into(),
            at: Location::caller(),
        }
    }

    /// Has a response carry it to the gate.
    #[must_use]
    pub fn on(self, mut response: Response) -> Response {
        response.extensions_mut().insert(self);
        response
    }

    /// The error and its causes, with colons between them.
    pub fn causes(&self) -> &str {
        &self.causes
    }

    /// Where in the program it was found.
    pub fn at(&self) -> &'static Location<'static> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("cannot write")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn all_causes_are_told_and_the_place() {
        let fault = Fault::of(&Outer(io::Error::from_raw_os_error(5)));
        assert_eq!(
            fault.causes(),
            "cannot write: Input/output error (os error 5)"
        );
        assert!(fault.at().file().ends_with("fault.rs"));
    }

    #[test]
    fn long_causes_are_cut() {
        let fault = Fault::said("é".repeat(MOST_BYTES));
        assert!(fault.causes().len() <= MOST_BYTES + "é…".len());
    }

    #[derive(Debug)]
    struct Failure(Fault);

    impl From<Outer> for Failure {
        #[track_caller]
        fn from(error: Outer) -> Self {
            Self(Fault::of(&error))
        }
    }

    /// The place in the log is where a front passed the error on, not where it was converted.
    #[test]
    fn the_place_is_that_of_the_question_mark() {
        let failed = || -> Result<(), Failure> {
            Err(Outer(io::Error::from_raw_os_error(5)))?;
            Ok(())
        };
        let (line, Err(Failure(fault))) = (line!() - 3, failed()) else {
            panic!("it fails")
        };
        assert_eq!(fault.at().line(), line);
    }
}
