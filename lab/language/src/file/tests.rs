//! Parse ∘ print: any file value, printed as YAML, parses to the same value.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::answer::AnswerFile;
use super::parallel::{BesideFile, EachFile};
use super::retry::RetriesFile;
use super::shared::{CounterFile, QueueFile};
use super::*;
use crate::error::Problems;
use crate::node;
use crate::source::{SourceFile, Span};
use lab_units::decode::Decode;
use lab_units::parts::{At, Json, OneOrMany, Scalar, Table};

fn at<T>(value: T) -> At<T> {
    let file = SourceFile {
        name: "".into(),
        text: "".into(),
    };
    At {
        value,
        span: Span::new(&file, 0..0),
    }
}

fn file(text: &str) -> SourceFile {
    SourceFile {
        name: "printed.yaml".into(),
        text: text.into(),
    }
}

#[track_caller]
fn check<T: Decode + PartialEq + std::fmt::Debug + serde::Serialize>(value: &T) {
    let printed = serde_saphyr::to_string(value).unwrap();
    let root = node::parse(&file(&printed)).unwrap_or_else(|e| panic!("{}\n{printed}", e.message));
    let mut problems = Problems::default();
    let read = T::decode(&root, &mut problems);
    let read = problems
        .finish(read)
        .unwrap_or_else(|e| panic!("{:?}\n{printed}", e.problems()));
    assert_eq!(&read, value, "{printed}");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        "[ -~]{0,20}",
        "\\PC{0,12}",
        "[a\n :#-]{0,12}",
        prop::sample::select(vec![
            "",
            "~",
            "null",
            "true",
            "yes",
            "no",
            "12",
            "-1",
            "1e3",
            "0x1f",
            "1.5",
            ".inf",
            "- a",
            "a: b",
            "{{ name }}",
            "'",
            "\"",
            "\\",
            "#x",
            "&a",
            "*a",
            "!t",
            "| ",
            "> ",
            "%",
            "@",
            "`",
            "?",
            "---",
            "2026-01-05",
            "<<",
            " lead",
            "trail ",
            "\t",
            "\r\n",
            "\u{85}",
            "\u{feff}x",
            "é",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Boxed: the parts of a strategy lie on the stack, and a study has many.
fn scalar() -> BoxedStrategy<At<Scalar>> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::Int),
        (-1e9..1e9f64).prop_map(|value| Scalar::Float(value.into())),
        text().prop_map(Scalar::Text),
    ]
    .prop_map(at)
    .boxed()
}

/// Makes keys distinct; a mapping may have each once.
fn table<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Table<T>> {
    vec((text(), value), 0..4).prop_map(|entries| {
        let key = |(i, (name, value)): (usize, (String, T))| (at(format!("{name}{i}k")), value);
        Table(entries.into_iter().enumerate().map(key).collect())
    })
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![Just(Json::Null), scalar().prop_map(Json::Scalar)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::List),
            table(inner).prop_map(Json::Table)
        ]
    })
}

fn one_or_many() -> impl Strategy<Value = OneOrMany> {
    prop_oneof![
        scalar().prop_map(OneOrMany::One),
        vec(scalar(), 0..3).prop_map(OneOrMany::Many)
    ]
}

/// A key without a value counts as absent, so a JSON body of null reads as none.
fn body() -> impl Strategy<Value = At<Json>> {
    json()
        .prop_filter("null", |j| *j != Json::Null)
        .prop_map(at)
}

fn basic() -> impl Strategy<Value = BasicFile> {
    (scalar(), scalar()).prop_map(|(username, password)| BasicFile { username, password })
}

fn expect() -> impl Strategy<Value = ExpectFile> {
    let answer = (
        [(); 5].map(|()| option::of(one_or_many())),
        [(); 4].map(|()| option::of(scalar())),
        table(option::of(scalar())),
        table(scalar()),
    );
    let answer = answer.prop_map(|(lists, scalars, json, header)| {
        let [status, present, absent, contains, not_contains] = lists;
        let [schema, graphql, time, size] = scalars;
        AnswerFile {
            status,
            json,
            present,
            absent,
            graphql,
            schema,
            contains,
            not_contains,
            time,
            size,
            header,
        }
    });
    prop_oneof![
        one_or_many().prop_map(ExpectFile::Status),
        answer.prop_map(|answer| ExpectFile::Answer(Box::new(answer))),
    ]
}

