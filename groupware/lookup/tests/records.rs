//! The simple lookup service, in each layout.

use crate::support::{Service, status};
use groupware_lookup::{BulkRenewal, Layout, NewRecord, Registrant, limits};
use groupware_store::{Batch, StoreError, counters};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn each(check: impl Fn(&mut Service)) {
    for layout in Layout::ALL {
        check(&mut Service::new(layout));
    }
}

fn uri(record: &Value) -> String {
    record["uri"].as_str().unwrap().to_owned()
}

fn with_addresses(name: &str, addresses: impl Iterator<Item = String>) -> String {
    let addresses: Vec<String> = addresses.collect();
    json!({ "type": "service", "service-name": name, "interface-addresses": addresses }).to_string()
}

#[test]
fn a_registration_lives_as_long_as_its_lease() {
    each(|service| {
        let made = service.register(r#"{"type":["host"],"host-name":"a.example","ttl":["PT1M"]}"#);
        let made = made.unwrap();
        let uri = uri(&made);
        assert!(uri.starts_with("lookup/host/"), "{made}");
        assert_eq!(made["state"], "registered");
        assert_eq!(made["ttl"], json!(["PT60S"]));
        assert_eq!(made["host-name"], json!(["a.example"]));
        assert_eq!(service.get(&uri).unwrap(), made);

        service.now += 50;
        let renewed = service.renew(&uri, r#"{"ttl":["PT2M"]}"#).unwrap();
        assert_eq!(
            (&renewed["state"], &renewed["ttl"]),
            (&json!("renewed"), &json!(["PT120S"]))
        );
        service.now += 119;
        assert_eq!(service.get(&uri).unwrap(), renewed);
        service.now += 1;
        assert_eq!(status(service.get(&uri)), 404);
        assert!(service.query(&[("host-name", "a.example")]).is_empty());

        // Late, but not too late.
        service.now += limits::RENEWABLE_S;
        assert_eq!(service.sweep(), 0);
        assert_eq!(service.renew(&uri, "").unwrap()["ttl"], json!(["PT7200S"]));
        service.now += limits::DEFAULT_LEASE_S + limits::RENEWABLE_S + 1;
        assert_eq!(status(service.renew(&uri, "")), 403);
        assert!(service.sweep() > 0);
        assert_eq!(status(service.renew(&uri, "")), 404);
        assert!(
            service.rows() <= 1,
            "the counter, or an empty document, is all that is left"
        );
    });
}

#[test]
fn the_same_record_is_registered_once() {
    each(|service| {
        let body = r#"{"type":"host","host-name":["a","b"]}"#;
        let first = service.register(body).unwrap();
        assert_eq!(status(service.register(body)), 403);
        service
            .register(r#"{"type":"host","host-name":["b","a"]}"#)
            .unwrap();
        service.delete(&uri(&first)).unwrap();
        let second = service.register(body).unwrap();
        assert_ne!(uri(&first), uri(&second));
        // An expired lease makes room, swept or not; the old one's end has no effect.
        service.now += limits::DEFAULT_LEASE_S;
        let third = service.register(body).unwrap();
        service.now += limits::RENEWABLE_S + 1;
        service.sweep();
        assert_eq!(
            service.get(&uri(&third)).unwrap()["host-name"],
            json!(["a", "b"])
        );
        assert_eq!(status(service.register(body)), 403);
    });
}

/// The sums over all and those of a user, in layouts that store them.
const SUMS: [(Layout, &str, &str); 2] = [
    (Layout::Indexed, "$lookup/indexed", "y"),
    (Layout::DocumentPerRegistration, "$lookup/documents", "n"),
];

fn sums(service: &Service, (partition, key): (&str, String)) -> Vec<i64> {
    let found: Result<_, StoreError> = service
        .store
        .read(|snapshot| snapshot.get(partition, key.as_bytes()));
    let found = found.unwrap();
    found.map_or(Vec::new(), |found| counters(&found.value).collect())
}

#[test]
fn what_there_is_is_counted_in_all_and_by_user() {
    for (layout, partition, key) in SUMS {
        let mut service = Service::new(layout);
        let of = |service: &Service, user: &str| sums(service, (partition, format!("{key}{user}")));
        service
            .register(r#"{"type":"host","host-name":"a"}"#)
            .unwrap();
        let nobodys = of(&service, "");
        assert!(nobodys[0] == 1 && nobodys[1] > 20, "{nobodys:?}");
        service.who = Registrant::User("ada".into());
        let large = with_addresses("b", (0..100).map(|n| format!("10.0.0.{n}")));
        let made = service.register(&large).unwrap();
        let adas = of(&service, "ada");
        assert!(adas[0] == 1 && adas[1] > 1000, "{adas:?}");
        let all = [nobodys[0] + adas[0], nobodys[1] + adas[1]];
        assert_eq!(of(&service, ""), all);
        service.renew(&uri(&made), "").unwrap();
        assert_eq!(of(&service, "ada"), adas);
        service.delete(&uri(&made)).unwrap();
        service.sweep();
        assert_eq!(of(&service, "ada"), [0, 0]);
        assert_eq!(of(&service, ""), nobodys);
        // Expired registrations are subtracted, too.
        service.register(&large).unwrap();
        service.now += limits::DEFAULT_LEASE_S + limits::RENEWABLE_S + 1;
        service.sweep();
        assert_eq!(
            (of(&service, ""), of(&service, "ada")),
            (vec![0, 0], vec![0, 0])
        );
    }
}

#[test]
fn a_user_holds_so_much_and_leaves_the_others_room() {
    let body = |name: &str| json!({ "type": "host", "host-name": name }).to_string();
    for (layout, partition, key) in SUMS {
        for most in [[limits::USERS_REGISTRATIONS, 0], [0, limits::USERS_BYTES]] {
            let mut service = Service::new(layout);
            let mut batch = Batch::new();
            batch.add(partition, format!("{key}ada"), most);
            service.store.commit_blocking(batch).unwrap();
            service.who = Registrant::User("ada".into());
            assert_eq!(status(service.register(&body("a"))), 507);
            let all = NewRecord::parse_bulk(format!("[{}]", body("a")).as_bytes()).unwrap();
            let bulk = service.change(|context| groupware_lookup::register_bulk(context, all));
            assert_eq!(status(bulk), 507);
            for who in [
                Registrant::User("ben".into()),
                Registrant::Anybody,
                Registrant::Admin,
            ] {
                let name = format!("{who:?}");
                service.who = who;
                service.register(&body(&name)).unwrap();
            }
        }
        for most in [[limits::REGISTRATIONS, 0], [0, limits::REGISTERED_BYTES]] {
            let mut service = Service::new(layout);
            let mut batch = Batch::new();
            batch.add(partition, key, most);
            service.store.commit_blocking(batch).unwrap();
            assert_eq!(status(service.register(&body("a"))), 507);
        }
    }
}

#[test]
fn queries_take_operators_lists_and_wildcards() {
    each(|service| {
        for (name, city, domains) in [
            ("a.example", "Bern", vec!["x.org", "y.org"]),
            ("b.example", "Genf", vec!["y.org"]),
            ("c.sample", "Bern", vec!["z.org"]),
        ] {
            let body = json!({ "type": "host", "host-name": name, "location-city": city,
                "group-domains": domains });
            service.register(&body.to_string()).unwrap();
        }
        let names = |pairs: &[(&str, &str)]| {
            let mut names: Vec<String> = service
                .query(pairs)
                .iter()
                .map(|found| found["host-name"][0].as_str().unwrap()[..1].to_owned())
                .collect();
            names.sort();
            names.concat()
        };
        assert_eq!(names(&[]), "abc");
        assert_eq!(names(&[("host-name", "A.EXAMPLE")]), "a");
        assert_eq!(names(&[("host-name", "*.example")]), "ab");
        assert_eq!(names(&[("host-name", "b*")]), "b");
        assert_eq!(
            names(&[("location-city", "bern"), ("host-name", "*.example")]),
            "a"
        );
        let any = ("operator", "any");
        assert_eq!(
            names(&[any, ("location-city", "genf"), ("host-name", "a.*")]),
            "ab"
        );
        assert_eq!(names(&[("group-domains", "x.org,y.org")]), "a");
        let any = ("group-domains-operator", "any");
        assert_eq!(names(&[any, ("group-domains", "x.org,y.org,z.org")]), "abc");
        let any = ("host-name-operator", "any");
        assert_eq!(names(&[any, ("host-name", "a.example,c*,a*")]), "ac");
        assert_eq!(names(&[("nothing", "*")]), "");
        assert_eq!(names(&[("type", "host"), ("state", "registered")]), "abc");
        let first = uri(&service.query(&[("host-name", "b.example")])[0]);
        assert_eq!(names(&[("uri", &first)]), "b");
        let all = service.query(&[]);
        let page = |skip, most| service.query(&[("skip", skip), ("maxresults", most)]);
        assert_eq!(page("0", "2"), all[..2]);
        assert_eq!(page("2", "2"), all[2..]);
        assert!(page("3", "2").is_empty());
        let cut = service.page(&[("skip", "1"), ("maxresults", "1")]).unwrap();
        assert_eq!(cut.next, Some(2));
        assert_eq!(service.page(&[("skip", "1")]).unwrap().next, None);
    });
}

#[test]
fn who_asks_for_no_page_gets_all_that_there_is() {
    let mut service = Service::new(Layout::Indexed);
    for part in 0..3 {
        let record = |n| json!({ "type": "host", "host-name": format!("h{part}-{n}") }).to_string();
        let all = (0..limits::BULK).map(|n| NewRecord::parse(record(n).as_bytes()));
        let all: Vec<_> = all.collect();
        let made = service.change(|context| groupware_lookup::register_bulk(context, all));
        made.unwrap();
    }
    let page = service.page(&[("type", "host")]).unwrap();
    let found: Vec<Value> = serde_json::from_slice(&page.body).unwrap();
    assert_eq!((found.len(), page.next), (3 * limits::BULK, None));
}

#[test]
fn ten_thousand_interfaces_are_one_registration() {
    each(|service| {
        let address = |n: usize| format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255);
        let small = with_addresses("small", (0..10).map(|n| address(n + 70_000)));
        service.register(&small).unwrap();
        let empty = service.rows();
        let big = with_addresses("big", (0..10_000).map(address));
        let made = service.register(&big).unwrap();
        for n in [0, 1234, 9999] {
            let found = service.query(&[("interface-addresses", &address(n))]);
            assert_eq!(found.len(), 1);
            assert_eq!(found[0]["service-name"], json!(["big"]));
        }
        assert!(
            service
                .query(&[("interface-addresses", &address(10_000))])
                .is_empty()
        );
        // Removing it writes little; small batches clear the rest.
        service.delete(&uri(&made)).unwrap();
        assert!(
            service
                .query(&[("interface-addresses", &address(0))])
                .is_empty()
        );
        let sweeps = service.sweep();
        assert_eq!(service.rows(), empty);
        if service.layout == Layout::Indexed {
            // Over 1000 rows, ten addresses each, 256 at a time.
            assert!(sweeps >= 4, "{sweeps}");
        }
        // A registration of the same addresses, created before the index was cleared, keeps its own.
        let first = service.register(&big).unwrap();
        service.delete(&uri(&first)).unwrap();
        service.register(&big).unwrap();
        service.sweep();
        assert_eq!(
            service
                .query(&[("interface-addresses", &address(77))])
                .len(),
            1
        );
    });
}

#[test]
fn clearing_a_removed_record_leaves_its_successors_entries() {
    each(|service| {
        let empty = {
            let made = service.register(r#"{"type":"host","host-name":"other"}"#);
            service.delete(&uri(&made.unwrap())).unwrap();
            service.sweep();
            service.rows()
        };
        let body = r#"{"type":"host","host-name":"a"}"#;
        let made = service.register(body).unwrap();
        service.delete(&uri(&made)).unwrap();
        service.register(body).unwrap();
        service.sweep();
        assert_eq!(status(service.register(body)), 403, "it is there once");
        assert_eq!(service.query(&[("host-name", "a")]).len(), 1);
        // Its lease ends, too; so does that of a registration that was removed and not yet cleared.
        let removed = service
            .register(r#"{"type":"host","host-name":"b"}"#)
            .unwrap();
        service.delete(&uri(&removed)).unwrap();
        service.now += limits::DEFAULT_LEASE_S + limits::RENEWABLE_S + 1;
        service.sweep();
        assert_eq!(service.rows(), empty);
    });
}

#[test]
fn what_earlier_versions_kept_is_dropped() {
    let mut service = Service::new(Layout::Indexed);
    let made = service.register(r#"{"type":"host","host-name":"a"}"#);
    let rows = service.rows();
    let mut old = Batch::new();
    for row in 0..3_u8 {
        old.put("$lookup", [row], "a row of the former index");
    }
    service.store.commit_blocking(old).unwrap();
    assert_eq!(service.rows(), rows + 3);
    assert_eq!(service.sweep(), 1);
    assert_eq!(service.rows(), rows);
    assert_eq!(
        service.get(&uri(&made.unwrap())).unwrap()["host-name"],
        json!(["a"])
    );
}

#[test]
fn the_indexed_layout_writes_what_the_registration_asks_for() {
    let mut service = Service::new(Layout::Indexed);
    let cost = |service: &mut Service, name: &str| {
        let body = with_addresses(name, (0..100).map(|n| format!("{name}.{n}")));
        service.register(&body).unwrap();
        service.cost
    };
    let first = cost(&mut service, "n001");
    for number in 2..300 {
        cost(&mut service, &format!("n{number:03}"));
    }
    assert_eq!(cost(&mut service, "n300"), first);
}

#[test]
fn bulk_registration_and_renewal_say_what_failed() {
    each(|service| {
        let body = br#"[{"type":"a","k":"1"},{"type":"a","k":"1"},{"k":"2"},{"type":"a","k":"3"}]"#;
        let all = NewRecord::parse_bulk(body).unwrap();
        let reply = service
            .change(|context| groupware_lookup::register_bulk(context, all))
            .unwrap();
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(reply["total"], 4);
        assert_eq!(reply["registered"], 2);
        assert_eq!(reply["failed-records"]["1"]["error-code"], 403);
        assert_eq!(reply["failed-records"]["2"]["error-code"], 400);
        let uris: Vec<&str> = reply["registered-uris"]
            .as_array()
            .unwrap()
            .iter()
            .map(|uri| uri.as_str().unwrap())
            .collect();
        assert_eq!(service.query(&[("type", "a")]).len(), 2);

        let gone = "lookup/a/00000000-0000-0000-0000-000000000000";
        let body = json!({ "record-uris": [uris[0], gone, "nonsense", uris[0]], "ttl": "PT5M" });
        let renewal = BulkRenewal::parse(body.to_string().as_bytes()).unwrap();
        let reply = service
            .change(|context| groupware_lookup::renew_bulk(context, &renewal))
            .unwrap();
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!((&reply["total"], &reply["renewed"]), (&json!(4), &json!(2)));
        assert_eq!(reply["failed-uris"][gone]["error-code"], 22);
        assert_eq!(service.get(uris[0]).unwrap()["ttl"], json!(["PT300S"]));
        service.now += 7200 + limits::RENEWABLE_S + 1;
        let body = json!({ "record-uris": uris });
        let renewal = BulkRenewal::parse(body.to_string().as_bytes()).unwrap();
        let reply = service
            .change(|context| groupware_lookup::renew_bulk(context, &renewal))
            .unwrap();
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(reply["failed-uris"][uris[0]]["error-code"], 21);
    });
    assert_eq!(status(NewRecord::parse_bulk(b"[]")), 400);
    assert_eq!(status(NewRecord::parse_bulk(b"{}")), 400);
    assert_eq!(status(BulkRenewal::parse(b"")), 400);
    assert_eq!(status(BulkRenewal::parse(br#"{"record-uris":{}}"#)), 400);
}

#[test]
fn what_a_user_registers_is_the_users() {
    each(|service| {
        service.who = Registrant::User("ann".into());
        let anns = uri(&service
            .register(r#"{"type":"host","host-name":"ann"}"#)
            .unwrap());
        for other in [Registrant::Anybody, Registrant::User("bob".into())] {
            service.who = other;
            assert_eq!(status(service.renew(&anns, "")), 403);
            assert_eq!(status(service.delete(&anns)), 403);
            assert_eq!(service.get(&anns).unwrap()["host-name"], json!(["ann"]));
        }
        service.who = Registrant::Admin;
        service.renew(&anns, "").unwrap();
        service.who = Registrant::User("ann".into());
        assert_eq!(service.delete(&anns).unwrap()["state"], "deleted");
        assert_eq!(status(service.delete(&anns)), 404);
    });
}

#[test]
fn names_that_are_none_are_not_found() {
    each(|service| {
        let made = service
            .register(r#"{"type":"host","host-name":"a"}"#)
            .unwrap();
        let other = uri(&made).replace("/host/", "/service/");
        for uri in ["lookup/host/nonsense", "lookup/host/", other.as_str()] {
            assert_eq!(status(service.get(uri)), 404, "{uri}");
            assert_eq!(status(service.delete(uri)), 404, "{uri}");
        }
        let key = |key| {
            let uri = uri(&made);
            let id = uri.rsplit('/').next().unwrap().to_owned();
            service.read(|context| groupware_lookup::get_key(context, ("host", &id, key)))
        };
        assert_eq!(key("host-name").unwrap(), br#"{"host-name":["a"]}"#);
        assert_eq!(status(key("nothing")), 404);
    });
}

#[test]
fn wide_queries_are_bounded() {
    let mut service = Service::new(Layout::Indexed);
    // Addresses in a row each, more than a query may read.
    let apart = |number: usize, addresses: usize| {
        let addresses = (0..addresses).map(|n| format!("{}-{number}-{n}x", number % 10));
        with_addresses(&number.to_string(), addresses)
    };
    for number in 0..12 {
        service.register(&apart(number, 19_000)).unwrap();
    }
    let too_many = service.register(&apart(12, limits::INDEX_ROWS + 1));
    assert_eq!(status(too_many), 413);
    let wide = [("interface-addresses", "*"), ("service-name", "none")];
    assert!(service.query(&wide).is_empty(), "a name leads to nothing");
    let any = ("interface-addresses-operator", "any");
    let everything = "0*,1*,2*,3*,4*,5*,6*,7*,8*,9*";
    let outcome = service.page(&[any, ("interface-addresses", everything), ("x", "y")]);
    assert_eq!(status(outcome), 503);
}

#[test]
fn a_single_document_that_is_full_says_so_and_goes_on() {
    let mut service = Service::new(Layout::SingleDocument);
    // Some 7 MB each.
    let large = |number: usize| {
        let values = vec!["x".repeat(limits::VALUE_BYTES); 1800];
        json!({ "type": "host", "host-name": number.to_string(), "padding": values }).to_string()
    };
    let mut made = Vec::new();
    let refusal = loop {
        match service.register(&large(made.len())) {
            Ok(record) => made.push(uri(&record)),
            Err(error) => break error,
        }
        assert!(made.len() < 30, "nothing bounds the document");
    };
    assert_eq!(refusal.status(), 507);
    assert!(
        refusal.to_string().contains("document is full"),
        "{refusal}"
    );
    // A hundred services of a thousand interfaces have some 70 MB.
    assert!(made.len() >= 11, "{}", made.len());
    assert_eq!(service.query(&[("host-name", "3")]).len(), 1);
    service.delete(&made[0]).unwrap();
    service.register(&large(99)).unwrap();
}

/// Values that collide in the index: few letters, some of several bytes, some longer than the indexed prefix.
fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[abéß0]{0,4}", "a{198,203}[abé]{0,2}"]
}

proptest! {
    #[test]
    fn the_index_finds_what_a_look_at_everything_finds(
        records in vec(vec(value(), 0..6), 1..8),
        asked in vec((value(), any::<bool>()), 1..20),
        removed in any::<prop::sample::Index>(),
    ) {
        let fill = |layout| {
            let mut service = Service::new(layout);
            let mut uris = Vec::new();
            for (number, values) in records.iter().enumerate() {
                let body = json!({ "type": "host", "client-uuid": [number.to_string()],
                    "host-name": values });
                uris.push(uri(&service.register(&body.to_string()).unwrap()));
            }
            service.delete(&uris[removed.index(uris.len())]).unwrap();
            service
        };
        let layouts = [Layout::Indexed, Layout::DocumentPerRegistration].map(fill);
        for (value, is_prefix) in asked {
            let pattern = if is_prefix { format!("{value}*") } else { value };
            let [indexed, looked_at] = layouts.each_ref().map(|service| {
                let mut found: Vec<String> = service
                    .query(&[("host-name", &pattern)])
                    .iter()
                    .map(|found| found["client-uuid"][0].as_str().unwrap().to_owned())
                    .collect();
                found.sort();
                found
            });
            prop_assert_eq!(indexed, looked_at, "{}", pattern);
        }
    }
}
