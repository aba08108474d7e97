//! Filters of the template language that need no user: hashes, HMAC, encodings, JSON Web Tokens, patterns, JSON
//! paths. Each gives the same for the same, but for signatures by elliptic curves, which have a random part.

mod bytes;
mod encoding;
mod hash;
mod pattern;
mod token;

use minijinja::value::{Rest, Serde, Value};
use minijinja::{Environment, Error, ErrorKind};

pub use encoding::Encoding;
pub use hash::{Hash, digest, hmac};
pub use token::{claims, jwt};

/// Names of the filters.
pub const NAMES: &[&str] = &[
    "md5",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "hmac",
    "base64",
    "base64url",
    "hex",
    "unbase64",
    "unhex",
    "urldecode",
    "jwt_claims",
    "match",
    "replace_all",
    "json_path",
    "floor",
    "ceil",
];

/// The largest input of a hash.
const MAX_BYTES: usize = 16 << 20;

/// Adds the filters, and the function `jwt`.
pub fn add(environment: &mut Environment<'static>) {
    for hash in Hash::ALL {
        environment.add_filter(hash.name(), move |value: &Value, encoding: Option<&str>| {
            let input = input(value)?;
            let sum = digest(hash, &input);
            written(sum, encoding.unwrap_or("hex"))
        });
    }
    environment.add_filter(
        "hmac",
        |value: &Value, key: &Value, hash: Option<&str>, encoding: Option<&str>| {
            let hash = hash.unwrap_or("sha256");
            let hash = Hash::named(hash)
                .ok_or_else(|| unknown("hash", hash, &Hash::ALL.map(Hash::name)))?;
            let sum = hmac(hash, &bytes::of(key)?, &input(value)?).map_err(invalid)?;
            written(sum, encoding.unwrap_or("hex"))
        },
    );
    for encoding in [Encoding::Base64, Encoding::Base64Url, Encoding::Hex] {
        environment.add_filter(encoding.name(), move |value: &Value| {
            Ok::<_, Error>(encoding.encode(&bytes::of(value)?))
        });
    }
    environment.add_filter("unbase64", |value: &Value| {
        let text = encoding::from_base64(&bytes::of(value)?);
        text.map(bytes::value).map_err(invalid)
    });
    environment.add_filter("unhex", |value: &Value| {
        let text = hex::decode(&*bytes::of(value)?);
        text.map(bytes::value)
            .map_err(|error| invalid(format!("it is not hexadecimal: {error}")))
    });
    environment.add_filter("urldecode", |value: &Value| {
        let bytes = bytes::of(value)?;
        let decoded = percent_encoding::percent_decode(&bytes).collect();
        Ok::<_, Error>(bytes::value(decoded))
    });
    environment.add_filter("match", |value: &Value, pattern: &str| {
        let found = pattern::first(&bytes::text(value)?, pattern).map_err(invalid)?;
        Ok::<_, Error>(found.map_or(Value::UNDEFINED, Value::from))
    });
    environment.add_filter("replace_all", |value: &Value, pattern: &str, by: &str| {
        pattern::replace_all(&bytes::text(value)?, pattern, by).map_err(invalid)
    });
    environment.add_filter("json_path", |value: &Value, path: &str| {
        let found = pattern::json_path(&bytes::text(value)?, path).map_err(invalid)?;
        Ok::<_, Error>(found.map_or(Value::UNDEFINED, |found| Value::from(Serde(found))))
    });
    environment.add_filter("floor", |value: &Value| whole(value, f64::floor));
    environment.add_filter("ceil", |value: &Value| whole(value, f64::ceil));
    environment.add_filter("jwt_claims", |value: &Value| {
        let claims = claims(&bytes::text(value)?).map_err(invalid)?;
        Ok::<_, Error>(Value::from(Serde(claims)))
    });
    environment.add_function("jwt", |rest: Rest<Value>| {
        let [claims, key, more @ ..] = rest.as_slice() else {
            return Err(invalid(token::USAGE.to_owned()));
        };
        let (algorithm, header) = match more {
            [] => ("HS256", None),
            [algorithm] => (algorithm.as_str().unwrap_or_default(), None),
            [algorithm, header] => (algorithm.as_str().unwrap_or_default(), Some(json(header)?)),
            _ => return Err(invalid(token::USAGE.to_owned())),
        };
        jwt(&json(claims)?, &bytes::of(key)?, algorithm, header).map_err(invalid)
    });
}

/// What a hash is of.
fn input(value: &Value) -> Result<std::borrow::Cow<'_, [u8]>, Error> {
    let input = bytes::of(value)?;
    match input.len() {
        ..=MAX_BYTES => Ok(input),
        n => Err(invalid(format!(
            "{n} bytes are more than the {MAX_BYTES} that a hash may be of"
        ))),
    }
}

fn written(sum: Vec<u8>, encoding: &str) -> Result<Value, Error> {
    match (Encoding::named(encoding), encoding) {
        (Some(encoding), _) => Ok(Value::from(encoding.encode(&sum))),
        (None, "raw") => Ok(Value::from_bytes(sum)),
        _ => Err(unknown(
            "encoding",
            encoding,
            &["hex", "base64", "base64url", "raw"],
        )),
    }
}

fn whole(value: &Value, round: fn(f64) -> f64) -> Result<i64, Error> {
    let text = bytes::text(value)?;
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| invalid(format!("`{text}` is not a number")))?;
    let rounded = round(number);
    match rounded.abs() < 9e15 {
        // Whole, and far from the limits of both.
        true => Ok(rounded as i64),
        false => Err(invalid(format!(
            "`{text}` has no whole number near it that fits"
        ))),
    }
}

fn json(value: &Value) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| invalid(error.to_string()))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    invalid(format!(
        "there is no {what} `{name}`: it is one of {}",
        known.join(", ")
    ))
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

#[cfg(test)]
mod tests;
