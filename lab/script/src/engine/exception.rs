//! Exceptions of the engine as errors with places in the script's files.

use rquickjs::{Coerced, Ctx, Error, Object, Value};

use super::budget::Budget;
use crate::shared::Shared;
use crate::thrown::{Frame, Thrown, ThrownKind};

/// The most frames of a stack.
const FRAMES: usize = 24;
/// The most bytes of a message.
const MESSAGE: usize = 2_000;
/// What the names of the script's modules begin with in the engine.
pub(crate) const MODULE: &str = "script:";
/// The property of an error of the host: the call site whose operation failed.
const SITE: &str = "$place";

/// Makes an error of what a part of a turn threw.
pub(super) fn thrown(ctx: &Ctx<'_>, shared: &Shared, error: &Error) -> Thrown {
    let value = if error.is_exception() {
        ctx.catch()
    } else {
        Value::new_undefined(ctx.clone())
    };
    let mut thrown = match value.as_object() {
        Some(object) => of_object(shared, object),
        None if error.is_exception() => plain(text(&value)),
        None => plain(error.to_string()),
    };
    if shared.budget.was_over() {
        thrown.kind = ThrownKind::Turn;
        thrown.message = shared.budget.message();
    }
    thrown
}

/// Makes an error of a turn that was ended in a job of a promise.
pub(super) fn over(budget: &Budget) -> Thrown {
    Thrown {
        kind: ThrownKind::Turn,
        ..plain(budget.message())
    }
}

/// Makes an error of the reason of a rejected promise.
pub(super) fn rejected(shared: &Shared, reason: &Value<'_>) -> Thrown {
    match reason.as_object() {
        Some(object) => of_object(shared, object),
        None => plain(text(reason)),
    }
}

fn plain(message: String) -> Thrown {
    Thrown {
        kind: ThrownKind::Error,
        message: short(message),
        stack: Vec::new(),
    }
}

fn text(value: &Value<'_>) -> String {
    match value.get::<Coerced<String>>() {
        Ok(text) => text.0,
        Err(_) => {
            value.ctx().catch();
            "a value that can't be shown was thrown".to_owned()
        }
    }
}

fn of_object(shared: &Shared, object: &Object<'_>) -> Thrown {
    let read = |name: &str| -> Option<String> {
        let value: Value = object.get(name).ok()?;
        (!value.is_undefined() && !value.is_null()).then(|| text(&value))
    };
    let name = read("name").unwrap_or_default();
    let own = read("message").filter(|message| !message.is_empty());
    let message = match own.clone() {
        Some(message) if name.is_empty() || name == "Error" || name == "InternalError" => message,
        Some(message) => format!("{name}: {message}"),
        None if name.is_empty() => as_json(object),
        None => name.clone(),
    };
    let mut thrown = plain(if name == "TypeError" {
        explained(message)
    } else {
        message
    });
    thrown.kind = kind(&name, own.as_deref().unwrap_or_default());
    thrown.stack = read("stack")
        .map(|stack| frames(shared, &stack))
        .unwrap_or_default();
    let site = |name: &str| object.get::<_, Option<u32>>(name).ok().flatten();
    if let Some(site) = site("$site") {
        thrown.kind = ThrownKind::NotHandedOver;
        thrown.stack.splice(0..0, frame_of(shared, site));
    } else if thrown.stack.is_empty() {
        thrown
            .stack
            .extend(site(SITE).and_then(|site| frame_of(shared, site)));
    }
    thrown
}

/// The place of a call site, unless it is unknown.
fn frame_of(shared: &Shared, site: u32) -> Option<Frame> {
    let site = shared.program.sites().get(site as usize)?;
    (site.line > 0).then(|| Frame {
        function: String::new(),
        file: site.file.clone(),
        line: site.line,
    })
}

/// Says what to do about a write to what all users share.
fn explained(message: String) -> String {
    let shared = [
        "is read-only",
        "is not extensible",
        "no setter for property",
        "is not configurable",
    ];
    if shared.iter().any(|end| message.contains(end)) {
        return format!(
            "{message}. If it is an object of a constant at module level, it is shared by all users: change a copy, or \
             declare it with let"
        );
    }
    message
}

fn as_json(object: &Object<'_>) -> String {
    match object.ctx().json_stringify(object.clone()) {
        Ok(Some(json)) => json.to_string().unwrap_or_default(),
        _ => {
            object.ctx().catch();
            text(object.as_value())
        }
    }
}

/// The kind of an error by the name and message that the engine gives it. Texts of a server never match.
fn kind(name: &str, message: &str) -> ThrownKind {
    match (name, message) {
        ("InternalError", "out of memory") => ThrownKind::Memory,
        ("RangeError" | "InternalError", "Maximum call stack size exceeded") => ThrownKind::Stack,
        _ => ThrownKind::Error,
    }
}

fn short(mut message: String) -> String {
    if message.len() > MESSAGE {
        let end = (0..=MESSAGE).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or(0));
        message.push('…');
    }
    message
}

/// The frames of the script's own files in the text of a stack, in which a line is `at name (file:line:column)`.
fn frames(shared: &Shared, stack: &str) -> Vec<Frame> {
    let own = stack.lines().filter_map(|line| frame(shared, line));
    own.take(FRAMES).collect()
}

fn frame(shared: &Shared, line: &str) -> Option<Frame> {
    let line = line.trim().strip_prefix("at ")?;
    let (function, place) = match line.rsplit_once(" (") {
        Some((function, place)) => (function, place.strip_suffix(')')?),
        None => ("", line),
    };
    let place = place.strip_prefix(MODULE)?;
    let mut parts = place.rsplitn(3, ':');
    let (_, row, file) = (parts.next()?, parts.next()?, parts.next()?);
    let row: u32 = row.parse().ok()?;
    Some(Frame {
        function: match function {
            "<anonymous>" => String::new(),
            name => name.to_owned(),
        },
        line: shared.program.original_line(file, row),
        file: file.to_owned(),
    })
}
