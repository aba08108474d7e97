//! A folder of runs as pages: the list of them, and the report of each. They are generated on demand.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use lab_report::render::pieces::policy;

use super::answer::{HTML, TEXT, admitted, guarded, of};
use super::gate::Token;

/// Generates the pages of a folder of runs.
pub trait Reports: Send {
    /// The list of runs, with links to each by `run/NAME`.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn index(&self) -> Result<String, String>;

    /// The report of the run `name` in the list; `None` if there is none.
    ///
    /// # Errors
    /// Why it can't be made, in words.
    fn report(&self, name: &str) -> Result<Option<String>, String>;
}

struct Served {
    token: Token,
    pages: Mutex<Box<dyn Reports>>,
}

pub(super) fn router(token: Token, pages: Box<dyn Reports>) -> Router {
    let pages = Mutex::new(pages);
    Router::new()
        .fallback(answer)
        .with_state(Arc::new(Served { token, pages }))
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let response = match admitted(&served.token, &request) {
        Ok(rest) => page(&served, request.method(), rest).await,
        Err(refused) => *refused,
    };
    // A report is a file that contains its style and its script.
    guarded(response, policy())
}

async fn page(served: &Arc<Served>, method: &Method, rest: String) -> Response {
    if method != Method::GET {
        return of(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "pages are read\n".to_owned(),
        );
    }
    let served = Arc::clone(served);
    let made = tokio::task::spawn_blocking(move || {
        let pages = served.pages.lock().unwrap_or_else(PoisonError::into_inner);
        match rest.strip_prefix("run/") {
            Some(name) => pages.report(name),
            None if rest.is_empty() => pages.index().map(Some),
            None => Ok(None),
        }
    });
    match made.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(Some(page)) => of(StatusCode::OK, HTML, page),
        Ok(None) => of(StatusCode::NOT_FOUND, TEXT, "no such page\n".to_owned()),
        Err(why) => of(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{why}\n")),
    }
}
