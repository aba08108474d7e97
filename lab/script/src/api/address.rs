//! Addresses by the rules of the WHATWG, for the classes `URL` and `URLSearchParams`.

use url::Url;
use url::quirks;

/// The longest address in bytes.
const LONGEST: usize = 64 << 10;

/// The parts of an address in the order in which the class `URL` reads them.
pub(crate) fn parts(text: &str, base: Option<&str>) -> Result<[String; 11], String> {
    Ok(of(&parse(text, base)?))
}

/// The parts of an address after one of them is set; the same ones if the value doesn't fit.
pub(crate) fn with(href: &str, part: &str, value: &str) -> Result<[String; 11], String> {
    if value.len() > LONGEST {
        return Err(format!("an address has at most {LONGEST} bytes"));
    }
    let mut url = parse(href, None)?;
    let _ = match part {
        "href" => quirks::set_href(&mut url, value).is_ok(),
        "protocol" => quirks::set_protocol(&mut url, value).is_ok(),
        "username" => quirks::set_username(&mut url, value).is_ok(),
        "password" => quirks::set_password(&mut url, value).is_ok(),
        "host" => quirks::set_host(&mut url, value).is_ok(),
        "hostname" => quirks::set_hostname(&mut url, value).is_ok(),
        "port" => quirks::set_port(&mut url, value).is_ok(),
        "pathname" => {
            quirks::set_pathname(&mut url, value);
            true
        }
        "search" => {
            quirks::set_search(&mut url, value);
            true
        }
        "hash" => {
            quirks::set_hash(&mut url, value);
            true
        }
        other => return Err(format!("an address has no part '{other}'")),
    };
    Ok(of(&url))
}

/// An address relative to another one.
pub(crate) fn resolve(base: &str, reference: &str) -> Result<String, String> {
    Ok(parse(reference, Some(base))?.to_string())
}

pub(super) fn parse(text: &str, base: Option<&str>) -> Result<Url, String> {
    if text.len() > LONGEST {
        return Err(format!("an address has at most {LONGEST} bytes"));
    }
    let base = match base {
        Some(base) => Some(Url::parse(base).map_err(|error| invalid(base, error))?),
        None => None,
    };
    Url::options()
        .base_url(base.as_ref())
        .parse(text)
        .map_err(|error| invalid(text, error))
}

fn invalid(text: &str, error: url::ParseError) -> String {
    format!("'{}' is not a valid URL: {error}", shown(text))
}

/// A URL as messages show it: without the name and password, the query, and the fragment.
pub(super) fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (scheme, rest) = match url[..end].split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), &url[..end]),
    };
    let host = rest.find('/').unwrap_or(rest.len());
    let from = rest[..host].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}{}", &rest[from..])
}

fn of(url: &Url) -> [String; 11] {
    [
        url.as_str().to_owned(),
        quirks::origin(url),
        quirks::protocol(url).to_owned(),
        quirks::username(url).to_owned(),
        quirks::password(url).to_owned(),
        quirks::host(url).to_owned(),
        quirks::hostname(url).to_owned(),
        quirks::port(url).to_owned(),
        quirks::pathname(url).to_owned(),
        quirks::search(url).to_owned(),
        quirks::hash(url).to_owned(),
    ]
}

/// Pairs as a form (application/x-www-form-urlencoded).
pub(crate) fn form(flat: &[String]) -> String {
    let mut out = url::form_urlencoded::Serializer::new(String::new());
    for pair in flat.chunks(2) {
        out.append_pair(&pair[0], pair.get(1).map_or("", String::as_str));
    }
    out.finish()
}

/// The names and values of a form, one after the other.
pub(crate) fn from_form(text: &str) -> Vec<String> {
    url::form_urlencoded::parse(text.as_bytes())
        .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
        .collect()
}
