//! Tests of `timeline`.

use proptest::prelude::*;

use super::*;

fn table(csv: &str) -> Arc<Table> {
    Arc::new(Table::scan("t.csv", Arc::new(csv.as_bytes().to_vec()), b',').unwrap())
}

#[test]
fn moments_are_read_to_the_nanosecond() {
    let check = |unit: TimeUnit, text, expected| assert_eq!(unit.nanos(text), expected, "{text}");
    check(
        TimeUnit::Seconds,
        "1767607200.123456789",
        Some(1_767_607_200_123_456_789),
    );
    check(TimeUnit::Seconds, " 2 ", Some(2_000_000_000));
    check(TimeUnit::Seconds, "-0.5", Some(-500_000_000));
    check(TimeUnit::Millis, "1.5", Some(1_500_000));
    check(TimeUnit::Micros, "7", Some(7_000));
    check(TimeUnit::Nanos, "7.9", Some(7));
    check(
        TimeUnit::DateTime,
        "1970-01-01T00:00:01.5Z",
        Some(1_500_000_000),
    );
    check(TimeUnit::DateTime, "1970-01-01T01:00:00+01:00", Some(0));
    for text in ["", "x", "1e3", "1.2.3", ".5", "+1", "99999999999999"] {
        check(TimeUnit::Seconds, text, None);
    }
    check(TimeUnit::DateTime, "5", None);
}

#[test]
fn a_stretch_begins_and_ends_where_it_is_said() {
    let rows = table("time,path\n10,/a\n11,/b\n12.5,/c\n15,/d\n");
    let scan = |from, to: Option<u64>| {
        let span = (Duration::from_secs(from), to.map(Duration::from_secs));
        Recorded::scan(&rows, (0, TimeUnit::Seconds), span).unwrap()
    };
    let all = scan(0, None).unwrap();
    assert_eq!((all.first, all.rows, all.origin_ns), (0, 4, 10_000_000_000));
    let middle = scan(1, Some(5)).unwrap();
    assert_eq!((middle.first, middle.rows), (1, 2));
    assert_eq!(
        (middle.origin_ns, middle.last_ns),
        (11_000_000_000, 12_500_000_000)
    );
    assert_eq!(scan(6, None), None);
}

#[test]
fn what_is_no_timeline_is_told_by_its_row() {
    let scan = |csv: &str| {
        let unit = (0, TimeUnit::Seconds);
        let scanned = Recorded::scan(&table(csv), unit, (Duration::ZERO, None));
        scanned.unwrap_err().to_string()
    };
    assert_eq!(scan("time\n1\nsoon\n"), "row 2: `soon` is no moment");
    assert_eq!(
        scan("time\n5\n5\n4\n"),
        "row 3: its moment is before that of the row before"
    );
}

proptest! {
    #[test]
    fn rows_arrive_in_order_each_at_its_moment(
        gaps in proptest::collection::vec(0u32..5_000, 1..300),
        from in 0u64..200,
        scale in 0.1..50.0f64,
    ) {
        let mut at = 1_000_000u64;
        let mut csv = "number,ms\n".to_owned();
        let mut all = Vec::new();
        for (number, gap) in gaps.iter().enumerate() {
            at += u64::from(*gap);
            csv.push_str(&format!("{number},{at}\n"));
            all.push(at);
        }
        let rows = table(&csv);
        let unit = TimeUnit::Millis;
        let span = (Duration::from_secs(from), None);
        let Some(found) = Recorded::scan(&rows, (1, unit), span).unwrap() else {
            prop_assert!(all.last().unwrap() - all[0] < from * 1000);
            return Ok(());
        };
        let data = Data {
            delimiter: b',',
            file: "t.csv".to_owned(),
            each: crate::data::Each::Session,
            shuffled: false,
            unique: false,
            columns: Vec::new(),
            rows: rows.rows(),
            length: rows.length(),
            sha256: rows.sha256().to_owned(),
            table: Some(rows),
        };
        let timeline = Timeline {
            column: 1,
            unit,
            first: found.first,
            rows: found.rows,
            origin_ns: found.origin_ns,
            scale,
        };
        let mut replay = Replay::new(&timeline, Some(&Arc::new(data)));
        let expected = all.iter().enumerate().filter(|(_, at)| **at >= all[0] + from * 1000);
        for (row, at) in expected {
            let (number, when) = replay.advance().unwrap();
            prop_assert_eq!(number, row as u64);
            let due = (at - all[0] - from * 1000) as f64 / 1e3 / scale;
            prop_assert!((when.as_secs_f64() - due).abs() < 1e-6, "{when:?} {due}");
        }
        prop_assert!(replay.advance().is_none());
    }
}
