//! Maps failures of the admin interface to answers.

use axum::response::{IntoResponse, Response};
use groupware_auth::AccountsError;
use groupware_calendar::CalendarError;
use groupware_fixtures::FillError;
use groupware_http::{ApiError, Fault};
use groupware_mail::MailError;
use groupware_people::AccountError;
use groupware_store::{CommitError, StoreError};

/// A failed request.
#[derive(Debug)]
pub(crate) struct AdminFailure(ApiError);

pub(crate) type Reply = Result<Response, AdminFailure>;

impl IntoResponse for AdminFailure {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<ApiError> for AdminFailure {
    #[track_caller]
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<CommitError> for AdminFailure {
    #[track_caller]
    fn from(error: CommitError) -> Self {
        Self(error.into())
    }
}

impl From<StoreError> for AdminFailure {
    #[track_caller]
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<AccountsError> for AdminFailure {
    #[track_caller]
    fn from(error: AccountsError) -> Self {
        let status = match &error {
            AccountsError::Decided(AccountError::Store(error)) => return error.clone().into(),
            AccountsError::Commit(error) => return error.clone().into(),
            AccountsError::Decided(
                AccountError::Unknown(_) | AccountError::UnknownAppPassword(_),
            ) => 404,
            AccountsError::Decided(AccountError::TooManyAppPasswords | AccountError::Taken(_)) => {
                409
            }
            AccountsError::Decided(AccountError::TooManyUsers) => 507,
            _ => 500,
        };
        let message = error.to_string();
        let mut letters = message.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let sentence: String = first.into_iter().chain(letters).chain(['.']).collect();
        let told = ApiError::with_status(status, sentence);
        Self(match status {
            500 => told.because(Fault::of(&error)),
            _ => told,
        })
    }
}

impl From<MailError> for AdminFailure {
    #[track_caller]
    fn from(error: MailError) -> Self {
        Self(match error {
            MailError::Refused { reason, message } => {
                ApiError::with_status(reason.status(), message)
            }
            // Names of records are for the administrator only, and are in no answer.
            MailError::Unreadable(error) => {
                ApiError::fault(500, "The mailbox can't be read.", &error)
            }
        })
    }
}

impl From<CalendarError> for AdminFailure {
    #[track_caller]
    fn from(error: CalendarError) -> Self {
        let status = error.status();
        Self(match error {
            CalendarError::Refused { message, .. } => ApiError::with_status(status, message),
            // Names of records are for the administrator only, and are in no answer.
            CalendarError::Unreadable(error) => {
                ApiError::fault(500, "The calendar can't be read.", &error)
            }
        })
    }
}

impl From<FillError> for AdminFailure {
    #[track_caller]
    fn from(error: FillError) -> Self {
        match error {
            FillError::NotEmpty(user) => {
                let message = format!("The inbox of {user} is not empty: reset it first.");
                Self(ApiError::with_status(409, message))
            }
            FillError::Mail(error) => error.into(),
            FillError::Commit(error) => error.into(),
        }
    }
}
