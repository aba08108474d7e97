//! A fault of the server during a request. The response carries it to the gate, which writes it to
//! the log; the client doesn't see it.

use std::error::Error;
use std::panic::Location;
use std::sync::Arc;

use axum::response::Response;
use groupware_store::{CommitError, StoreError};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

/// Longest recorded chain of causes, in bytes: some causes quote their input.
const MOST_BYTES: usize = 2048;
/// When clients may retry after the store was unavailable, in seconds.
pub(crate) const RETRY_AFTER_S: u32 = 2;

/// A fault of the server, for its log.
#[derive(Debug, Clone)]
pub struct Fault {
    causes: Arc<str>,
    /// The fault may pass soon: the store can't be reached.
    is_passing: bool,
    at: &'static Location<'static>,
}

impl Fault {
    /// Records an error with all its causes. In a function marked `#[track_caller]`, the place is
    /// that of its caller.
    #[track_caller]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        Self {
            is_passing: is_passing(error),
            ..Self::with_message(groupware_text::chain(error))
        }
    }

    /// Records a fault in words.
    #[track_caller]
    pub fn with_message(words: impl Into<String>) -> Self {
        let mut words = words.into();
        if let Some((end, _)) = words.char_indices().find(|(at, _)| *at >= MOST_BYTES) {
            words.truncate(end);
            words.push('…');
        }
        Self {
            causes: words.into(),
            is_passing: false,
            at: Location::caller(),
        }
    }

    /// Attaches the fault to a response, for the gate. A 500 for a passing fault becomes a 503 with
    /// a retry time.
    #[must_use]
    pub fn on(self, mut response: Response) -> Response {
        let told = [
            StatusCode::INTERNAL_SERVER_ERROR,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if self.is_passing && told.contains(&response.status()) {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response.extensions_mut().insert(self);
        response
    }

    /// Returns true if the fault may pass soon.
    pub fn is_passing(&self) -> bool {
        self.is_passing
    }

    /// The error and its causes, with colons between them.
    pub fn causes(&self) -> &str {
        &self.causes
    }

    /// The place in the program.
    pub fn at(&self) -> &'static Location<'static> {
        self.at
    }
}

fn is_passing(error: &(dyn Error + 'static)) -> bool {
    let mut last = Some(error);
    while let Some(error) = last {
        let (store, commit) = (
            error.downcast_ref::<StoreError>(),
            error.downcast_ref::<CommitError>(),
        );
        if store.is_some_and(StoreError::is_passing) || commit.is_some_and(CommitError::is_passing)
        {
            return true;
        }
        last = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::response::IntoResponse;

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
    fn what_may_be_over_in_a_moment_is_told_so() {
        let away = || StoreError::Away(Arc::new(io::Error::from(io::ErrorKind::TimedOut)));
        let broken = || (StatusCode::INTERNAL_SERVER_ERROR, "").into_response();
        let check = |error: &(dyn Error + 'static), expected: u16| {
            let response = Fault::of(error).on(broken());
            let is_later = response.headers().contains_key(RETRY_AFTER);
            assert_eq!(
                (response.status().as_u16(), is_later),
                (expected, expected == 503)
            );
        };
        check(&away(), 503);
        check(&groupware_store::ReadError::from(away()), 503);
        check(&CommitError::Store(away()), 503);
        check(&CommitError::Unknown(away()), 503);
        check(&CommitError::Full, 500);
        check(&Outer(io::Error::from_raw_os_error(5)), 500);
        let full = (StatusCode::INSUFFICIENT_STORAGE, "").into_response();
        assert_eq!(Fault::of(&away()).on(full).status(), 507);
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
        let fault = Fault::with_message("é".repeat(MOST_BYTES));
        assert!(fault.causes().len() <= MOST_BYTES + "é…".len());
    }

    #[derive(Debug)]
    struct TestFault(Fault);

    impl From<Outer> for TestFault {
        #[track_caller]
        fn from(error: Outer) -> Self {
            Self(Fault::of(&error))
        }
    }

    /// The log names the place where a front returned the error, not where it was converted.
    #[test]
    fn the_place_is_that_of_the_question_mark() {
        let failed = || -> Result<(), TestFault> {
            Err(Outer(io::Error::from_raw_os_error(5)))?;
            Ok(())
        };
        let (line, Err(TestFault(fault))) = (line!() - 3, failed()) else {
            panic!("it fails")
        };
        assert_eq!(fault.at().line(), line);
    }
}
