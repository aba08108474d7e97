//! The meaning of a stream's end for its request. Pure.

use ::h2::{Error, Reason};

use crate::exchange::ErrorClass;
use crate::tls;

/// The outcome of a request without a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The request was not sent: the connection had ended.
    Unsent(String),
    /// The server reports that it did not process the request: any method may be sent again.
    Unprocessed(String),
    /// The connection ended before one byte of a response.
    Nothing(String),
    /// Anything else.
    Failed(ErrorClass, String),
}

/// Classifies an error. `begun`: a part of the response was received; `greeted`: the server has sent its HTTP/2
/// settings.
pub(super) fn sort(error: &Error, begun: bool, greeted: bool) -> Lost {
    if !greeted && !error.is_remote() {
        return Lost::Failed(ErrorClass::Connect, stranger(error));
    }
    let refused = error.reason() == Some(Reason::REFUSED_STREAM);
    match error {
        error if error.is_remote() && (error.is_go_away() || refused) => {
            Lost::Unprocessed(match error.is_go_away() {
                true => format!("the server closes the connection: {error}"),
                false => "the server refused the stream (REFUSED_STREAM)".to_owned(),
            })
        }
        error if error.reason() == Some(Reason::HTTP_1_1_REQUIRED) => Lost::Failed(
            ErrorClass::Reset,
            "the server wants HTTP/1.1 for this (HTTP_1_1_REQUIRED): say `http: 1`".to_owned(),
        ),
        error if error.is_library() => {
            let text = format!("the answer breaks HTTP/2, or a limit: {error}");
            Lost::Failed(ErrorClass::Check, text)
        }
        error if error.is_remote() => {
            let text = format!("the server reset the stream: {error}");
            Lost::Failed(ErrorClass::Reset, text)
        }
        error => {
            let cause = error
                .get_io()
                .map_or_else(|| error.to_string(), tls::in_words);
            let text = format!("the connection ended before the answer was whole: {cause}");
            match begun {
                true => Lost::Failed(ErrorClass::Reset, text),
                false => Lost::Nothing(text),
            }
        }
    }
}

/// Describes a connection that ended without any HTTP/2 frame: the server doesn't support HTTP/2.
fn stranger(error: &Error) -> String {
    format!(
        "the server doesn't speak HTTP/2 there ({error}): say `http: 1`, or `https` where it speaks \
         HTTP/2 over TLS alone"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io() -> Error {
        // The only way from outside the library to an error without a reason.
        Error::from(Reason::CANCEL)
    }

    #[test]
    fn what_has_no_word_of_http_2_is_no_connection() {
        let lost = sort(&io(), false, false);
        assert!(
            matches!(&lost, Lost::Failed(ErrorClass::Connect, text) if text.contains("`http: 1`")),
            "{lost:?}"
        );
        assert!(matches!(sort(&io(), false, true), Lost::Nothing(_)));
        assert!(matches!(
            sort(&io(), true, true),
            Lost::Failed(ErrorClass::Reset, _)
        ));
    }
}
