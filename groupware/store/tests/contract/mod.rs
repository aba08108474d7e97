//! The contract of every engine. An engine's tests include it and provide a fresh store: `keeps_the_contract!(open)`,
//! where `open` returns `None` if the engine isn't available here.

use std::ops::ControlFlow;

use groupware_store::{
    Batch, CommitError, Form, MAX_KEY_BYTES, Numbered, PrefetchSet, Record, Snapshot, Store,
    StoreError, counters,
};

macro_rules! keeps_the_contract {
    ($open:path) => {
        $crate::contract::keeps_the_contract! { $open:
            records_come_back_as_they_were_put
            scans_are_ordered_bounded_and_stay_in_their_partition
            ranges_and_partitions_are_deleted
            additions_from_many_threads_all_count
            numbers_are_handed_out_once_and_in_order
            counters_start_where_they_are_told_to
            a_ring_keeps_the_newest
            a_failed_assert_changes_nothing_and_names_itself
            a_snapshot_does_not_move
            what_is_too_large_is_refused
            a_closed_store_refuses_to_write_and_still_reads
            values_are_shown_where_they_lie
            many_records_go_some_at_a_time
            several_records_are_read_at_once
            short_ranges_are_read_at_once
            all_records_are_walked
            any_bytes_are_keys_and_values
            a_batch_sees_those_before_it_in_its_group
            who_is_shown_a_record_can_ask_for_another
        }
    };
    ($open:path: $($rule:ident)*) => {
        $(
            #[test]
            fn $rule() {
                if let Some((store, _keeps)) = $open() {
                    $crate::contract::$rule(store);
                }
            }
        )*
    };
}
pub(crate) use keeps_the_contract;

pub(crate) fn batch(build: impl FnOnce(&mut Batch)) -> Batch {
    let mut batch = Batch::new();
    build(&mut batch);
    batch
}

pub(crate) fn get(store: &Store, partition: &str, key: &str) -> Option<Record> {
    store
        .look(|snapshot| snapshot.get(partition, key.as_bytes()))
        .unwrap()
}

pub(crate) fn keys(
    store: &Store,
    partition: &str,
    from: &str,
    to: Option<&str>,
    limit: usize,
) -> String {
    store
        .look(|snapshot| scan(snapshot, partition, from, to, limit))
        .unwrap()
}

fn scan(
    snapshot: &dyn Snapshot,
    partition: &str,
    from: &str,
    to: Option<&str>,
    limit: usize,
) -> Result<String, StoreError> {
    let mut found = Vec::new();
    let to = to.map(str::as_bytes);
    snapshot.scan(partition, from.as_bytes(), to, limit, &mut |key, _| {
        found.push(String::from_utf8(key.to_vec()).unwrap());
        ControlFlow::Continue(())
    })?;
    Ok(found.join(" "))
}

pub(crate) fn records_come_back_as_they_were_put(store: Store) {
    let first = store
        .commit_blocking(batch(|b| {
            b.put("mail/ada", "k", "one")
                .put("mail/ada", [0, 255], vec![0, 1, 2]);
        }))
        .unwrap();
    let record = get(&store, "mail/ada", "k").unwrap();
    assert_eq!(
        record,
        Record {
            value: "one".into(),
            revision: first.revision
        }
    );
    let second = store
        .commit_blocking(batch(|b| _ = b.put("mail/ada", "k", "")))
        .unwrap();
    assert!(second.revision > first.revision);
    assert_eq!(get(&store, "mail/ada", "k").unwrap().value, "");
    assert_eq!(get(&store, "mail/eve", "k"), None);
    assert_eq!(get(&store, "mail/ada", "j"), None);
    store
        .commit_blocking(batch(|b| _ = b.delete("mail/ada", "k")))
        .unwrap();
    assert_eq!(get(&store, "mail/ada", "k"), None);
    assert!(store.data_bytes().unwrap() > 0);
}

