//! Where a request comes from, as far as that can be told behind proxies.

use std::net::IpAddr;

use groupware_service::{Caller, Client};
use http::header::FORWARDED;
use http::{Extensions, HeaderMap};

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// On whose behalf a request with these extensions is answered.
pub fn caller_of(extensions: &Extensions) -> Caller {
    let caller = extensions.get::<Caller>().cloned();
    caller.unwrap_or_else(Caller::internal)
}

/// The client of a request with these headers.
///
/// Only a proxy on this machine is believed when it says for whom it asks: others could say
/// whatever suits them. The last address is the one that the proxy itself has seen.
pub fn client(caller: &Caller, headers: &HeaderMap) -> Client {
    let peer = caller.peer().to_canonical();
    if !is_forwarded(headers) {
        return Client::at(peer);
    }
    let told = headers.get_all(X_FORWARDED_FOR).iter().next_back();
    let told = told
        .and_then(|list| list.to_str().ok()?.rsplit(',').next()?.trim().parse().ok())
        .filter(|_: &IpAddr| peer.is_loopback());
    Client {
        is_shared: told.is_none(),
        ..Client::at(told.unwrap_or(peer))
    }
}

/// Whether a proxy, or somebody who plays one, handed the request on.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proxies_on_this_machine_are_believed() {
        let check = |peer: &str, header: Option<(&'static str, &str)>, address: &str, is_shared| {
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = header {
                headers.append(name, value.parse().unwrap());
            }
            let found = client(&Caller::new(peer.parse().unwrap(), None), &headers);
            let address = address.parse().unwrap();
            assert_eq!(found, Client { address, is_shared }, "{peer} {header:?}");
        };
        check("192.0.2.1", None, "192.0.2.1", false);
        check("::ffff:192.0.2.1", None, "192.0.2.1", false);
        check("2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::", false);
        let told = Some(("x-forwarded-for", "203.0.113.5, 198.51.100.7"));
        check("127.0.0.1", told, "198.51.100.7", false);
        check("::1", told, "198.51.100.7", false);
        check("192.0.2.1", told, "192.0.2.1", true);
        check(
            "127.0.0.1",
            Some(("x-forwarded-for", "me")),
            "127.0.0.1",
            true,
        );
        check(
            "127.0.0.1",
            Some(("forwarded", "for=_x")),
            "127.0.0.1",
            true,
        );
    }
}
