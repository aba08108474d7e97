//! Where a request comes from, as far as that can be told behind proxies.

use std::net::IpAddr;

use groupware_net::Networks;
use groupware_service::{Caller, Client, Via};
use http::header::FORWARDED;
use http::{Extensions, HeaderMap};

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// On whose behalf a request with these extensions is answered.
pub fn caller_of(extensions: &Extensions) -> Caller {
    let caller = extensions.get::<Caller>().cloned();
    caller.unwrap_or_else(Caller::internal)
}

/// The client of a request.
pub fn client(caller: &Caller) -> Client {
    Client {
        is_shared: caller.via() == Via::Unknown,
        ..Client::at(caller.peer())
    }
}

/// How a request with these headers came to the other end of its connection.
///
/// Only proxies that are named are believed when they say for whom they ask: others could say
/// whatever suits them. The last address is the one that the proxy itself has seen.
pub(crate) fn via(peer: IpAddr, proxies: &Networks, headers: &HeaderMap) -> Via {
    if !is_forwarded(headers) {
        return Via::Nobody;
    }
    let told = headers.get_all(X_FORWARDED_FOR).iter().next_back();
    told.and_then(|list| list.to_str().ok()?.rsplit(',').next()?.trim().parse().ok())
        .filter(|_| proxies.contains(peer))
        .map_or(Via::Unknown, Via::Proxy)
}

/// Whether a proxy, or somebody who plays one, handed the request on.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_proxies_are_believed() {
        let proxies: Networks = ["127.0.0.1", "2001:db8::/64"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let check = |peer: &str, header: Option<(&'static str, &str)>, expected: Via| {
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = header {
                headers.append(name, value.parse().unwrap());
            }
            let found = via(peer.parse().unwrap(), &proxies, &headers);
            assert_eq!(found, expected, "{peer} {header:?}");
        };
        check("192.0.2.1", None, Via::Nobody);
        check("127.0.0.1", None, Via::Nobody);
        let told = Some((X_FORWARDED_FOR, "203.0.113.5, 198.51.100.7"));
        let seen = Via::Proxy("198.51.100.7".parse().unwrap());
        for named in ["127.0.0.1", "::ffff:127.0.0.1", "2001:db8::5"] {
            check(named, told, seen);
        }
        for other in ["192.0.2.1", "127.0.0.2", "::1"] {
            check(other, told, Via::Unknown);
        }
        check("127.0.0.1", Some((X_FORWARDED_FOR, "me")), Via::Unknown);
        check("127.0.0.1", Some(("forwarded", "for=_x")), Via::Unknown);
    }
}