pub(crate) fn scans_are_ordered_bounded_and_stay_in_their_partition(store: Store) {
    store
        .commit_blocking(batch(|b| {
            for key in ["c/2", "c/10", "a", "c/1", "d", ""] {
                b.put("p", key, key);
            }
            b.put("o", "c/0", "").put("q", "c/3", "");
        }))
        .unwrap();
    assert_eq!(keys(&store, "p", "", None, 100), " a c/1 c/10 c/2 d");
    assert_eq!(keys(&store, "p", "c/", Some("c0"), 100), "c/1 c/10 c/2");
    assert_eq!(keys(&store, "p", "c/10", Some("c/2"), 100), "c/10");
    assert_eq!(keys(&store, "p", "c/", None, 2), "c/1 c/10");
    assert_eq!(keys(&store, "p", "d", Some("a"), 100), "");
    assert_eq!(keys(&store, "p", "a", None, 0), "");
    assert_eq!(keys(&store, "none", "", None, usize::MAX), "");
    let mut seen = 0;
    store
        .read(|snapshot| {
            snapshot.scan("p", b"", None, 100, &mut |_, _| {
                seen += 1;
                if seen == 2 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        })
        .unwrap();
    assert_eq!(seen, 2);
}

pub(crate) fn ranges_and_partitions_are_deleted(store: Store) {
    store
        .commit_blocking(batch(|b| {
            for key in ["a", "b", "c", "d"] {
                b.put("p", key, "").put("q", key, "");
            }
        }))
        .unwrap();
    store
        .commit_blocking(batch(|b| {
            b.delete_range("p", "b", "d").delete_range("p", "d", "a");
            b.delete_range("none", "a", "b");
        }))
        .unwrap();
    assert_eq!(keys(&store, "p", "", None, 100), "a d");
    // In order: a put after the deletion of the partition stays.
    store
        .commit_blocking(batch(|b| {
            b.put("p", "e", "").delete_partition("p").put("p", "f", "");
        }))
        .unwrap();
    assert_eq!(keys(&store, "p", "", None, 100), "f");
    assert_eq!(keys(&store, "q", "", None, 100), "a b c d");
}

pub(crate) fn additions_from_many_threads_all_count(store: Store) {
    std::thread::scope(|scope| {
        for thread in 0..8_i64 {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..50 {
                    let add = batch(|b| {
                        b.add("p", "sum", [1, -1, thread]);
                    });
                    store.commit_blocking(add).unwrap();
                }
            });
        }
    });
    let sums = |key| get(&store, "p", key).map(|record| counters(&record.value).collect());
    assert_eq!(sums("sum"), Some(vec![400, -400, 50 * 28]));
    let edge = batch(|b| {
        b.put("p", "odd", "no number")
            .add("p", "odd", [i64::MAX])
            .add("p", "odd", [i64::MAX, 7])
            .add("p", "odd", []);
    });
    store.commit_blocking(edge).unwrap();
    assert_eq!(sums("odd"), Some(vec![i64::MAX, 7]));
}

/// The counter of this index in the record `n`.
fn counter(index: u32) -> (bytes::Bytes, u32) {
    (bytes::Bytes::from_static(b"n"), index)
}

