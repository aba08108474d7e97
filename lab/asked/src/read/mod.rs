//! Parses answers as counters. The server determines the content of an answer: it may be anything.

mod found;
mod json;
mod lines;
mod prometheus;
mod table;

use crate::how::{How, Read};
use found::Found;
pub(crate) use found::{MOST_READ, Reading, Unreadable};

/// Reads an answer.
///
/// # Errors
/// When it is not of the expected form. A table without rows is no error: nothing was counted yet.
pub(crate) fn read(how: &How, text: &str) -> Result<Reading, Unreadable> {
    let mut found = Found::new(how);
    match how.read {
        Read::Table => table::read(how, text, &mut found)?,
        Read::Lines => lines::read(text, &mut found),
        Read::Json => json::read(how, text, &mut found)?,
        Read::Prometheus => prometheus::read(how, text, &mut found),
    }
    let may_be_empty = how.read == Read::Table;
    if found.reading.values.is_empty() && !may_be_empty {
        return Err(Unreadable::Empty {
            has_keep: !how.keep.is_empty(),
        });
    }
    Ok(found.reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab_filters::JsonPath;

    fn shown(how: &How, text: &str) -> Vec<String> {
        let reading = read(how, text).unwrap();
        let values = reading.values.iter();
        values
            .map(|(series, value)| format!("{series} {value}"))
            .collect()
    }

    #[test]
    fn tables_have_labels_and_counters() {
        let mut how = How::of(Read::Table);
        let csv = "queryid,query,calls,total_exec_time\n\
                   77,\"select a, b\n from t\",10,3.5\n78,commit,2,\n77,\"select a, b from t\",5,1\n";
        assert_eq!(
            shown(&how, csv),
            [
                "calls{queryid=\"77\",query=\"select a, b from t\"} 15",
                "total_exec_time{queryid=\"77\",query=\"select a, b from t\"} 4.5",
                "calls{queryid=\"78\",query=\"commit\"} 2",
            ]
        );
        how.text = false;
        how.keep = vec!["c*".to_owned()];
        let hidden = shown(&how, csv);
        assert!(
            hidden[0].starts_with("calls{queryid=\"77\",query=\"#"),
            "{hidden:?}"
        );
        assert_eq!(hidden.len(), 2);
        // As `mysql --batch` prints them.
        let tabs = "digest\tcalls\nselect ?\t3\n";
        assert_eq!(
            shown(&How::of(Read::Table), tabs),
            ["calls{digest=\"select ?\"} 3"]
        );
        // Nothing was counted yet.
        assert!(shown(&How::of(Read::Table), "query,calls\n").is_empty());
        assert!(matches!(
            read(&How::of(Read::Table), ""),
            Err(Unreadable::Form { .. })
        ));
    }

    #[test]
    fn named_columns_are_labels_although_they_are_numbers() {
        let mut how = How::of(Read::Table);
        how.labels = vec!["shard".to_owned()];
        assert_eq!(
            shown(&how, "shard,reads\n1,10\n2,20\n"),
            ["reads{shard=\"1\"} 10", "reads{shard=\"2\"} 20"]
        );
    }

    #[test]
    fn rows_of_states_are_counted() {
        let mut how = How::of(Read::Table);
        how.rows_ms = Some(500);
        let csv = "type,event,pid\nLock,tuple,7\nLock,tuple,7\n,,8\n";
        assert_eq!(
            shown(&how, csv),
            [
                "time{type=\"Lock\",event=\"tuple\",pid=\"7\"} 2",
                "time{pid=\"8\"} 1"
            ]
        );
    }

    #[test]
    fn lines_have_names_and_numbers() {
        let redis = "# Commandstats\r\ncmdstat_get:calls=21,usec=175,usec_per_call=8.33\r\nkeyspace_hits:12\r\nredis_mode:standalone\r\n";
        assert_eq!(
            shown(&How::of(Read::Lines), redis),
            [
                "calls{name=\"cmdstat_get\"} 21",
                "usec{name=\"cmdstat_get\"} 175",
                "usec_per_call{name=\"cmdstat_get\"} 8.33",
                "keyspace_hits 12",
            ]
        );
        let jvm = "4711:\njava.ci.totalTime=123456\nsun.gc.collector.0.name=\"G1\"\n";
        assert_eq!(
            shown(&How::of(Read::Lines), jvm),
            ["java.ci.totalTime 123456"]
        );
        let mysql = "Variable_name\tValue\nCom_select\t42\nSsl_cipher\t\n";
        assert_eq!(shown(&How::of(Read::Lines), mysql), ["Com_select 42"]);
        let memcached = "STAT cmd_get 7\r\nSTAT version 1.6\r\nEND\r\n";
        assert_eq!(
            shown(&How::of(Read::Lines), memcached),
            ["cmd_get 7", "version 1.6"]
        );
        let error = read(&How::of(Read::Lines), "(error) NOAUTH").unwrap_err();
        assert_eq!(error.to_string(), "its answer has no counter");
    }

    #[test]
    fn json_has_names_by_its_paths() {
        let text = r#"{"db":{"commits":3,"name":"x","up":true},"caches":[{"hits":1},{"hits":2}]}"#;
        assert_eq!(
            shown(&How::of(Read::Json), text),
            ["caches.0.hits 1", "caches.1.hits 2", "db.commits 3"]
        );
        let mut how = How::of(Read::Json);
        let path = JsonPath::parse("$.caches[*].hits").unwrap();
        how.paths.insert("hits".to_owned(), path);
        assert_eq!(shown(&how, text), ["hits 3"]);
        assert!(matches!(read(&how, "{"), Err(Unreadable::Form { .. })));
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        assert!(read(&How::of(Read::Json), &deep).is_err());
    }

    #[test]
    fn prometheus_counters_are_kept_and_gauges_are_not() {
        let text = "# TYPE http_requests_total counter\nhttp_requests_total{path=\"/a\"} 5\n\
                    # TYPE up gauge\nup 1\n# TYPE lag histogram\nlag_bucket{le=\"1\"} 3\nlag_sum 2.5\nlag_count 4\n\
                    bare_total 7\nbare 8\n";
        assert_eq!(
            shown(&How::of(Read::Prometheus), text),
            [
                "http_requests_total{path=\"/a\"} 5",
                "lag_sum 2.5",
                "lag_count 4",
                "bare_total 7"
            ]
        );
        let mut how = How::of(Read::Prometheus);
        how.keep = vec!["bare*".to_owned(), "up".to_owned()];
        // A metric kept by name is a counter, unless the server gives it another type.
        assert_eq!(shown(&how, text), ["bare_total 7", "bare 8"]);
    }
}
