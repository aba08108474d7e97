//! The stored form of registrations, in each layout: it stays the same byte for byte, and older
//! forms are still read.

use std::ops::ControlFlow;

use crate::support::Service;
use groupware_lookup::{Layout, Registrant};
use groupware_store::{Batch, Store, StoreError, StoreOptions};
use plimsoll_tests::stored;

const PARTITIONS: [&str; 3] = ["$lookup/indexed", "$lookup/documents", "$lookup/single"];

/// Records with and without an owner, one renewed, and a service of the XML protocol.
fn world(layout: Layout) -> Service {
    let mut service = Service::new(layout);
    let record =
        r#"{"type": ["host"], "host-name": ["a.example", "é \"b\""], "record-ttl": ["PT2H"]}"#;
    let made = service.register(record).unwrap();
    let uri = made["uri"].as_str().unwrap();
    service.now += 60;
    service.renew(uri, r#"{"ttl": ["PT3H"]}"#).unwrap();
    service.who = Registrant::User("ada".into());
    let record = r#"{"type": "interface", "interface-addresses": ["10.0.0.1", "10.0.0.2"]}"#;
    service.register(record).unwrap();
    let reply = service.message(
        "<n:message xmlns:n='http://ggf.org/ns/nmwg/base/2.0/' type='LSRegisterRequest' \
         xmlns:p='http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/' xmlns:t='http://t/?a=1&amp;b'>\
         <n:metadata id='m'><p:subject><accessPoint>http://a</accessPoint>\
         <serviceType>MA &amp; x</serviceType></p:subject></n:metadata>\
         <n:data metadataIdRef='m'><n:metadata id='1'><t:ifAddress>10.0.0.3</t:ifAddress>\
         </n:metadata><t:block/></n:data></n:message>",
    );
    assert!(reply.contains("success.ls.register"), "{reply}");
    service
}

/// All records of these partitions.
fn rows(store: &Store, partitions: &[&str]) -> Vec<stored::Row> {
    let mut rows = Vec::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        for partition in partitions {
            snapshot.browse(partition, b"", None, usize::MAX, &mut |key, value| {
                rows.push(((*partition).to_owned(), key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    });
    read.unwrap();
    rows
}

/// A store with the records of the snapshot.
fn restored() -> Store {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let mut batch = Batch::new();
    for (partition, key, value) in
        stored::rows(include_str!("snapshots/suite__stored__records.snap"))
    {
        batch.put(partition, key, value);
    }
    store.commit_blocking(batch).unwrap();
    store
}

#[test]
fn what_is_stored_stays_as_it_is() {
    let all = Layout::ALL.map(|layout| stored::lines(&rows(&world(layout).store, &PARTITIONS)));
    insta::assert_snapshot!("records", all.concat());
}

#[test]
fn what_was_stored_is_read() {
    let mut read = String::new();
    for layout in Layout::ALL {
        let mut service = Service::new(layout);
        service.store = restored();
        let found = service
            .query(&[])
            .iter()
            .map(|it| format!("{it}\n"))
            .collect::<Vec<_>>();
        let xml = service.message(
            "<n:message xmlns:n='http://ggf.org/ns/nmwg/base/2.0/' type='LSQueryRequest'>\
             <n:metadata id='m'><x:subject xmlns:x='http://ggf.org/ns/nmwg/tools/org/perfsonar\
             /service/lookup/xquery/1.0/'>/nmwg:store[@type='LSStore']/nmwg:data\
             [.//nmwgt:ifAddress='10.0.0.3']</x:subject></n:metadata>\
             <n:data metadataIdRef='m'/></n:message>",
        );
        read += &format!("{layout:?}\n{}{xml}\n", found.concat());
    }
    insta::assert_snapshot!("read", read);
}
