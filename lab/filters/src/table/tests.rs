//! Tests of `table`.

use proptest::prelude::*;

use super::*;

fn scan(name: &str, text: &str) -> Result<Table, String> {
    let bytes = Arc::new(text.as_bytes().to_vec());
    Table::scan(name, bytes, b',').map_err(|error| error.to_string())
}

#[test]
fn what_is_wrong_has_its_line() {
    let check =
        |name: &str, text: &str, said: &str| assert_eq!(scan(name, text).unwrap_err(), said);
    check(
        "a.csv",
        "a,b\n1,2\n3\n",
        "line 3: 1 values, and there are 2 columns",
    );
    check("a.csv", "a,a\n1,2\n", "line 1: two columns are called `a`");
    check("a.csv", "a,b\n", "it has no rows");
    check("a.csv", "", "it has no rows");
    check(
        "a.jsonl",
        "{\"a\":1}\n\n[1]\n",
        "line 3: this is not a JSON object",
    );
    check(
        "a.jsonl",
        "{\"a\":1}\n{\"b\":1}\n",
        "line 2: there is no `a`, which the first row has",
    );
    let long = format!("a\n{}\n", "x".repeat(70_000));
    check("a.csv", &long, "line 2: a row has at most 65536 bytes");
    assert!(
        scan("a.csv", "a\n\"un").is_ok(),
        "the csv crate ends it at the end"
    );
}

#[test]
fn columns_may_have_another_character_between_them() {
    let rows = |text: &str, delimiter: u8| {
        let bytes = Arc::new(text.as_bytes().to_vec());
        Table::scan("a.csv", bytes, delimiter)
    };
    for (text, delimiter) in [("a;b\n1;\"2;3\"\n", b';'), ("a\tb\n1\t2;3\n", b'\t')] {
        let table = rows(text, delimiter).unwrap();
        assert_eq!(table.row(0, &[0, 1]).unwrap(), ["1", "2;3"]);
        assert_eq!(table.column_from(0, 1).unwrap(), ["2;3"]);
    }
    let said = |text: &str, delimiter: u8| rows(text, delimiter).unwrap_err().to_string();
    let expected = r#"its columns are separated by ";", not by ",": say `delimiter: ";"`"#;
    assert_eq!(said("a;b\n1,5;2\n", b','), expected);
    let expected = r#"its columns are separated by ",", not by tab: say `delimiter: ","`"#;
    assert_eq!(said("a,b\n1,2\n", b'\t'), expected);
}

#[test]
fn a_byte_order_mark_begins_json_lines() {
    let table = scan("u.jsonl", "\u{feff}{\"n\":1}\n{\"n\":2}\n").unwrap();
    assert_eq!(table.row(0, &[0]).unwrap(), ["1"]);
    assert_eq!(table.row(1, &[0]).unwrap(), ["2"]);
}

#[test]
fn json_lines_give_texts_and_all_else_as_json() {
    let table = scan(
        "u.jsonl",
        "{\"n\":\"ada\",\"k\":[1]}\n\n{\"k\":null,\"n\":7}",
    )
    .unwrap();
    assert_eq!(table.columns(), ["k", "n"]);
    assert_eq!(table.row(0, &[1, 0]).unwrap(), ["ada", "[1]"]);
    assert_eq!(table.row(1, &[1, 0]).unwrap(), ["7", "null"]);
    assert!(table.row(2, &[0]).is_err());
}

proptest! {
    /// Any rows written as CSV are read back unchanged, also across the borders of stretches.
    #[test]
    fn every_row_is_found(rows in proptest::collection::vec(("[ -~\n]{1,20}", "\\PC{0,12}"), 1..300)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["first", "second"]).unwrap();
        for (first, second) in &rows {
            writer.write_record([first, second]).unwrap();
        }
        let text = writer.into_inner().unwrap();
        let table = Table::scan("t.csv", Arc::new(text), b',').unwrap();
        prop_assert_eq!(table.rows(), rows.len() as u64);
        for (at, (first, second)) in rows.iter().enumerate() {
            let row = table.row(at as u64, &[1, 0]).unwrap();
            prop_assert_eq!(&row, &[second.clone(), first.clone()]);
        }
    }
}
