//! The border of a turn: what the script returned becomes a [`Turn`], and an [`Outcome`] becomes a value.

use std::sync::Arc;

use rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Persistent, Result, Value};

use crate::api;
use crate::shared::Shared;
use crate::turn::{Outcome, Request, Turn};

/// Makes a turn of what the prelude returned: a number of microseconds, an operation, or null.
pub(super) fn turn<'js>(ctx: &Ctx<'js>, shared: &Shared, end: &Value<'js>) -> Result<Turn> {
    if let Some(micros) = end.as_number() {
        return Ok(Turn::Wait {
            micros: micros.max(0.0) as u64,
        });
    }
    let Some(op) = end.as_object() else {
        return Ok(Turn::Done { value: None });
    };
    let kind: rquickjs::String = op.get("kind")?;
    let payload: Value = op.get("payload")?;
    match kind.to_string()?.as_str() {
        "request" => {
            let mut request = api::request(ctx, shared, payload, site_of(op)?)?;
            api::hand_over(shared, std::slice::from_mut(&mut request));
            Ok(Turn::Request(Box::new(request)))
        }
        "batch" => {
            let site = site_of(op)?;
            let parts = array(ctx, payload)?;
            let requests = parts
                .iter()
                .map(|payload| api::request(ctx, shared, payload?, site));
            several(shared, requests.collect::<Result<_>>()?)
        }
        "requests" => {
            let ops = array(ctx, payload)?;
            let requests = ops.iter::<Object>().map(|op| {
                let op = op?;
                api::request(ctx, shared, op.get("payload")?, site_of(&op)?)
            });
            several(shared, requests.collect::<Result<_>>()?)
        }
        "done" => Ok(Turn::Done {
            value: json(ctx, payload)?,
        }),
        other => Err(Exception::throw_type(
            ctx,
            &format!("unknown operation '{other}'"),
        )),
    }
}

/// Returns true if what the prelude returned makes the user wait, so that an error of it can be thrown into the script.
pub(super) fn waits(end: &Value<'_>) -> bool {
    let kind = end.as_object().map(|op| op.get::<_, String>("kind"));
    matches!(kind, Some(Ok(kind)) if kind != "done")
}

fn site_of(op: &Object<'_>) -> Result<u32> {
    Ok(op.get::<_, Option<u32>>("site")?.unwrap_or(0))
}

fn several(shared: &Shared, mut requests: Vec<Request>) -> Result<Turn> {
    api::hand_over(shared, &mut requests);
    Ok(Turn::Batch(requests))
}

fn array<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Array<'js>> {
    let array = value.into_array();
    array.ok_or_else(|| Exception::throw_type(ctx, "an array of requests is expected"))
}

fn json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Option<serde_json::Value>> {
    let Some(text) = ctx.json_stringify(value)? else {
        return Ok(None);
    };
    Ok(serde_json::from_str(&text.to_string()?).ok())
}

/// Makes the value that the script gets of what the lab did.
pub(super) fn outcome<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    outcome: Outcome,
) -> Result<Value<'js>> {
    match outcome {
        Outcome::Waited => Ok(Value::new_undefined(ctx.clone())),
        Outcome::Answers(answers) => {
            let mut all = api::responses(ctx, shared, answers)?;
            match all.len() {
                1 => Ok(all.remove(0)),
                _ => all.into_js(ctx),
            }
        }
    }
}

/// The argument of a call: the value that `setup` returned, made once, and frozen.
pub(super) fn data<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    data: Option<&Arc<serde_json::Value>>,
) -> Result<Value<'js>> {
    let Some(data) = data else {
        return Ok(Value::new_undefined(ctx.clone()));
    };
    let mut engine = shared.engine.borrow_mut();
    let Some(engine) = engine.as_mut() else {
        return Ok(Value::new_undefined(ctx.clone()));
    };
    if let Some((kept, value)) = &engine.data
        && Arc::ptr_eq(kept, data)
    {
        return value.clone().restore(ctx);
    }
    let value = ctx.json_parse(data.to_string())?;
    let freeze: Function = ctx.globals().get("$$z")?;
    let value: Value = freeze.call((value,))?;
    engine.data = Some((Arc::clone(data), Persistent::save(ctx, value.clone())));
    Ok(value)
}
