//! Any bytes as a file of rows: a table whose every row can be read, or an error.

use std::sync::Arc;

use lab_workload::Table;

pub(crate) fn run(bytes: &[u8]) {
    for (name, delimiter) in [("rows.csv", b','), ("rows.csv", b';'), ("rows.jsonl", b',')] {
        let Ok(table) = Table::scan(name, Arc::new(bytes.to_vec()), delimiter) else {
            continue;
        };
        assert!(table.rows() > 0 && table.sha256().len() == 64);
        let columns: Vec<usize> = (0..table.columns().len()).collect();
        for row in 0..table.rows() {
            let values = table.row(row, &columns).expect("a row that was judged");
            assert_eq!(values.len(), columns.len());
        }
    }
}
