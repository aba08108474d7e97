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

/// Makes an error of what a part of a turn threw.
pub(super) fn thrown(ctx: &Ctx<'_>, shared: &Shared, budget: &Budget, error: &Error) -> Thrown {
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
    if budget.was_over() {
        thrown.kind = ThrownKind::Turn;
        thrown.message = format!(
            "the script ran for {} ms without a request or a wait: a turn may take {0} ms at most",
            budget.limit().as_millis()
        );
    }
    thrown
}

fn plain(message: String) -> Thrown {
    Thrown {
        kind: kind(&message),
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
    let told = read("message").filter(|message| !message.is_empty());
    let message = match told {
        Some(message) if name.is_empty() || name == "Error" || name == "InternalError" => message,
        Some(message) => format!("{name}: {message}"),
        None if name.is_empty() => as_json(object),
        None => name,
    };
    let mut thrown = plain(explained(message));
    thrown.stack = read("stack")
        .map(|stack| frames(shared, &stack))
        .unwrap_or_default();
    if let Ok(Some(site)) = object.get::<_, Option<u32>>("$site") {
        thrown.kind = ThrownKind::NotHandedOver;
        if let Some(site) = shared
            .program
            .sites()
            .get(site as usize)
            .filter(|_| site > 0)
        {
            thrown.stack.insert(
                0,
                Frame {
                    function: String::new(),
                    file: site.file.clone(),
                    line: site.line,
                },
            );
        }
    }
    thrown
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

fn kind(message: &str) -> ThrownKind {
    if message.contains("out of memory") {
        ThrownKind::Memory
    } else if message.contains("Maximum call stack size exceeded")
        || message.contains("stack overflow")
    {
        ThrownKind::Stack
    } else {
        ThrownKind::Error
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
    let (column, row, file) = (parts.next()?, parts.next()?, parts.next()?);
    let (row, column): (u32, u32) = (row.parse().ok()?, column.parse().ok()?);
    let _ = column;
    Some(Frame {
        function: match function {
            "<anonymous>" => String::new(),
            name => name.to_owned(),
        },
        line: shared.program.original_line(file, row),
        file: file.to_owned(),
    })
}
