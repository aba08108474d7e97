//! The origin of a request, as far as it is known behind proxies.

use std::net::{IpAddr, Ipv4Addr};

use groupware_net::{Connection, TrustedNetworks};
use groupware_runtime::{Caller, Client, Forwarding};
use http::header::FORWARDED;
use http::{Extensions, HeaderMap};

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The caller of a request with these extensions; an unauthenticated one by default.
pub fn caller_of(extensions: &Extensions) -> Caller {
    let caller = extensions.get::<Caller>().cloned();
    caller.unwrap_or_else(|| Caller::at(IpAddr::from(Ipv4Addr::UNSPECIFIED)))
}

/// The client of a request.
pub fn client(caller: &Caller) -> Client {
    Client {
        is_shared: caller.via() == Forwarding::Unknown,
        ..Client::at(caller.peer())
    }
}

/// How a request with these headers was forwarded, and its connection before.
///
/// Only trusted proxies may name their client: others could send any address. The last address of
/// the header is the one that the proxy itself has seen.
pub(crate) fn forwarding(
    connection: &Connection,
    known: &TrustedNetworks,
    headers: &HeaderMap,
) -> Forwarding {
    let came = Forwarding::of(connection.origin);
    let peer = match came {
        Forwarding::Direct => connection.peer,
        Forwarding::Proxy(client) => client,
        Forwarding::Unknown => return came,
    };
    if is_forwarded(headers) {
        return forwarding_of_header(peer, known, headers);
    }
    came
}

fn forwarding_of_header(peer: IpAddr, known: &TrustedNetworks, headers: &HeaderMap) -> Forwarding {
    let told = headers.get_all(X_FORWARDED_FOR).iter().next_back();
    told.and_then(|list| list.to_str().ok()?.rsplit(',').next()?.trim().parse().ok())
        .filter(|_| known.is_proxy(peer))
        .map_or(Forwarding::Unknown, Forwarding::Proxy)
}

/// Returns true if a proxy, or a client that plays one, forwarded the request.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use groupware_net::{Admission, Networks, Origin};

    use super::*;

    const TOLD: Option<(&str, &str)> = Some((X_FORWARDED_FOR, "203.0.113.5, 198.51.100.7"));

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(
        (peer, origin): (&str, Origin),
        header: Option<(&'static str, &str)>,
        expected: Forwarding,
    ) {
        let proxies: Networks = "127.0.0.1,2001:db8::/64".parse().unwrap();
        let known = TrustedNetworks::new(Networks::default(), proxies);
        let admission = Arc::new(Admission::new(1, known.clone()));
        let connection = Connection {
            peer: address(peer),
            origin,
            slot: admission.enter(address(peer), false).unwrap(),
            on_thread: Arc::default(),
        };
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.append(name, value.parse().unwrap());
        }
        let found = forwarding(&connection, &known, &headers);
        assert_eq!(found, expected, "{peer} {origin:?} {header:?}");
    }

    #[test]
    fn only_named_proxies_are_believed() {
        let check = |peer, header, expected| check((peer, Origin::Peer), header, expected);
        check("192.0.2.1", None, Forwarding::Direct);
        check("127.0.0.1", None, Forwarding::Direct);
        let seen = Forwarding::Proxy(address("198.51.100.7"));
        for named in ["127.0.0.1", "::ffff:127.0.0.1", "2001:db8::5"] {
            check(named, TOLD, seen);
        }
        for other in ["192.0.2.1", "127.0.0.2", "::1"] {
            check(other, TOLD, Forwarding::Unknown);
        }
        check(
            "127.0.0.1",
            Some((X_FORWARDED_FOR, "me")),
            Forwarding::Unknown,
        );
        check(
            "127.0.0.1",
            Some(("forwarded", "for=_x")),
            Forwarding::Unknown,
        );
    }

    #[test]
    fn whom_a_connection_comes_for_is_believed_no_more_than_itself() {
        let stranger = address("192.0.2.1");
        let behind = ("127.0.0.1", Origin::Behind(stranger));
        check(behind, None, Forwarding::Proxy(stranger));
        check(behind, TOLD, Forwarding::Unknown);
        // One proxy in front of another.
        let proxy = ("127.0.0.1", Origin::Behind(address("2001:db8::5")));
        check(proxy, TOLD, Forwarding::Proxy(address("198.51.100.7")));
        check(("127.0.0.1", Origin::Unknown), None, Forwarding::Unknown);
        check(("127.0.0.1", Origin::Unknown), TOLD, Forwarding::Unknown);
    }
}
