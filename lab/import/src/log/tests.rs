//! Tests of `log`.

use std::io::Cursor;

use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, load_study};
use proptest::prelude::*;

use super::*;

fn options() -> LogOptions {
    LogOptions {
        name: "shop".to_owned(),
        shown: "access.log".to_owned(),
        format: None,
        fields: vec![],
        hosts: vec![],
        methods: SAFE_METHODS.map(str::to_owned).to_vec(),
        url: "http://127.0.0.1:8080".to_owned(),
        exact_status: false,
        seed: 1,
        salt: [7; 16],
    }
}

fn with(log: impl AsRef<[u8]>, options: &LogOptions) -> Result<(ImportedLog, String), LogError> {
    let mut rows = Vec::new();
    let imported = import(&mut Cursor::new(log.as_ref()), options, &mut rows)?;
    Ok((imported, String::from_utf8(rows).unwrap()))
}

/// The rows of a log, as JSON.
fn rows(log: impl AsRef<[u8]>, options: &LogOptions) -> Vec<serde_json::Value> {
    let (_, rows) = with(log, options).unwrap();
    rows.lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

fn of_format(format: &str) -> LogOptions {
    LogOptions {
        format: Some(format.to_owned()),
        ..options()
    }
}

struct Three(ImportedLog, String);

impl Files for Three {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match path {
            "shop.study.yaml" => Ok(self.0.study.clone().into_bytes()),
            "shop.workload.yaml" => Ok(self.0.workload.clone().into_bytes()),
            "shop.jsonl" => Ok(self.1.clone().into_bytes()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

const COMBINED: &str = r#"203.0.113.7 - - [10/Oct/2026:13:55:36 +0000] "GET /a?q=1&token=s3cr3t HTTP/1.1" 200 512 "-" "Mozilla/5.0 (\"x\")"
203.0.113.8 - ada [10/Oct/2026:13:55:36 +0000] "HEAD /b HTTP/1.1" 404 0 "-" "curl/8"
203.0.113.7 - - [10/Oct/2026:13:55:38 +0000] "POST /pay HTTP/1.1" 201 3 "-" "-"
203.0.113.9 - - [10/Oct/2026:13:55:37 +0000] "\x16\x03\x01" 400 150 "-" "-"
203.0.113.7 - - [10/Oct/2026:13:55:39 +0000] "GET /b HTTP/1.1" 200 0 "-" "-"
not a line of a log
"#;

#[test]
fn a_usual_log_is_a_study_that_can_be_planned() {
    let (imported, rows) = with(COMBINED, &options()).unwrap();
    let seconds: Vec<i64> = rows
        .lines()
        .map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap())
        .map(|row| row["time_us"].as_i64().unwrap() / 1_000_000)
        .collect();
    assert_eq!(seconds, [1_791_640_536, 1_791_640_536, 1_791_640_539]);
    for hidden in ["s3cr3t", "203.0.113", "ada"] {
        assert!(!rows.contains(hidden), "{rows}");
    }
    let said = imported.said.join("\n");
    insta::assert_snapshot!(said);
    insta::assert_snapshot!(imported.workload);
    insta::assert_snapshot!(imported.study);
    let loaded = load_study("shop.study.yaml", &Three(imported, rows), &[]).unwrap();
    let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
    assert_eq!(plan.trials.len(), 1);
}

/// All formats have the same two requests.
#[test]
fn a_log_of_nginx_behind_proxies_is_not_taken_for_one_of_haproxy() {
    let line = "9.9.9.9 - - [10/Oct/2026:13:55:36 +0000] \"GET /a/b HTTP/1.1\" 200 512 \"https://shop.example/x\" \
                \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36\" \
                \"203.0.113.7, 10.0.0.1\"\n";
    let rows = rows(line, &options());
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["path"], "/a/b");
}

#[test]
fn all_formats_give_the_same_rows() {
    let row = |us: i64, path: &str| (us, path.to_owned(), "GET 2xx".to_owned());
    let expected = vec![
        row(1_791_640_536_250_000, "/a?q=1"),
        row(1_791_640_537_000_001, "/b"),
    ];
    let check = |log: &str, options: &LogOptions| {
        let found: Vec<_> = rows(log, options)
            .iter()
            .map(|row| {
                let text = |name: &str| row[name].as_str().unwrap().to_owned();
                (row["time_us"].as_i64().unwrap(), text("path"), text("kind"))
            })
            .map(|(us, path, kind)| (us, path, kind.replace("other", "2xx")))
            .collect();
        assert_eq!(found, expected, "{log}");
    };
    // nginx logs the end: the second request took longer, and ended first in the file.
    check(
        "9.9.9.9 1791640538.000 0.999999 /b 200 GET\n9.9.9.9 1791640536.750 0.500 /a?q=1 200 GET\n",
        &of_format("$remote_addr $msec $request_time $request_uri $status $request_method"),
    );
    check(
        "{\"t\":\"2026-10-10T13:55:36.250+00:00\",\"u\":\"\\/a\",\"q\":\"q=1\",\"m\":\"GET\",\"s\":200}\n\
         {\"t\":\"2026-10-10T13:55:37.000001+00:00\",\"u\":\"/b\",\"q\":\"\",\"m\":\"GET\",\"s\":200}\n",
        &of_format(
            "{\"t\":\"$time_iso8601\",\"u\":\"${uri}\",\"q\":\"$args\",\"m\":\"$request_method\",\"s\":$status}",
        ),
    );
    // Apache logs the start.
    check(
        "1791640537000001 1.1.1.1 \"GET /b HTTP/1.1\" 200 80\n1791640536250000 1.1.1.1 \"GET /a?q=1 HTTP/1.1\" 200 9\n",
        &of_format("%{usec}t %h \\\"%r\\\" %>s %{ms}T"),
    );
    check(
        "1791640536250 GET /a ?q=1 200\n1791640537000.001 GET /b  200\n",
        &of_format("%{msec}t %m %U %q %s"),
    );
    check(
        r#"{"level":"info","ts":1791640536.750,"request":{"remote_ip":"1.1.1.1","method":"GET","host":"x","uri":"/a?q=1","headers":{"User-Agent":["c"]}},"duration":0.5,"size":1,"status":200}
{"level":"info","ts":1791640537.000002,"request":{"remote_ip":"1.1.1.1","method":"GET","host":"x","uri":"/b","headers":{}},"duration":0.000001,"size":1,"status":200}"#,
        &options(),
    );
    check(
        r#"{"StartUTC":"2026-10-10T13:55:36.25Z","RequestMethod":"GET","RequestPath":"/a?q=1","DownstreamStatus":200,"Duration":99}
{"StartUTC":"2026-10-10T13:55:37.000001999Z","RequestMethod":"GET","RequestPath":"/b","DownstreamStatus":200,"Duration":99}"#,
        &of_format("traefik"),
    );
    check(
        r#"[2026-10-10T13:55:36.250Z] "GET /a?q=1 HTTP/1.1" 200 - 0 13 22 21 "-" "curl" "id" "shop" "10.0.0.1:80"
[2026-10-10T13:55:37.000001Z] "GET /b HTTP/2" 200 - 0 13 22 21 "-" "curl" "id" "shop" "10.0.0.1:80""#,
        &options(),
    );
    let alb = |created: &str, path: &str| {
        format!(
            "https 2026-10-10T13:59:59.000000Z app/lb/1 9.9.9.9:2817 10.0.0.1:80 0.0 0.1 0.0 200 200 34 366 \
             \"GET https://shop.example:443{path} HTTP/1.1\" \"curl/7 \\\"x\\\"\" C TLSv1.2 arn:x \"Root=1\" \"shop.example\" \
             \"arn:c\" 0 {created} \"forward\" \"-\" \"-\" \"10.0.0.1:80\" \"200\" \"-\" \"-\"\n"
        )
    };
    check(
        &format!(
            "{}{}",
            alb("2026-10-10T13:55:37.000001Z", "/b"),
            alb("2026-10-10T13:55:36.250000Z", "/a?q=1")
        ),
        &options(),
    );
    check(
        "Oct 10 13:55:37 lb haproxy[812]: 10.0.1.2:33317 [10/Oct/2026:13:55:36.250] web~ app/s1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {x|Moz \\} {} \"GET /a?q=1 HTTP/1.1\"\n\
         2001:db8::1:33317 [10/Oct/2026:13:55:37.000001] web app/<NOSRV> 0/-1/-1/-1/+15 200 +2750 - - CD-- 1/1/1/1/+3 0/0 \"GET https://x/b HTTP/2.0\" 0/0000\n",
        &options(),
    );
    check(
        "1 aa 1791640536250000000 0\nGET /a?q=1 HTTP/1.1\r\nHost: x\r\n\r\n\n🐵🙈🙉\n2 aa 1791640536260000000 1\nHTTP/1.1 200 OK\r\n\r\n\n🐵🙈🙉\n\
         1 ab 1791640537000001000 0\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n\n🐵🙈🙉\n",
        &options(),
    );
    let fields = ["time=at", "path=what.path", "method=what.verb"];
    let fields = fields.map(|one| one.split_once('=').unwrap());
    check(
        r#"{"at":1791640536250,"what":{"path":"/a?q=1","verb":"GET"},"status":200}
{"at":1791640537000.001,"what":{"path":"/b","verb":"GET"},"status":204}"#,
        &LogOptions {
            fields: fields.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
            ..options()
        },
    );
}

const CLOUDFRONT: &str = "#Version: 1.0\n\
    #Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent) cs-uri-query x-host-header time-taken\n\
    2026-10-10\t13:55:38\tFRA2\t182\t192.0.2.10\tGET\td1.cloudfront.net\t/a%20b\t200\tMozilla/5.0%20(X)\tq=1&token=x\tshop.example\t1.500\n\
    2026-10-10\t13:55:38\tFRA2\t182\t192.0.2.10\tGET\td1.cloudfront.net\t/b\t304\t-\t-\t-\t0.001\n\
    #Fields: time date cs-method cs-uri-stem time-taken\n\
    13:55:40\t2026-10-10\tGET\t/c\t0\n\
    13:55:40\t2026-10-10\tGET\t/d\n\
    13:55:40\t2026-10-10\tGET\t/d\t0\t1\n";

#[test]
fn logs_of_cloudfront_are_replayed_from_the_starts_of_their_requests() {
    let (imported, text) = with(CLOUDFRONT, &options()).unwrap();
    let said = imported.said.join("\n");
    assert!(said.contains("read as w3c"), "{said}");
    assert!(said.contains("skipped 2: not as the format"), "{said}");
    assert!(said.contains("stamps of whole seconds: 3"), "{said}");
    let rows = rows(CLOUDFRONT, &options());
    let found = |name: &str| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(found("path"), ["/a%20b?q=1", "/b", "/c"]);
    assert_eq!(found("agent"), ["Mozilla/5.0 (X)", "-", "-"]);
    assert_eq!(found("status"), [200, 304, 0]);
    let us = |row: &serde_json::Value| row["time_us"].as_i64().unwrap() - 1_791_640_536_000_000;
    // Each lies within a half of its second, less its duration.
    assert!((500_000..1_000_000).contains(&us(&rows[0])), "{rows:?}");
    assert!((2_499_000..2_999_000).contains(&us(&rows[1])), "{rows:?}");
    let host = |host: &str| LogOptions {
        hosts: vec![host.to_owned()],
        ..options()
    };
    assert_eq!(rows_of(CLOUDFRONT, &host("shop.example")), ["/a%20b?q=1"]);
    assert_eq!(rows_of(CLOUDFRONT, &host("d1.cloudfront.net")), ["/b"]);
    load_study("shop.study.yaml", &Three(imported, text), &[]).unwrap();
}

fn rows_of(log: &str, options: &LogOptions) -> Vec<String> {
    let path = |row: &serde_json::Value| row["path"].as_str().unwrap().to_owned();
    rows(log, options).iter().map(path).collect()
}

#[test]
fn logs_of_iis_have_milliseconds_and_spaces() {
    let log = "#Software: Microsoft Internet Information Services 10.0\n\
               #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status time-taken\n\
               2026-10-10 13:55:38 10.0.0.1 GET /a q=1 443 9.9.9.9 Mozilla/5.0+(X) 200 1500\n";
    let rows = rows(log, &options());
    assert_eq!(rows[0]["path"], "/a?q=1");
    assert_eq!(rows[0]["agent"], "Mozilla/5.0 (X)");
    let us = rows[0]["time_us"].as_i64().unwrap() - 1_791_640_536_500_000;
    assert!((0..1_000_000).contains(&us), "{us}");
}

#[test]
fn syslog_may_stand_before_lines_of_any_format() {
    let combined = "9.9.9.9 - - [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"";
    let json =
        "{\"ts\":1791640536.750,\"method\":\"GET\",\"uri\":\"/a\",\"remote_ip\":\"9.9.9.9\"}";
    for prefix in [
        "Nov 30 05:12:33 web nginx: ",
        "<190>Nov 30 05:12:33 web nginx: ",
    ] {
        for line in [combined, json] {
            let bare = rows(line, &options());
            assert_eq!(
                rows(format!("{prefix}{line}"), &options()),
                bare,
                "{prefix}{line}"
            );
        }
    }
    // A custom format may contain it.
    let own = of_format("$a $b $c $host nginx: $remote_addr [$time_local] \"$request\"");
    let line =
        "Nov 30 05:12:33 web nginx: 9.9.9.9 [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\"";
    assert_eq!(rows_of(line, &own), ["/a"]);
}

#[test]
fn requests_of_haproxy_are_unescaped_and_their_ports_are_no_clients() {
    let line = |client: &str, request: &str| {
        format!(
            "{client} [10/Oct/2026:13:55:36.250] w a/s 0/0/0/1/1 200 1 - - ---- 1/1/1/1/0 0/0 {request}\n"
        )
    };
    let log = [
        line("2001:db8::1:33317", "\"GET /a#22b#2?x=#7B HTTP/1.1\""),
        line("2001:db8::1:44444", "\"GET /b HTTP/1.1\""),
        line("10.0.0.1:1", "\"<BADREQ>\""),
        line("10.0.0.1:1", "\"GET /cut-by-the-length-of-lin"),
        "10.0.0.1:1 [10/Oct/2026:13:55:36.250] w/1: SSL handshake failure\n".to_owned(),
    ]
    .concat();
    let (imported, text) = with(&log, &options()).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(rows[0]["path"], "/a%22b");
    assert_eq!(rows[0]["client"], rows[1]["client"]);
    assert_eq!(rows.len(), 2);
    let said = imported.said.join("\n");
    assert!(said.contains("skipped 2: not as the format"), "{said}");
    assert!(
        said.contains("skipped 1: without an HTTP request"),
        "{said}"
    );
}

#[test]
fn exact_statuses_have_steps_that_expect_them() {
    let line = |status: u16| {
        format!("9.9.9.9 - - [10/Oct/2026:13:55:36 +0000] \"GET /{status} HTTP/1.1\" {status} 5\n")
    };
    let log: String = [200, 204, 206, 301, 304, 404, 410, 499, 503]
        .map(line)
        .concat();
    let options = LogOptions {
        exact_status: true,
        ..options()
    };
    let (imported, text) = with(&log, &options).unwrap();
    let expected = |step: &str| {
        let (_, rest) = imported
            .workload
            .split_once(&format!("- step: {step}\n"))
            .unwrap();
        let (_, rest) = rest.split_once("expect: ").unwrap();
        rest.lines().next().unwrap().to_owned()
    };
    for (step, expect) in [
        ("GET 200", "200"),
        ("GET 204", "204"),
        ("GET 206", "[200, 206]"),
        ("GET 301", "301"),
        ("GET 304", "[200, 304]"),
        ("GET 404", "404"),
        ("GET 410", "410"),
        ("GET other", "[2xx, 3xx, 4xx]"),
    ] {
        assert_eq!(expected(step), expect, "{step}");
    }
    load_study("shop.study.yaml", &Three(imported, text), &[]).unwrap();
    // Statuses beyond the most steps are grouped by class.
    let many: String = (200..444).map(line).collect();
    let (imported, text) = with(&many, &options).unwrap();
    assert_eq!(text.lines().count(), 244);
    assert!(
        imported.workload.contains("step: GET 4xx"),
        "{}",
        imported.workload
    );
    load_study("shop.study.yaml", &Three(imported, text), &[]).unwrap();
}

#[test]
fn sessions_are_a_study_that_can_be_planned() {
    let line = |second: u32, client: &str, path: &str, status: u16| {
        format!(
            "{client} - - [10/Oct/2026:13:55:{second:02}.250 +0000] \"GET {path} HTTP/1.1\" {status} 5 \"-\" \"Moz (x)\"\n"
        )
    };
    let log = [
        line(30, "9.9.9.9", "/a", 200),
        line(31, "9.9.9.8", "/b?x=1", 200),
        line(33, "9.9.9.9", "/gone", 404),
        line(40, "-", "/c", 200),
    ]
    .concat();
    let (mut rows, mut scratch) = (Vec::new(), Cursor::new(Vec::new()));
    let to: (&mut dyn Write, &mut dyn Scratch) = (&mut rows, &mut scratch);
    let imported = import_sessions(&mut Cursor::new(&log), &options(), to).unwrap();
    let said = imported.said.join("\n");
    assert!(said.contains("2 sessions of 1.5 requests on average, 2 at most; they last 2 s on average, 3 s at most"), "{said}");
    assert!(said.contains("skipped 1: without a client"), "{said}");
    insta::assert_snapshot!(imported.workload);
    let rows = String::from_utf8(rows).unwrap();
    let first: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!(first["pauses"], "0 3");
    assert_eq!(first["kinds"], "GET_2xx GET_4xx");
    let loaded = load_study("shop.study.yaml", &Three(imported, rows), &[]).unwrap();
    let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
    assert_eq!(plan.trials.len(), 1);
    // The last request is due 3 s after the first, when no session starts any more.
    assert!(
        plan.trials[0].load.hold_ms >= 3_000,
        "{:?}",
        plan.trials[0].load
    );
}

#[test]
fn bodies_of_a_recording_are_sent_where_their_methods_are_asked_for() {
    let log = "1 a 1791640536250000000 0\nPOST /pay HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n{\"a\":\"{{ b }}\"}\n🐵🙈🙉\n\
               1 b 1791640536250000000 0\nPOST /pay HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n\n🐵🙈🙉\n";
    let options = LogOptions {
        methods: vec!["POST".to_owned()],
        ..options()
    };
    let (imported, rows) = with(log, &options).unwrap();
    let row: serde_json::Value = serde_json::from_str(rows.trim()).unwrap();
    assert_eq!(row["body"], "{\"a\":\"{{ b }}\"}");
    assert_eq!(row["type"], "application/json");
    assert!(
        imported.workload.contains("text: \"{{ body }}\""),
        "{}",
        imported.workload
    );
    assert!(
        imported
            .said
            .iter()
            .any(|said| said.contains("with a body")),
        "{:?}",
        imported.said
    );
    load_study("shop.study.yaml", &Three(imported, rows), &[]).unwrap();
}

#[test]
fn hosts_are_told_apart_and_clients_are_not() {
    let log = "shop.example:443 1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"\n\
               blog.example:443 1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"GET /b HTTP/1.1\" 200 5 \"-\" \"x\"\n\
               SHOP.example:443 1.2.3.5 - - [10/Oct/2026:13:55:36 +0000] \"GET /c HTTP/1.1\" 200 5 \"-\" \"x\"\n\
               shop.example:443 1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"GET /d HTTP/1.1\" 200 5 \"-\" \"x\"\n";
    let options = LogOptions {
        hosts: vec!["shop.example".to_owned()],
        ..options()
    };
    let found = rows(log, &options);
    let paths: Vec<_> = found
        .iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["/a", "/c", "/d"]);
    assert_eq!(found[0]["client"], found[2]["client"]);
    assert_ne!(found[0]["client"], found[1]["client"]);
    let salted = LogOptions {
        salt: [8; 16],
        ..options
    };
    assert_ne!(rows(log, &salted)[0]["client"], found[0]["client"]);
}

#[test]
fn what_is_no_log_is_refused_in_words() {
    let check = |log: &str, format: Option<&str>, expected: &str| {
        let options = LogOptions {
            format: format.map(str::to_owned),
            ..options()
        };
        let error = with(log, &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("", None, "none of the usual formats");
    check("hello\n", None, "none of the usual formats");
    check("", Some("combined"), "no request is left");
    check(
        "hello\n",
        Some("combined"),
        "1: not as the format has them (the first is line 1)",
    );
    check("{}\n", None, "without a moment that can be read");
    check("{\"ts\":1}\n", None, "without an HTTP request");
    check(
        "x",
        Some("cmbined"),
        "`cmbined` is no format: write a name (common",
    );
    check("x", Some("$msec$request"), "no text between them");
    check("x", Some("$status"), "has no time");
    check("x", Some("%t %s"), "has no request");
    check("x", Some("%{%c}t %r"), "is not read");
    check("x", Some("%t %{a"), "has no `}`");
    check("x", Some("%r %"), "ends with `%`");
}

#[test]
fn hostile_lines_take_bounded_memory_and_harm_nobody() {
    let mut log = Vec::new();
    log.extend_from_slice(&[b'x'; MAX_LINE * 3]);
    log.push(b'\n');
    log.extend_from_slice(b"1.1.1.1 - - [10/Oct/2026:13:55:36 +0000] \"GET /\xff\x00{{ secret('X') }}{%s%} HTTP/1.1\" 200 1 \"-\" \"a\r\x1b[2J\xff\"\n");
    log.extend_from_slice(
        b"1.1.1.1 - - [99/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"\"\n",
    );
    log.extend_from_slice(b"1.1.1.1 - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 99999999999999999999 -1 \"-\" \"\"\n");
    let (imported, text) = with(&log, &of_format("combined")).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let path = rows[0]["path"].as_str().unwrap();
    assert_eq!(path, "/%FF%00%7B%7B%20secret('X')%20%7D%7D%7B%s%%7D");
    assert_eq!(rows[0]["agent"], "a??[2J?");
    assert_eq!(rows.len(), 2);
    let said = imported.said.join("\n");
    assert!(said.contains("1: too long (the first is line 1)"), "{said}");
    assert!(said.contains("1: without a moment"), "{said}");
    load_study("shop.study.yaml", &Three(imported, text), &[]).unwrap();
}

/// Pieces of lines, so that many are nearly valid.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"1.1.1.1 - - [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"\n",
        b"9.9.9.9:1 [10/Oct/2026:13:55:36.250] w a/s 0/0/0/1/1 200 1 - - ---- 1/1/1/1/0 0/0 \"GET /#22 HTTP/1.1\"\n",
        b"#Fields: date time cs-method cs-uri-stem cs-uri-query cs(User-Agent) time-taken\n",
        b"2026-10-10\t13:55:38\tGET\t/b\tx=%25\tM%2520\t0.5\n",
        b"Nov 30 05:12:33 web nginx: ",
        b"<190>1 ",
        b"\t",
        b"#",
        b"{\"ts\":1,\"method\":\"GET\",\"uri\":\"/\"}\n",
        b"1 a 1791640536250000000 0\nGET / HTTP/1.1\r\n\r\n",
        gor::SEPARATOR,
        b"\"",
        b"\\",
        b"\\x",
        b"[",
        b"\n",
        b" ",
        b"GET ",
        b"http://",
        b"?token=",
        b"-",
        b"99999999999999999999",
        b"\xff",
    ];
    prop_oneof![
        4 => prop::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any bytes in any format are sorted rows that a workload loads, or an error.
    #[test]
    fn any_bytes_are_rows_in_order_or_an_error(
        pieces in prop::collection::vec(piece(), 0..30),
        format in prop::option::of(prop::sample::select(vec![
            "common", "combined", "vhost_combined", "json", "envoy", "alb", "haproxy", "w3c", "gor",
            "$msec $request_method ${uri} $args", "%{usec}t %r %s",
        ])),
    ) {
        let log = pieces.concat();
        let mut options = options();
        options.format = format.map(str::to_owned);
        options.methods.push("POST".to_owned());
        if let Ok((imported, text)) = with(&log, &options) {
            let mut last = i64::MIN;
            for row in text.lines() {
                let row: serde_json::Value = serde_json::from_str(row).unwrap();
                let us = row["time_us"].as_i64().unwrap();
                prop_assert!(us >= last);
                last = us;
                let path = row["path"].as_str().unwrap();
                prop_assert!(path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic()));
            }
            let loaded = load_study("shop.study.yaml", &Three(imported, text), &[]);
            prop_assert!(loaded.is_ok(), "{:?}", loaded.err());
        }
    }
}
