//! How a study's mailboxes are filled before its trials: `POST /admin/mail/fill`.
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
//! Sizes are dealt out in turn: of each run of neighbouring messages, each size has its share to
//! within one. `first` is the place of the first named user among all of the study's users, so
//! that calls with some of them each deal on. Only `users` and `messages` are needed.
//!
//! The answer is `{ "users", "messages", "bytes" }`. A call that ends early leaves some mailboxes
//! filled, the last of them in part: reset them before the next try.

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use groupware_mail::{Fill, Folder, SizeClass, counts};
use groupware_store::StoreError;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::decide::read;
use crate::AppState;
use crate::admin::{Admin, json, to_the_end, user_name};
use crate::error::ApiError;

/// Most users in one call.
const USERS_AT_ONCE: usize = 20_000;
/// Most messages of one mailbox.
const MESSAGES: u32 = 1_000_000;
/// Most sizes of a profile.
const CLASSES: usize = 100;
/// About so much is written in one batch, and so many messages.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_MESSAGES: usize = 2000;
/// 2026-01-05T08:00:00Z, a Monday.
const NEWEST_S: i64 = 1_767_600_000;

pub(crate) fn routes() -> Router<AppState> {
    Router::new().route("/admin/mail/fill", post(fill))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
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

async fn fill(State(state): State<AppState>, _: Admin, body: Bytes) -> Result<Response, ApiError> {
    let asked: Asked = json(&body)?;
    let (users, first) = (users(&state, &asked)?, asked.first);
    let plan = plan(asked)?;
    to_the_end(async move {
        let cycle = plan.cycle();
        let mut filled = Filled::default();
        for (place, user) in users.iter().enumerate() {
            let number = first.saturating_add(place as u64);
            let start = number.wrapping_mul(u64::from(plan.messages)) % 1000;
            let start = usize::try_from(start).unwrap_or_default();
            fill_one(&state, &plan, user, (&cycle, start)).await?;
            let held = read(&state, |snapshot| counts(snapshot, user, Folder::Inbox))?;
            filled.users += 1;
            filled.messages += held.messages;
            filled.bytes += held.bytes;
        }
        Ok(Json(filled).into_response())
    })
    .await
}

/// The mailboxes of the users, who must be registered.
fn users(state: &AppState, asked: &Asked) -> Result<Vec<String>, ApiError> {
    if asked.users.len() > USERS_AT_ONCE || asked.messages > MESSAGES {
        return Err(ApiError::bad_request(format!(
            "Fill at most {USERS_AT_ONCE} mailboxes with at most {MESSAGES} messages in one call."
        )));
    }
    let mailbox = |name: &String| {
        let name = user_name(name)?;
        match state.directory().find(name.key()) {
            Some(account) => Ok(account.name.key().to_string()),
            None => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                format!("There is no user {}.", name.spelling()),
            )),
        }
    };
    asked.users.iter().map(mailbox).collect()
}

fn plan(asked: Asked) -> Result<Fill, ApiError> {
    let classes = match asked.profile {
        Profile::Named(name) if name == REFERENCE => SizeClass::REFERENCE.to_vec(),
        Profile::Named(_) => {
            let message = "The profile is \"reference\" or a list of sizes.";
            return Err(ApiError::bad_request(message));
        }
        Profile::Classes(classes) if classes.len() > CLASSES => {
            return Err(ApiError::bad_request("A profile has at most 100 sizes."));
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

async fn fill_one(
    state: &AppState,
    plan: &Fill,
    user: &str,
    (cycle, start): (&[SizeClass], usize),
) -> Result<(), ApiError> {
    let there = read(state, |snapshot| counts(snapshot, user, Folder::Inbox))?;
    if there.messages > 0 {
        let message = format!("The inbox of {user} is not empty: reset it first.");
        return Err(ApiError::new(StatusCode::CONFLICT, message));
    }
    let class = |number: u32| cycle[(start + number as usize) % cycle.len()];
    let mut number = 0;
    while number < plan.messages {
        let (from, mut bytes) = (number, 0);
        while number < plan.messages && bytes < BATCH_BYTES {
            let next = class(number);
            bytes += next.text_bytes + next.attachment_bytes + 1024;
            number += 1;
            if (number - from) as usize >= BATCH_MESSAGES {
                break;
            }
        }
        let batch = state.store().read(|snapshot| {
            let numbers = (from..number).map(|number| (number, class(number)));
            Ok::<_, StoreError>(plan.batch(snapshot, state, user, numbers))
        })??;
        state.store().commit(batch).await?;
    }
    Ok(())
}
