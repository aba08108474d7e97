//! The address of an object store, without secrets: `s3://bucket/prefix?endpoint=https://s3.example.org&region=garage`.

use std::fmt;
use std::net::IpAddr;

/// The maximum length of an address, in bytes.
const MOST_BYTES: usize = 2048;
const SCHEME: &str = "s3://";
const REGION: &str = "us-east-1";
/// The allowed lengths of bucket names.
const BUCKET_BYTES: std::ops::RangeInclusive<usize> = 3..=63;

/// The reason why a text is not an address of an object store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

/// A place in an object store, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) bucket: String,
    /// The prefix of the names of all objects, without slashes at its ends; may be empty.
    pub(crate) prefix: String,
    /// The server, as in `https://host:port`; AWS by default.
    pub(crate) endpoint: Option<String>,
    pub(crate) region: String,
    /// True if the bucket is named in the path instead of the host name.
    pub(crate) is_path_style: bool,
}

impl Address {
    /// Parses an address, `s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path-style=true`. The default endpoint is AWS.
    /// With another endpoint, buckets are named in the path by default.
    ///
    /// # Errors
    /// When it is malformed or contains credentials.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = |words: String| Err(AddressError(words));
        if text.len() > MOST_BYTES {
            return wrong(format!("the address is longer than {MOST_BYTES} bytes"));
        }
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return wrong(format!(
                "the address of an object store begins with {SCHEME}"
            ));
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if place.contains('@') {
            return wrong(
                "credentials don't belong in the address: AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY have them, or a file"
                    .to_owned(),
            );
        }
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_bucket = BUCKET_BYTES.contains(&bucket.len())
            && bucket.bytes().all(is_name)
            && bucket.as_bytes()[0].is_ascii_alphanumeric();
        if !is_bucket {
            return wrong(format!(
                "{bucket:?} is no name of a bucket: 3 to 63 letters, digits, '-', '.', and '_'"
            ));
        }
        let is_segment = |part: &str| {
            part.bytes().all(is_name) && !part.is_empty() && !part.trim_matches('.').is_empty()
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            return wrong(format!(
                "{prefix:?} is no prefix: names of letters, digits, '-', '.', and '_', with '/' between"
            ));
        }
        let mut address = Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            endpoint: None,
            region: REGION.to_owned(),
            is_path_style: false,
        };
        address.read_options(query)?;
        Ok(address)
    }

    fn read_options(&mut self, query: &str) -> Result<(), AddressError> {
        let mut path_style = None;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let wrong = |what: &str| AddressError(format!("{name}={value:?} is no {what}"));
            match name {
                "endpoint" => {
                    self.endpoint = Some(
                        endpoint(value)
                            .ok_or_else(|| wrong("https://HOST or https://HOST:PORT"))?,
                    );
                }
                "region" => {
                    let is_region =
                        |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                    if value.is_empty() || !value.bytes().all(is_region) {
                        return Err(wrong("name of a region"));
                    }
                    value.clone_into(&mut self.region);
                }
                "path-style" => {
                    path_style = Some(value.parse().map_err(|_| wrong("true or false"))?);
                }
                _ => {
                    let known = "endpoint, region, and path-style are known";
                    return Err(AddressError(format!(
                        "there is no option {name:?}: {known}"
                    )));
                }
            }
        }
        self.is_path_style = path_style.unwrap_or(self.endpoint.is_some());
        Ok(())
    }

    /// Returns true if requests go to another machine unencrypted.
    pub fn is_plain_and_far(&self) -> bool {
        let host = self.endpoint.as_deref().and_then(|endpoint| {
            let rest = endpoint.strip_prefix("http://")?;
            Some(rest.rsplit_once(':').map_or(rest, |(host, _)| host))
        });
        let is_here = |host: &str| {
            let host = host.trim_matches(['[', ']']);
            host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        };
        host.is_some_and(|host| !is_here(host))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.bucket)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        write!(
            f,
            "?region={}&path-style={}",
            self.region, self.is_path_style
        )?;
        match &self.endpoint {
            Some(endpoint) => write!(f, "&endpoint={endpoint}"),
            None => Ok(()),
        }
    }
}

/// Parses a server URL without a path; `None` if it isn't one.
fn endpoint(text: &str) -> Option<String> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]_".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_host)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = Address::parse(text);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.to_string(), expected),
            (Err(error), Err(expected)) => {
                let words = error.to_string();
                assert!(words.contains(expected), "{text}: {words}");
            }
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn addresses_are_read() {
        check(
            "s3://mail",
            Ok("s3://mail?region=us-east-1&path-style=false"),
        );
        check(
            "s3://mail/site/a/?region=eu-west-3",
            Ok("s3://mail/site/a?region=eu-west-3&path-style=false"),
        );
        check(
            "s3://mail?endpoint=http://127.0.0.1:7070/",
            Ok("s3://mail?region=us-east-1&path-style=true&endpoint=http://127.0.0.1:7070"),
        );
        check(
            "s3://mail?endpoint=https://s3.example.org&region=garage&path-style=false",
            Ok("s3://mail?region=garage&path-style=false&endpoint=https://s3.example.org"),
        );
        check("https://mail", Err("begins with s3://"));
        check("s3://", Err("no name of a bucket"));
        check("s3://-mail", Err("no name of a bucket"));
        check("s3://key:secret@mail", Err("AWS_ACCESS_KEY_ID"));
        check("s3://mail/a//b", Err("no prefix"));
        check("s3://mail/../b", Err("no prefix"));
        check("s3://mail?secret=x", Err("no option \"secret\""));
        check("s3://mail?endpoint=ftp://x", Err("is no https://HOST"));
        check("s3://mail?endpoint=http://a@b", Err("is no https://HOST"));
        check("s3://mail?path-style=yes", Err("is no true or false"));
    }

    #[test]
    fn what_goes_over_the_network_unprotected_is_known() {
        let is_plain = |endpoint: &str| {
            let address = Address::parse(&format!("s3://mail?endpoint={endpoint}"));
            address.unwrap().is_plain_and_far()
        };
        assert!(is_plain("http://s3.example.org") && is_plain("http://192.0.2.1:80"));
        assert!(!is_plain("https://s3.example.org"));
        assert!(!is_plain("http://127.0.0.1:80") && !is_plain("http://localhost"));
        assert!(!is_plain("http://[::1]:80"));
        assert!(!Address::parse("s3://mail").unwrap().is_plain_and_far());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            bucket in "[a-z0-9][a-z0-9.-]{2,20}",
            prefix in "([a-z0-9]{1,5}(/[a-z0-9]{1,5}){0,2})?",
            endpoint in "(&endpoint=https?://[a-z0-9.-]{1,12}(:[0-9]{1,4})?)?",
            style in "(&path-style=(true|false))?",
        ) {
            let address = Address::parse(&format!("s3://{bucket}/{prefix}?region=r{endpoint}{style}"));
            let address = address.unwrap();
            prop_assert_eq!(Address::parse(&address.to_string()), Ok(address));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = Address::parse(&text);
            let _ = Address::parse(&format!("s3://{text}"));
        }
    }
}