/// With many threads and several numbers per batch, each number is assigned once, without gaps, and in the order of
/// commits.
pub(crate) fn numbers_are_handed_out_once_and_in_order(store: Store) {
    const THREADS: u32 = 8;
    const BATCHES: u32 = 30;
    let put = |thread: u32, number: u32| {
        batch(|b| {
            b.add("p", "n", [7, 2]);
            for behind in [1, 0] {
                let key = Numbered::new("k/").number(counter(1), behind, Form::Bytes);
                let text = format!("{thread}.{number}.{behind} is ");
                let value = Numbered::new(text).number(counter(1), behind, Form::Decimal);
                b.put_numbered("p", key, value.bytes(b"!"));
            }
        })
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, put) = (&store, &put);
            scope.spawn(move || {
                for number in 0..BATCHES {
                    store.commit_blocking(put(thread, number)).unwrap();
                }
            });
        }
    });
    let (mut last, mut next) = (0, 1);
    let read = store.read(|snapshot| {
        snapshot.scan("p", b"k/", Some(b"k0"), usize::MAX, &mut |key, record| {
            let (_, number) = key.split_last_chunk::<8>().unwrap();
            assert_eq!(u64::from_be_bytes(*number), next);
            let value = String::from_utf8(record.value.to_vec()).unwrap();
            assert!(value.ends_with(&format!(" is {next}!")), "{value}");
            assert!(record.revision >= last, "in the order of commits");
            last = record.revision;
            next += 1;
            ControlFlow::Continue(())
        })
    });
    read.map_err(|error: StoreError| error).unwrap();
    assert_eq!(next - 1, u64::from(2 * THREADS * BATCHES));
    // A missing counter counts as 0, and a rejected batch takes no number.
    let refused = batch(|b| {
        b.assert_exists("p", "never").add("p", "n", [0, 1]);
    });
    store.commit_blocking(refused).unwrap_err();
    let value = |index, behind| Numbered::default().number(counter(index), behind, Form::Decimal);
    let none = batch(|b| {
        b.put_numbered("q", Numbered::new("a"), value(0, 0));
        b.put_numbered("p", Numbered::new("b"), value(9, 5));
        b.put_numbered("p", Numbered::new("c"), value(1, 0));
    });
    store.commit_blocking(none).unwrap();
    assert_eq!(get(&store, "q", "a").unwrap().value, "0");
    assert_eq!(get(&store, "p", "b").unwrap().value, "0");
    assert_eq!(get(&store, "p", "c").unwrap().value, (next - 1).to_string());
    let long = Numbered::new(vec![b'k'; MAX_KEY_BYTES - 7]).number(counter(0), 0, Form::Bytes);
    let too_long = batch(|b| _ = b.put_numbered("p", long, Numbered::default()));
    let outcome = store.commit_blocking(too_long);
    assert!(matches!(outcome, Err(CommitError::TooLarge)), "{outcome:?}");
}

pub(crate) fn counters_start_where_they_are_told_to(store: Store) {
    let sums = |key| {
        let record = get(&store, "p", key).unwrap();
        counters(&record.value).collect::<Vec<_>>()
    };
    let add = |start: &[i64]| batch(|b| _ = b.add_from("p", "n", start, [1, 0, 3]));
    store.commit_blocking(add(&[100, 7])).unwrap();
    assert_eq!(sums("n"), [101, 7, 3]);
    store.commit_blocking(add(&[500, 9])).unwrap();
    assert_eq!(sums("n"), [102, 7, 6]);
    // Within a batch, too: a deleted record starts anew, and a put one is added to.
    let again = batch(|b| {
        b.delete("p", "n").add_from("p", "n", [10], [1]);
        b.put("p", "m", "").add_from("p", "m", [10], [1]);
        b.add_from("p", "m", [10], [1]);
    });
    store.commit_blocking(again).unwrap();
    assert_eq!((sums("n"), sums("m")), (vec![11], vec![2]));
}