fn events() -> impl Strategy<Value = EventsFile> {
    let parts = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    parts.prop_map(|(until, event, count, at_most)| EventsFile {
        until,
        event,
        count,
        at_most,
    })
}

fn part() -> impl Strategy<Value = PartFile> {
    let field = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    let field = field.prop_map(|(file, name, text, r#type)| FieldFile {
        file,
        name,
        text,
        r#type,
    });
    prop_oneof![
        scalar().prop_map(PartFile::Text),
        field.prop_map(|field| PartFile::Full(Box::new(at(field)))),
    ]
}

fn content() -> impl Strategy<Value = ContentFile> {
    let parts = (scalar(), option::of(scalar()));
    parts.prop_map(|(file, r#type)| ContentFile { file, r#type })
}

fn mail() -> impl Strategy<Value = MailFile> {
    let parts = (
        (scalar(), one_or_many()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    parts.prop_map(|((from, to), subject, text, message)| MailFile {
        from,
        to,
        subject,
        text,
        message,
    })
}

fn statement() -> impl Strategy<Value = StatementFile> {
    let parts = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(vec(scalar(), 0..3).prop_map(at)),
    );
    parts.prop_map(|(query, prepared, values)| StatementFile {
        query,
        prepared,
        values,
    })
}

fn call() -> impl Strategy<Value = CallFile> {
    let parts = (
        option::of(vec(body(), 0..3).prop_map(at)),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    parts.prop_map(|(messages, deadline, stays_open, close)| CallFile {
        messages,
        deadline,
        stays_open,
        close,
    })
}

fn protocol() -> impl Strategy<Value = ProtocolFile> {
    let parts = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    prop_oneof![
        scalar().prop_map(ProtocolFile::Name),
        (
            (
                scalar(),
                option::of(scalar()),
                table(scalar()),
                option::of(scalar()),
                option::of(one_or_many())
            ),
            parts,
        )
            .prop_map(
                |(
                    (name, path, headers, subprotocol, descriptors),
                    (username, password, database, starttls),
                )| {
                    ProtocolFile::Full(Box::new(SpeakingFile {
                        name,
                        path,
                        descriptors,
                        headers,
                        subprotocol,
                        version: None,
                        client_id: None,
                        username,
                        password,
                        database,
                        starttls,
                    }))
                }
            ),
    ]
}

prop_compose! {
    fn request()(
        (request, name, mail) in (option::of(scalar()), option::of(scalar()), option::of(mail().prop_map(at).boxed())).boxed(),
        (statement, call) in (statement().boxed(), call().boxed()).boxed(),
        (raw, mqtt) in (raw().prop_map(Box::new).boxed(), mqtt().prop_map(Box::new).boxed()).boxed(),
        (headers, cookies) in (table(scalar()).boxed(), table(scalar()).boxed()).boxed(),
        json in option::of(body()).boxed(),
        form in option::of(table(scalar()).prop_map(at)).boxed(),
        (bytes, xml, text) in (option::of(scalar()), option::of(scalar()), option::of(scalar())).boxed(),
        basic_auth in option::of(basic().boxed()),
        expect in option::of(expect().boxed()),
        capture in table(scalar()).boxed(),
        (compressed, timeout, follow) in (option::of(scalar()), option::of(scalar()), option::of(scalar())).boxed(),
        events in option::of(events().prop_map(at).boxed()),
        measure in table(measure()).boxed(),
        multipart in option::of(table(part()).prop_map(at)).boxed(),
        body in option::of(content().prop_map(at)).boxed(),
    ) -> RequestFile {
        RequestFile {
            sign: None,
            auth: None,
            request, name, mail, statement, call, raw, mqtt, headers, cookies, json, form, bytes, xml, text, multipart, body, basic_auth, expect, capture, compressed,
            timeout, follow, events, measure,
        }
    }
}

fn raw() -> impl Strategy<Value = RawFile> {
    let forms = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    let bytes = forms.prop_map(|(text, hex, file)| BytesFile { text, hex, file });
    let send = prop_oneof![
        scalar().prop_map(SendFile::Text),
        bytes.prop_map(|bytes| SendFile::Full(Box::new(bytes))),
    ];
    let numbers = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    let numbered = numbers.prop_map(|(bytes, length, at, plus, silence)| NumberedEndFile {
        bytes,
        length,
        at,
        plus,
        silence,
    });
    let read = prop_oneof![
        scalar().prop_map(EndFile::Word),
        numbered.prop_map(|end| EndFile::Full(Box::new(end))),
    ];
    (option::of(send.prop_map(at)), option::of(read.prop_map(at)))
        .prop_map(|(send, read)| RawFile { send, read })
}

fn mqtt() -> impl Strategy<Value = MqttFile> {
    let numbers = (option::of(scalar()), option::of(scalar()));
    let publish = (scalar(), option::of(scalar()), numbers);
    let publish = publish.prop_map(|(topic, text, (qos, retain))| PublishFile {
        topic,
        bytes: BytesFile {
            text,
            ..BytesFile::default()
        },
        qos,
        retain,
    });
    let full = (one_or_many(), option::of(scalar()));
    let full = full.prop_map(|(topics, qos)| SubscriptionFile { topics, qos });
    let subscribe = prop_oneof![
        one_or_many().prop_map(SubscribeFile::Topics),
        full.prop_map(|full| SubscribeFile::Full(Box::new(full))),
    ];
    let rest = (option::of(one_or_many()), option::of(scalar()));
    let first = (
        option::of(publish.prop_map(at)),
        option::of(subscribe.prop_map(at)),
    );
    (first, rest).prop_map(|((publish, subscribe), (unsubscribe, receive))| MqttFile {
        publish,
        subscribe,
        unsubscribe,
        receive,
    })
}

fn measure() -> impl Strategy<Value = MeasureFile> {
    prop_oneof![
        scalar().prop_map(MeasureFile::Place),
        (scalar(), option::of(scalar()))
            .prop_map(|(from, unit)| { MeasureFile::Full(Box::new(NumberFile { from, unit })) }),
    ]
}

fn item() -> BoxedStrategy<RequestItem> {
    prop_oneof![
        scalar().prop_map(RequestItem::Line),
        request()
            .boxed()
            .prop_map(|r| RequestItem::Full(Box::new(at(r)))),
    ]
    .boxed()
}

fn step() -> BoxedStrategy<At<StepFile>> {
    let group = vec(leaf(), 0..3).prop_map(at).boxed();
    prop_oneof![
        8 => leaf(),
        1 => (group.clone(), option::of(scalar())).prop_map(|(steps, share)| {
            at(StepFile { steps: Some(steps), share, ..StepFile::default() })
        }),
        1 => group.prop_map(|group| {
            at(StepFile { one_of: Some(group), ..StepFile::default() })
        }),
    ]
    .boxed()
}

fn parallel() -> BoxedStrategy<At<ParallelFile>> {
    let word = || "[a-z]{1,5}".prop_map(at);
    let each = (word(), word(), scalar(), request().boxed());
    let each = each.prop_map(|(list, entry, at_most, only)| {
        at(EachFile {
            list,
            entry,
            at_most,
            only,
        })
    });
    let more = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(each.boxed()),
    );
    prop_oneof![
        vec(item(), 0..3).prop_map(ParallelFile::Requests),
        (vec(item(), 0..3), more).prop_map(|(requests, (at_once, on_failure, each))| {
            ParallelFile::Full(Box::new(BesideFile {
                at_once,
                on_failure,
                requests,
                each,
            }))
        }),
    ]
    .prop_map(at)
    .boxed()
}

fn retry() -> impl Strategy<Value = RetryFile> {
    prop_oneof![
        scalar().prop_map(RetryFile::Times),
        (scalar(), [(); 4].map(|()| option::of(scalar()))).prop_map(|(at_most, rest)| {
            let [wait, multiplier, max_wait, retry_after] = rest;
            RetryFile::Full(Box::new(RetriesFile {
                at_most,
                wait,
                multiplier,
                max_wait,
                retry_after,
            }))
        }),
    ]
}

/// The keys `take` and `put` of a step. Boxed, as it is a part of much.
type Keys = Option<At<Table<At<Scalar>>>>;

fn queued() -> BoxedStrategy<(Keys, Keys)> {
    let one = || option::of(table(scalar()).prop_map(at)).boxed();
    (one(), one()).boxed()
}

prop_compose! {
    fn leaf()(
        step in option::of(scalar()),
        wait in option::of(scalar()),
        repeat in option::of(scalar()),
        set in table(scalar()).boxed(),
        requests in option::of(vec(item(), 0..3).prop_map(at)).boxed(),
        (share, weight) in (option::of(scalar()), option::of(scalar())),
        (when, until, at_most) in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
        (retry, on_failure) in (option::of(retry().prop_map(at)).boxed(), option::of(scalar())),
        tags in option::of(one_or_many()).boxed(),
        parallel in option::of(parallel()).boxed(),
        (take, put) in queued(),
        only in request().boxed(),
    ) -> At<StepFile> {
        at(StepFile {
            step, wait, repeat, once: None, set, share, weight, one_of: None, transaction: None, parallel, steps: None, requests, only,
            when, until, at_most, retry, on_failure, tags, take, put,
        })
    }
}

fn key() -> impl Strategy<Value = KeyFile> {
    let parts = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    parts.prop_map(|(file, secret, encoding)| KeyFile {
        file,
        secret,
        encoding,
    })
}

fn data() -> impl Strategy<Value = DataFile> {
    let more = (
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
        option::of(scalar()),
    );
    prop_oneof![
        scalar().prop_map(DataFile::File),
        (scalar(), more).prop_map(|(file, (each, order, unique, delimiter))| {
            DataFile::Full(Box::new(RowsFile {
                file,
                each,
                order,
                unique,
                delimiter,
            }))
        }),
    ]
}

fn shared() -> BoxedStrategy<SharedFile> {
    let counter = option::of(scalar()).prop_map(|from| at(CounterFile { from }));
    let queue = option::of(scalar()).prop_map(|at_most| at(QueueFile { at_most }));
    let pool = (scalar(), option::of(scalar()), option::of(scalar()));
    let pool = pool.prop_map(|(file, lease, rotate)| {
        at(PoolFile {
            file,
            lease,
            rotate,
        })
    });
    let all = (
        option::of(counter).boxed(),
        option::of(queue).boxed(),
        option::of(pool).boxed(),
    );
    all.prop_map(|(counter, queue, pool)| SharedFile {
        counter,
        queue,
        pool,
    })
    .boxed()
}

prop_compose! {
    fn workload()(
        workload in scalar(),
        (about, protocol) in (option::of(scalar()), option::of(protocol().prop_map(at).boxed())),
        (parameters, user) in (table(scalar()).boxed(), table(scalar()).boxed()),
        least_users in option::of(scalar()),
        setup in vec(step(), 0..3).boxed(),
        (pace, visitor, repeatable) in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
        on_failure in option::of(scalar()),
        steps in vec(step(), 0..4).boxed(),
        (data, probe) in (option::of(data().prop_map(at)).boxed(), option::of((scalar(), request().boxed())).boxed()),
        transfer in option::of((scalar(), scalar(), option::of(scalar()))).boxed(),
        taking in (option::of(scalar()), option::of(scalar()), option::of(scalar())),
        (cookies, keys, max_body) in (table(scalar()).boxed(), table(key().prop_map(at)).boxed(), option::of(scalar())),
        shared in table(shared().prop_map(at)).boxed(),
    ) -> WorkloadFile {
        let probe = probe.map(|(every, only)| ProbeFile { every, only });
        let (script, function) = (None, None);
        let session = SessionFile { pace, visitor, repeatable, on_failure, script, function, steps: at(steps) };
        let transfer = transfer.map(|(place, bytes, chunk)| TransferFile { place, bytes, chunk });
        let (compressed, follow, trace) = taking;
        WorkloadFile {
            sign: None,
            auth: None,
            workload, about, protocol, parameters, data, user, setup, session, probe, transfer, compressed, follow,
            trace, least_users, cookies, keys, max_body, shared,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_printed_workload_reads_as_the_same(workload in workload()) {
        check(&workload);
    }
}
