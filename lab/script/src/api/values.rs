//! Values of the engine as the API reads them: bytes, texts, tags, durations.

use std::time::Duration;

use lab_units::units::{k6_duration, k6_milliseconds};
use rquickjs::function::{Constructor, IntoArgs, This};
use rquickjs::object::Property;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, Function, IntoJs, Object, Result, Value};

/// The most entries of an object of headers, tags, or cookies.
const MOST_ENTRIES: usize = 1000;

/// The bytes of a text (UTF-8), an ArrayBuffer, a view of one, or an array of numbers.
pub(super) fn bytes<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<u8>> {
    if let Some(text) = value.as_string() {
        return Ok(text.to_string()?.into_bytes());
    }
    if value
        .as_object()
        .is_some_and(|object| object.is_array_buffer())
    {
        return held(ctx, (value.clone(),));
    }
    if let Some(array) = value.as_array() {
        let numbers: Result<Vec<f64>> = array.iter::<f64>().collect();
        return Ok(numbers?
            .into_iter()
            .map(|number| number as i64 as u8)
            .collect());
    }
    if let Some(object) = value.as_object() {
        let buffer: Value<'js> = object.get("buffer")?;
        if buffer
            .as_object()
            .is_some_and(|buffer| buffer.is_array_buffer())
        {
            let from: usize = object.get("byteOffset")?;
            let length: usize = object.get("byteLength")?;
            return held(ctx, (buffer, from, length));
        }
    }
    Err(Exception::throw_type(
        ctx,
        "a text or an ArrayBuffer is expected",
    ))
}

/// Copies a buffer through Base64, because rquickjs's direct access to its bytes is `unsafe`.
fn held<'js>(ctx: &Ctx<'js>, view: impl IntoArgs<'js>) -> Result<Vec<u8>> {
    let class: Constructor<'js> = ctx.globals().get("Uint8Array")?;
    let view: Object<'js> = class.construct(view)?;
    let write: Function<'js> = view.get("toBase64")?;
    let text: String = write.call((This(view),))?;
    refused(ctx, super::encoding::from_base64(&text, "std"))
}

/// The text of any value, as `String(value)` gives it for what isn't an object.
pub(super) fn text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<String> {
    if let Some(text) = value.as_string() {
        return text.to_string();
    }
    if let Some(number) = value.as_int() {
        return Ok(number.to_string());
    }
    if value.is_symbol() {
        return Err(Exception::throw_type(ctx, "a symbol can't be made a text"));
    }
    if value.is_object()
        && !value.is_array()
        && let Some(json) = ctx.json_stringify(value.clone())?
    {
        let json = json.to_string()?;
        if json.starts_with('{') {
            return Ok(json);
        }
    }
    let made: rquickjs::Coerced<String> = rquickjs::FromJs::from_js(ctx, value.clone())?;
    Ok(made.0)
}

/// A value that is neither undefined nor null.
pub(super) fn given<'js>(value: Value<'js>) -> Option<Value<'js>> {
    (!value.is_undefined() && !value.is_null()).then_some(value)
}

/// A member of an object that is neither undefined nor null.
pub(super) fn member<'js>(object: &Object<'js>, name: &str) -> Result<Option<Value<'js>>> {
    Ok(given(object.get::<_, Value<'js>>(name)?))
}

/// The members of an object of texts, in order. `what` names it in messages.
pub(super) fn texts<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    what: &str,
) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    let Some(object) = value.as_object() else {
        return Err(Exception::throw_type(
            ctx,
            &format!("{what} are an object of names and values"),
        ));
    };
    for entry in object.props::<String, Value<'js>>() {
        let (name, value) = entry?;
        if all.len() >= MOST_ENTRIES {
            return Err(Exception::throw_range(
                ctx,
                &format!("{what} have more than {MOST_ENTRIES} entries"),
            ));
        }
        let Some(value) = given(value) else {
            continue;
        };
        match value.as_array() {
            Some(several) => {
                for one in several.iter::<Value<'js>>() {
                    all.push((name.clone(), text(ctx, &one?)?));
                }
            }
            None => all.push((name, text(ctx, &value)?)),
        }
    }
    Ok(all)
}

/// Milliseconds as a number, or a text such as `1m30s`.
pub(super) fn duration<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Duration> {
    let read = match value.as_number() {
        Some(millis) => k6_milliseconds(millis),
        None => match value.as_string() {
            Some(text) => k6_duration(&text.to_string()?),
            None => None,
        },
    };
    read.ok_or_else(|| {
        Exception::throw_type(
            ctx,
            "a duration is a number of milliseconds or a text such as '1m30s', '500ms'",
        )
    })
}

/// Bytes as an ArrayBuffer.
pub(super) fn buffer<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> Result<Value<'js>> {
    Ok(ArrayBuffer::new(ctx.clone(), bytes)?.into_value())
}

/// An array of texts.
pub(super) fn list<'js>(ctx: &Ctx<'js>, texts: &[String]) -> Result<Array<'js>> {
    let array = Array::new(ctx.clone())?;
    for (place, text) in texts.iter().enumerate() {
        array.set(place, text.as_str())?;
    }
    Ok(array)
}

/// Defines a member under a name that may be one of `Object.prototype`, such as `constructor`.
pub(super) fn define<'js>(object: &Object<'js>, name: &str, value: impl IntoJs<'js>) -> Result<()> {
    let value = value.into_js(object.ctx())?;
    let member = Property::from(value).writable().enumerable();
    object.prop(name, member.configurable())
}

/// An object of names and arrays of all their values, in order.
pub(super) fn grouped<'js, V: IntoJs<'js>>(
    ctx: &Ctx<'js>,
    pairs: Vec<(String, V)>,
) -> Result<Object<'js>> {
    let mut groups: Vec<(String, Array<'js>)> = Vec::new();
    for (name, value) in pairs {
        let known = groups.iter().position(|(known, _)| *known == name);
        let place = match known {
            Some(place) => place,
            None => {
                groups.push((name, Array::new(ctx.clone())?));
                groups.len() - 1
            }
        };
        let values = &groups[place].1;
        values.set(values.len(), value)?;
    }
    let object = Object::new(ctx.clone())?;
    for (name, values) in groups {
        define(&object, &name, values)?;
    }
    Ok(object)
}

/// Makes a TypeError of a sentence.
pub(super) fn refused<T>(ctx: &Ctx<'_>, result: std::result::Result<T, String>) -> Result<T> {
    result.map_err(|sentence| Exception::throw_type(ctx, &sentence))
}