pub(crate) fn a_ring_keeps_the_newest(store: Store) {
    for _ in 0..23 {
        let put = batch(|b| {
            b.add("p", "n", [1]);
            let key = Numbered::new("r/").number(counter(0), 0, Form::Ring(10));
            b.put_numbered(
                "p",
                key,
                Numbered::default().number(counter(0), 0, Form::Decimal),
            );
        });
        store.commit_blocking(put).unwrap();
    }
    let mut found = Vec::new();
    let read = store.read(|snapshot| {
        snapshot.scan("p", b"r/", Some(b"r0"), usize::MAX, &mut |key, record| {
            let (_, place) = key.split_last_chunk::<2>().unwrap();
            let number = String::from_utf8(record.value.to_vec()).unwrap();
            found.push((u16::from_be_bytes(*place), number.parse().unwrap()));
            ControlFlow::Continue(())
        })
    });
    read.map_err(|error: StoreError| error).unwrap();
    let expected = (0..10).map(|place| (place, if place < 4 { 20 + place } else { 10 + place }));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

pub(crate) fn a_failed_assert_changes_nothing_and_names_itself(store: Store) {
    let old = store
        .commit_blocking(batch(|b| _ = b.put("p", "k", "1")))
        .unwrap()
        .revision;
    let new = store
        .commit_blocking(batch(|b| _ = b.put("p", "k", "2")))
        .unwrap()
        .revision;
    let conflict = |build: fn(&mut Batch, u64), revision, expected: usize| {
        let outcome = store.commit_blocking(batch(|b| {
            build(b, revision);
            b.put("p", "k", "changed").put("q", "k", "changed");
        }));
        let Err(CommitError::Conflict { index }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(index, expected);
    };
    conflict(|b, _| _ = b.assert_absent("p", "k"), old, 0);
    conflict(
        |b, _| _ = b.assert_exists("p", "k").assert_exists("q", "k"),
        old,
        1,
    );
    conflict(|b, old| _ = b.assert_revision("p", "k", old), old, 0);
    conflict(|b, old| _ = b.assert_revision("p", "none", old), old, 0);
    assert_eq!(get(&store, "p", "k").unwrap().value, "2");
    assert_eq!(get(&store, "q", "k"), None);
    store
        .commit_blocking(batch(|b| {
            b.assert_absent("q", "k")
                .assert_exists("p", "k")
                .assert_revision("p", "k", new);
            b.put("p", "k", "3");
        }))
        .unwrap();
    assert_eq!(get(&store, "p", "k").unwrap().value, "3");
    assert_eq!(store.stats().commits, 3);
    assert_eq!(store.stats().conflicts, 4);
}

pub(crate) fn a_snapshot_does_not_move(store: Store) {
    store
        .commit_blocking(batch(|b| _ = b.put("p", "a", "1")))
        .unwrap();
    store
        .read(|snapshot| {
            let before = snapshot.get("p", b"a")?;
            store
                .commit_blocking(batch(|b| _ = b.put("p", "a", "2").put("p", "b", "")))
                .unwrap();
            assert_eq!(snapshot.get("p", b"a")?, before);
            assert_eq!(scan(snapshot, "p", "", None, 100)?, "a");
            assert_eq!(get(&store, "p", "a").unwrap().value, "2");
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

pub(crate) fn what_is_too_large_is_refused(store: Store) {
    let long = vec![b'k'; MAX_KEY_BYTES + 1];
    let outcome = store.commit_blocking(batch(|b| _ = b.put("p", long, "")));
    assert!(matches!(outcome, Err(CommitError::TooLarge)), "{outcome:?}");
}

pub(crate) fn a_closed_store_refuses_to_write_and_still_reads(store: Store) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    store
        .commit_blocking(batch(|b| _ = b.put("p", "k", "1")))
        .unwrap();
    runtime.block_on(async {
        let (waiting, ()) = tokio::join!(
            store.commit(batch(|b| _ = b.put("p", "l", "1"))),
            store.close()
        );
        waiting.unwrap();
        let late = store.commit(batch(|b| _ = b.put("p", "m", "1"))).await;
        assert!(matches!(late, Err(CommitError::Closed)), "{late:?}");
        store.close().await;
    });
    assert_eq!(keys(&store, "p", "", None, 100), "k l");
}

pub(crate) fn values_are_shown_where_they_lie(store: Store) {
    store
        .commit_blocking(batch(|b| {
            b.put("p", "a", "one")
                .put("p", "b", vec![7; 5000])
                .put("p", "c", "three");
        }))
        .unwrap();
    let mut found = Vec::new();
    let browsed = store.read(|snapshot| {
        snapshot.browse("p", b"a", None, 2, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
    });
    browsed.unwrap();
    let expected = [(&b"a"[..], b"one".to_vec()), (b"b", vec![7; 5000])];
    assert_eq!(found, expected.map(|(key, value)| (key.to_vec(), value)));
}

pub(crate) fn many_records_go_some_at_a_time(store: Store) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let commit = |batch| runtime.block_on(store.commit(batch)).unwrap();
    for from in (0..3000).step_by(1000) {
        commit(batch(|batch| {
            for number in from..from + 1000 {
                batch.put("p", format!("k{number:04}"), "value");
            }
        }));
    }
    commit(batch(|batch| {
        for number in 0..5 {
            batch.put("p", format!("large{number}"), vec![7; 700 << 10]);
        }
        batch
            .put("p", "a", "")
            .put("p", "z", "")
            .put("q", "k0000", "");
    }));
    let groups = store.stats().groups;
    store.remove_in_slices("p", b"k", Some(b"m")).unwrap();
    assert_eq!(keys(&store, "p", "", None, usize::MAX), "a z");
    assert_eq!(keys(&store, "q", "", None, usize::MAX), "k0000");
    // Thirty batches of 100 each, and large records one by one.
    let slices = store.stats().groups - groups;
    assert!((34..=37).contains(&slices), "{slices}");
    store.remove_in_slices("p", b"", None).unwrap();
    store.remove_in_slices("p", b"", None).unwrap();
    assert_eq!(keys(&store, "p", "", None, usize::MAX), "");
}

pub(crate) fn several_records_are_read_at_once(store: Store) {
    let put = batch(|b| {
        b.put("p", "a", "1").put("p", "b", vec![7; 5000]);
        b.put("q", "a", "2");
    });
    let revision = store.commit_blocking(put).unwrap().revision;
    let keys: [(&str, &[u8]); 5] = [
        ("q", b"a"),
        ("p", b"none"),
        ("p", b"b"),
        ("q", b"a"),
        ("none", b"a"),
    ];
    let (many, singly) = store
        .read(|snapshot| {
            let many = snapshot.get_many(&keys)?;
            let mut soon = PrefetchSet::default();
            for (partition, key) in keys {
                soon.key(partition, key);
            }
            snapshot.prefetch(&soon)?;
            let one = |(partition, key): &(&str, &[u8])| snapshot.get(partition, key);
            let singly: Result<Vec<_>, StoreError> = keys.iter().map(one).collect();
            assert_eq!(snapshot.get_many(&[])?, []);
            Ok::<_, StoreError>((many, singly?))
        })
        .unwrap();
    assert_eq!(many, singly);
    let record = |value: &[u8]| {
        let value = value.to_vec().into();
        Some(Record { value, revision })
    };
    let expected = [record(b"2"), None, record(&[7; 5000]), record(b"2"), None];
    assert_eq!(many, expected);
}

pub(crate) fn short_ranges_are_read_at_once(store: Store) {
    let put = batch(|b| {
        b.put("p", "a", "1").put("p", "b", "2").put("q", "a", "3");
        for number in 0..100_u8 {
            b.put("many", [number], "");
        }
    });
    store.commit_blocking(put).unwrap();
    let ranges: [(&str, &[u8], &[u8]); 5] = [
        ("q", b"a", b"z"),
        ("p", b"a", b"b"),
        ("none", b"a", b"z"),
        ("many", &[0], &[200]),
        ("p", b"a", b"z"),
    ];
    let scan = |snapshot: &dyn Snapshot, limit: usize| {
        let mut all = Vec::new();
        for (partition, from, to) in ranges {
            let mut found = Vec::new();
            snapshot.scan(partition, from, Some(to), limit, &mut |key, record| {
                found.push((key.to_vec(), record));
                ControlFlow::Continue(())
            })?;
            all.push(found);
        }
        Ok::<_, StoreError>(all)
    };
    for limit in [usize::MAX, 1] {
        let singly = store.read(|snapshot| scan(snapshot, limit)).unwrap();
        let at_once = store.read(|snapshot| {
            let mut soon = PrefetchSet::default();
            for (partition, from, to) in ranges {
                soon.range(partition, from, to);
            }
            snapshot.prefetch(&soon)?;
            scan(snapshot, limit)
        });
        assert_eq!(at_once.unwrap(), singly);
        let counts: Vec<_> = singly.iter().map(Vec::len).collect();
        let expected = [1, 1, 0, 100, 2].map(|count| limit.min(count));
        assert_eq!(counts, expected);
    }
}

pub(crate) fn all_records_are_walked(store: Store) {
    let put = batch(|b| {
        for partition in ["b", "a", "c"] {
            for key in ["2", "1", ""] {
                b.put(partition, key, partition);
            }
        }
    });
    store.commit_blocking(put).unwrap();
    let walk = |after: Option<(&str, &[u8])>, limit| {
        let mut seen = String::new();
        store
            .read(|snapshot| {
                snapshot.walk(after, limit, &mut |partition, key, record| {
                    assert_eq!(record.value, partition);
                    let key = String::from_utf8_lossy(key);
                    seen += &format!("{partition}{key} ");
                    match seen.len() > 50 {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })
            })
            .map_err(|error: StoreError| error)
            .unwrap();
        seen
    };
    assert_eq!(walk(None, 100), "a a1 a2 b b1 b2 c c1 c2 ");
    assert_eq!(walk(None, 4), "a a1 a2 b ");
    assert_eq!(walk(Some(("a", b"2")), 2), "b b1 ");
    assert_eq!(walk(Some(("b", b"1x")), 100), "b2 c c1 c2 ");
    assert_eq!(walk(Some(("aa", b"")), 1), "b ");
    assert_eq!(walk(Some(("c", b"2")), 100), "");
}

pub(crate) fn any_bytes_are_keys_and_values(store: Store) {
    let partitions = ["p", "p\0", "p\0q", "\u{10ffff}", "ü"];
    let keys: [&[u8]; 4] = [b"\0", b"\0\0", b"\x7f\x80", b"\xff\xff"];
    let put = batch(|b| {
        for partition in partitions {
            for key in keys {
                b.put(partition, key, [partition.as_bytes(), key].concat());
            }
        }
    });
    store.commit_blocking(put).unwrap();
    for partition in partitions {
        let mut found = Vec::new();
        store
            .read(|snapshot| {
                snapshot.scan(partition, b"", None, 100, &mut |key, record| {
                    assert_eq!(record.value, [partition.as_bytes(), key].concat());
                    found.push(key.to_vec());
                    ControlFlow::Continue(())
                })
            })
            .map_err(|error: StoreError| error)
            .unwrap();
        assert_eq!(found, keys);
    }
}

/// Waiting batches share a transaction, and each sees the effects of earlier ones.
pub(crate) fn a_batch_sees_those_before_it_in_its_group(store: Store) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let commit = |b: Batch| store.commit(b);
    let (made, seen, emptied, gone, again) = runtime.block_on(async {
        tokio::join!(
            commit(batch(|b| _ = b
                .assert_absent("p", "k")
                .put("p", "k", "1")
                .add("p", "n", [1]))),
            commit(batch(|b| _ = b
                .assert_exists("p", "k")
                .add("p", "n", [2])
                .put("p", "l", ""))),
            commit(batch(
                |b| _ = b.delete_range("p", "k", "l").put("p", "z", "2")
            )),
            commit(batch(
                |b| _ = b.assert_exists("p", "k").put("p", "never", "")
            )),
            commit(batch(|b| _ = b.assert_absent("p", "k").add("p", "n", [4]))),
        )
    });
    let revisions = [made, seen, emptied, again].map(|outcome| outcome.unwrap().revision);
    assert!(
        revisions.is_sorted_by(|one, next| one < next),
        "{revisions:?}"
    );
    assert!(
        matches!(gone, Err(CommitError::Conflict { index: 0 })),
        "{gone:?}"
    );
    assert_eq!(keys(&store, "p", "", None, 100), "l n z");
    let sum = get(&store, "p", "n").unwrap();
    assert_eq!(counters(&sum.value).collect::<Vec<_>>(), [7]);
    assert_eq!(sum.revision, revisions[3]);
}

/// A visitor of many records, large ones among them, may read others meanwhile.
pub(crate) fn who_is_shown_a_record_can_ask_for_another(store: Store) {
    const RECORDS: u32 = 300;
    let large = vec![7; 100 << 10];
    for first in (0..RECORDS).step_by(100) {
        let put = batch(|b| {
            for number in first..first + 100 {
                b.put("p", number.to_be_bytes(), large.clone());
                b.put("q", number.to_be_bytes(), number.to_be_bytes().to_vec());
            }
        });
        store.commit_blocking(put).unwrap();
    }
    let mut seen = 0_u32;
    let read = store.read(|snapshot| {
        let mut failed = None;
        snapshot.scan("p", b"", None, usize::MAX, &mut |key, record| {
            assert_eq!(
                (key, record.value.len()),
                (&seen.to_be_bytes()[..], large.len())
            );
            match snapshot.get("q", key) {
                Ok(other) => assert_eq!(other.unwrap().value, key),
                Err(error) => failed = Some(error),
            }
            seen += 1;
            match failed.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        failed.map_or(Ok(()), Err)
    });
    read.map_err(|error: StoreError| error).unwrap();
    assert_eq!(seen, RECORDS);
}
