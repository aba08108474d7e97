//! Fills a study's mailboxes before its trials: `POST /admin/mail/fill`.
//!
//! ```json
//! { "users": ["user00001", "user00002"],
//!   "messages": 100,
//!   "seed": 1,
//!   "profile": "reference",
//!   "first": 0,
//!   "newest": 1767600000 }
//! ```
//! Each named user's inbox, which must be empty, gets `messages` messages, all alike for the same
//! `seed`, a minute apart, the newest at `newest` (seconds since 1970). `profile` is `"reference"`
//! or a list of `{ "text_bytes", "attachment_bytes", "permille" }` whose shares add up to 1000.
//! Sizes are assigned in turn: in each run of neighbouring messages, each size has its share to
//! within one. `first` is the index of the first named user among all of the study's users, so that
//! several calls continue one assignment. Only `users` and `messages` are required.
//!
//! The answer is `{ "users", "messages", "bytes" }`. A call that ends early leaves some mailboxes
//! filled, the last of them in part: reset them before the next try.

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use groupware_fixtures::{Fill, SizeClass, fill_mailbox};
use groupware_http::{Admin, ApiError};
use groupware_runtime::Caller;
use groupware_service::Service;
use serde::{Deserialize, Serialize};

use crate::failure::{AdminFailure, Reply};
use crate::front::AdminFront;
use crate::request::{json, to_the_end, user_name};

/// Most users of one call.
const USERS_AT_ONCE: usize = 20_000;
/// Most messages of one mailbox.
const MESSAGES: u32 = 1_000_000;
/// Most sizes of a profile.
const CLASSES: usize = 100;
/// 2026-01-05T08:00:00Z, a Monday.
const NEWEST_S: i64 = 1_767_600_000;

pub(crate) fn routes() -> Router<AdminFront> {
    Router::new().route("/admin/mail/fill", post(fill))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FillRequest {
    users: Vec<String>,
    messages: u32,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    profile: Profile,
    #[serde(default)]
    first: u64,
    newest: Option<i64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Profile {
    Named(String),
    Classes(Vec<Class>),
}

impl Default for Profile {
    fn default() -> Self {
        Self::Named(REFERENCE.to_owned())
    }
}

const REFERENCE: &str = "reference";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    text_bytes: usize,
    #[serde(default)]
    attachment_bytes: usize,
    permille: u32,
}

#[derive(Serialize, Default)]
struct Filled {
    users: usize,
    messages: u64,
    bytes: u64,
}

async fn fill(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    body: Bytes,
) -> Reply {
    let asked: FillRequest = json(&body)?;
    let (users, first) = (users(&front.service, &asked)?, asked.first);
    let plan = plan(asked)?;
    to_the_end(&caller, async move {
        let (service, mut filled) = (&front.service, Filled::default());
        for (place, user) in users.iter().enumerate() {
            let held = fill_mailbox(service, &plan, user, first.saturating_add(place as u64));
            let held = held.await?;
            filled.users += 1;
            filled.messages += held.messages;
            filled.bytes += held.bytes;
        }
        Ok(Json(filled).into_response())
    })
    .await
}

/// Returns the mailboxes of the users, who must be registered.
fn users(service: &Service, asked: &FillRequest) -> Result<Vec<String>, AdminFailure> {
    if asked.users.len() > USERS_AT_ONCE || asked.messages > MESSAGES {
        let message = format!(
            "Fill at most {USERS_AT_ONCE} mailboxes with at most {MESSAGES} messages in one call."
        );
        return Err(ApiError::bad_request(message).into());
    }
    let mailbox = |name: &String| {
        let name = user_name(name)?;
        match service.auth.find(name.key())? {
            Some(account) => Ok(account.name.key().to_string()),
            None => {
                let message = format!("There is no user {}.", name.spelling());
                Err(ApiError::with_status(404, message).into())
            }
        }
    };
    asked.users.iter().map(mailbox).collect()
}

fn plan(asked: FillRequest) -> Result<Fill, AdminFailure> {
    let classes = match asked.profile {
        Profile::Named(name) if name == REFERENCE => SizeClass::REFERENCE.to_vec(),
        Profile::Named(_) => {
            let message = "The profile is \"reference\" or a list of sizes.";
            return Err(ApiError::bad_request(message).into());
        }
        Profile::Classes(classes) if classes.len() > CLASSES => {
            return Err(ApiError::bad_request("A profile has at most 100 sizes.").into());
        }
        Profile::Classes(classes) => classes
            .into_iter()
            .map(|class| SizeClass {
                text_bytes: class.text_bytes,
                attachment_bytes: class.attachment_bytes,
                permille: class.permille,
            })
            .collect(),
    };
    let plan = Fill {
        classes,
        seed: asked.seed,
        messages: asked.messages,
        newest_s: asked.newest.unwrap_or(NEWEST_S),
    };
    plan.check()?;
    Ok(plan)
}
