//! Descriptions of services as workloads.

use std::io;

use lab_import::openapi::{Files as References, NoFiles, OpenApiOptions, import as import_with};
use lab_import::{ImportError, Imported};
use lab_study::{Files, Workload, load_workload};
use proptest::prelude::*;
use serde_json::{Value, json};

struct One(String);

impl Files for One {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }
}

fn import(text: &str, options: &OpenApiOptions) -> Result<Imported, ImportError> {
    import_with(text, options, &NoFiles)
}

#[track_caller]
fn load(imported: &Imported) -> Workload {
    load_workload("w.workload.yaml", &One(imported.workload.clone()))
        .unwrap_or_else(|error| panic!("{:?}\n{}", error.problems(), imported.workload))
}

fn options() -> OpenApiOptions {
    OpenApiOptions {
        name: "pets".to_owned(),
        from: None,
    }
}

const PETS: &str = r##"
openapi: 3.0.3
info: { title: Pets, version: "1" }
servers:
  - url: https://{where}.pets.test/v1
    variables: { where: { default: staging } }
security: [{ token: [] }]
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
    key: { type: apiKey, in: query, name: api_key }
  schemas:
    New:
      type: object
      required: [name, born, kind, password]
      properties:
        name: { type: string, minLength: 3 }
        born: { type: string, format: date }
        kind: { enum: [cat, dog] }
        password: { type: string }
        mother: { $ref: "#/components/schemas/New" }
    Pet:
      allOf:
        - type: object
          properties: { id: { type: integer } }
        - $ref: "#/components/schemas/New"
paths:
  /pets:
    get:
      parameters:
        - { in: query, name: limit, required: true, schema: { type: integer, minimum: 5 } }
        - { in: query, name: after, schema: { type: string } }
      responses:
        "200":
          content: { application/json: { schema: { type: array, items: { $ref: "#/components/schemas/Pet" } } } }
    post:
      requestBody:
        content: { application/json: { schema: { $ref: "#/components/schemas/New" } } }
      responses:
        "201": { content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
  /pets/{petId}:
    parameters: [{ in: path, name: petId, required: true, schema: { type: integer } }]
    get: { responses: { "200": {} } }
    put:
      requestBody: { content: { application/json: { example: { name: Tom, note: "{{ braces }}" } } } }
      responses: { "200": {} }
    delete: { responses: { "204": {} } }
  /shops/{shop}:
    get:
      security: [{ key: [] }]
      parameters: [{ in: path, name: shop, required: true, example: a b }]
      responses: { "200": {} }
    delete: { responses: { "204": {} } }
  /old: { get: { deprecated: true, responses: {} } }
"##;

#[test]
fn a_description_is_called_from_its_first_to_its_last_operation() {
    let imported = import(PETS, &options()).unwrap();
    let workload = load(&imported);
    assert_eq!(
        imported.server.as_deref(),
        Some("https://staging.pets.test")
    );
    let names: Vec<&str> = workload
        .session
        .steps
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "GET /pets",
            "POST /pets",
            "GET /pets/{petId}",
            "GET /shops/{shop}",
            "PUT /pets/{petId}",
            "DELETE /pets/{petId}",
        ]
    );
    let said = imported.said.join("\n");
    assert!(said.contains("DELETE /shops/{shop} left out"), "{said}");
    assert!(
        said.contains("GET /old left out: it is deprecated"),
        "{said}"
    );
    assert_eq!(imported.asked, ["API_TOKEN", "PASSWORD", "API_KEY"]);
    insta::assert_snapshot!(imported.workload);
    // The same in JSON.
    let json: Value = serde_saphyr::from_str(PETS).unwrap();
    assert_eq!(
        import(&json.to_string(), &options()).unwrap().workload,
        imported.workload
    );
}

#[test]
fn swagger_2_is_read_too_and_servers_without_host_are_where_it_came_from() {
    let old = json!({
        "swagger": "2.0",
        "info": { "title": "Old" },
        "basePath": "/api",
        "paths": { "/a": { "post": {
            "parameters": [{ "in": "body", "name": "b", "schema": { "type": "object",
                "properties": { "count": { "type": "integer" } } } }],
            "responses": { "200": {} },
        } } },
    });
    let from = Some("http://10.0.0.5:8080/docs/swagger.json".to_owned());
    let imported = import(&old.to_string(), &OpenApiOptions { from, ..options() }).unwrap();
    load(&imported);
    assert_eq!(imported.server.as_deref(), Some("http://10.0.0.5:8080"));
    assert!(
        imported.workload.contains("request: POST /api/a"),
        "{}",
        imported.workload
    );
    assert!(
        imported.workload.contains("json: { count: 1 }"),
        "{}",
        imported.workload
    );
}

#[test]
fn what_is_no_description_is_said() {
    let said = |text: &str| import(text, &options()).unwrap_err();
    assert!(matches!(said("a: 1"), ImportError::Other(_)));
    let collection = r#"{ "info": { "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json" } }"#;
    assert!(said(collection).to_string().contains("Postman"));
    assert!(matches!(said("{"), ImportError::Json(_)));
    assert!(matches!(said("a: [1"), ImportError::Yaml(_)));
    assert!(matches!(
        said("openapi: 3.1.0\npaths: {}"),
        ImportError::Nothing { .. }
    ));
    let deep = format!("a: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(matches!(said(&deep), ImportError::Yaml(_)));
}

/// A schema that references itself, or nothing, terminates.
#[test]
fn references_in_circles_end() {
    for schema in [
        "#/components/schemas/A",
        "#/nowhere",
        "http://elsewhere.test/x",
    ] {
        let text = json!({
            "openapi": "3.1.0",
            "components": { "schemas": { "A": { "$ref": "#/components/schemas/A" } } },
            "paths": { "/a": { "post": {
                "requestBody": { "content": { "application/json": { "schema": { "$ref": schema } } } },
                "responses": {},
            } } },
        });
        load(&import(&text.to_string(), &options()).unwrap());
    }
}

#[test]
fn a_schema_that_is_in_each_of_its_properties_is_no_end_of_values() {
    let each = |number: usize| {
        let schema = json!({ "$ref": "#/components/schemas/A" });
        (format!("p{number}"), schema)
    };
    let properties: serde_json::Map<String, Value> = (0..100).map(each).collect();
    let text = json!({
        "openapi": "3.1.0",
        "components": { "schemas": { "A": { "type": "object", "properties": properties } } },
        "paths": { "/a": { "post": {
            "requestBody": { "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/A" },
            } } },
            "responses": {},
        } } },
    });
    let made = import(&text.to_string(), &options()).unwrap();
    load(&made);
    assert!(made.workload.len() < 4 << 20, "{}", made.workload.len());
    assert!(
        made.said.iter().any(|said| said.contains("is cut")),
        "{:?}",
        made.said
    );
}

#[test]
fn an_example_that_is_too_large_takes_no_other_along() {
    let picture = "x".repeat(100_000);
    let text = json!({
        "openapi": "3.1.0",
        "paths": { "/a": { "post": {
            "requestBody": { "content": { "application/json": { "schema": {
                "type": "object",
                "properties": {
                    "a": { "type": "string", "example": picture },
                    "b": { "type": "string", "example": "small" },
                },
            } } } },
            "responses": {},
        } } },
    });
    let made = import(&text.to_string(), &options()).unwrap();
    assert!(
        made.workload.contains("small") && !made.workload.contains("xxxx"),
        "{}",
        made.workload
    );
    assert!(
        made.said.iter().any(|said| said.contains("is cut")),
        "{:?}",
        made.said
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("{{ x }}")),
        Just(json!({ "$ref": "#/components/schemas/A" })),
    ];
    let key = prop_oneof![
        Just("type".to_owned()),
        Just("properties".to_owned()),
        Just("items".to_owned()),
        Just("allOf".to_owned()),
        Just("example".to_owned()),
        Just("required".to_owned()),
        Just("id".to_owned()),
        "\\PC{0,8}",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_description_is_a_workload_or_an_error(
        path in "/(\\PC{0,12}|\\{[a-z]{1,5}\\}/?){0,3}",
        name in "\\PC{0,10}",
        schema in any_json(),
        place in prop_oneof![Just("path"), Just("query"), Just("header"), Just("cookie")],
    ) {
        let operation = json!({
            "parameters": [{ "in": place, "name": name, "required": true, "schema": schema }],
            "requestBody": { "content": { "application/json": { "schema": schema } } },
            "responses": { "201": { "content": { "application/json": { "schema": schema } } } },
        });
        let text = json!({
            "openapi": "3.0.0",
            "components": { "schemas": { "A": schema } },
            "paths": { path: { "get": operation, "post": operation, "put": operation } },
        });
        if let Ok(imported) = import(&text.to_string(), &options()) {
            let loaded = load_workload("w.workload.yaml", &One(imported.workload.clone()));
            let problems = loaded.as_ref().err().map(|error| format!("{:?}", error.problems()));
            prop_assert!(loaded.is_ok(), "{:?}\n{}", problems, imported.workload);
        }
    }
}

/// An operation of a description with one server.
fn described(version: &str, rest: Value) -> Value {
    let mut text = json!({ "info": { "title": "T" } });
    let (key, server) = match version {
        "2.0" => (
            "swagger",
            json!({ "host": "api.test", "schemes": ["http"] }),
        ),
        _ => (
            "openapi",
            json!({ "servers": [{ "url": "http://api.test" }] }),
        ),
    };
    text[key] = json!(version);
    for (name, value) in server
        .as_object()
        .unwrap()
        .iter()
        .chain(rest.as_object().unwrap())
    {
        text[name] = value.clone();
    }
    text
}

#[track_caller]
fn made(description: &Value) -> Imported {
    let imported = import(&description.to_string(), &options()).unwrap();
    load(&imported);
    imported
}

#[track_caller]
fn holds(imported: &Imported, lines: &[&str]) {
    for line in lines {
        assert!(
            imported.workload.contains(line),
            "{line}\n{}\n{:?}",
            imported.workload,
            imported.said
        );
    }
}

#[track_caller]
fn says(imported: &Imported, words: &str) {
    let said = imported.said.join("\n");
    assert!(said.contains(words), "{words}\n{said}");
}

/// YAML 1.2: `no`, `on`, and `y` are texts, and the schema defines further texts.
#[test]
fn yaml_has_the_types_of_its_core_schema_and_of_the_description() {
    let text = r#"
openapi: 3.0
info: { title: Places }
servers:
  - url: http://{host}:{port}/v{version}
    variables: { host: { default: map.test }, port: { default: 9090 }, version: { default: 2.10 } }
paths:
  /places:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [lat, y, n, on, land, post, code, size, level, open]
              properties:
                lat: { type: number, maximum: .inf, minimum: 4 }
                y: { type: integer, example: 012 }
                n: { type: string, example: yes }
                on: { type: boolean, example: true }
                land: { type: string, enum: [no, se] }
                post: { type: string, example: 00771 }
                code: { type: string, example: 2e5 }
                size: { type: string, default: 1.50 }
                level: { type: string, example: true }
                open: { type: string, example: off }
      responses: { 201: {} }
  /places/near:
    get:
      parameters:
        - { name: n, in: query, required: true, schema: { type: string }, example: 0x1F }
        - { name: off, in: query, example: no }
      responses: { 200: {} }
"#;
    let imported = import(text, &options()).unwrap();
    load(&imported);
    assert_eq!(imported.server.as_deref(), Some("http://map.test:9090"));
    holds(
        &imported,
        &[
            "GET /v2.10/places/near?n=0x1F&off=no",
            "POST /v2.10/places",
            "code: \"2e5\"",
            "land: \"no\"",
            "lat: 4",
            "level: \"true\"",
            "\"n\": \"yes\"",
            "\"on\": true",
            "open: \"off\"",
            "post: \"00771\"",
            "size: \"1.50\"",
            "\"y\": 12",
        ],
    );
    let twice = import("openapi: 3.0.0\ninfo: {}\ninfo: {}\n", &options())
        .unwrap_err()
        .to_string();
    assert!(
        twice.contains("the key `info` is given twice") && twice.contains("line 3"),
        "{twice}"
    );
    assert!(!twice.contains("Policy"), "{twice}");
}

/// The files of a folder, by their paths.
struct FileSet(Vec<(&'static str, &'static str)>);

impl References for FileSet {
    fn read(&self, path: &str) -> Result<String, String> {
        let found = self.0.iter().find(|(name, _)| *name == path);
        found
            .map(|(_, text)| (*text).to_owned())
            .ok_or_else(|| "there is no such file".to_owned())
    }
}

#[test]
fn references_lead_to_other_files_and_through_encoded_names() {
    let files = FileSet(vec![
        (
            "parts/paths.yaml",
            "tickets:\n  post:\n    requestBody:\n      content:\n        application/json:\n          schema: { $ref: '../types.json#/Ticket' }\n    responses: { 201: { content: { application/json: { schema: { $ref: '../types.json#/Ticket' } } } } }\n",
        ),
        (
            "types.json",
            r##"{ "Ticket": { "type": "object", "required": ["seat", "kind"], "properties": {
            "id": { "type": "string" }, "seat": { "$ref": "#/Seat" }, "kind": { "$ref": "parts/odd%20kinds.yaml" } } },
            "Seat": { "type": "string", "example": "14C" } }"##,
        ),
        (
            "parts/odd kinds.yaml",
            "type: string\nenum: [aisle, window]\n",
        ),
    ]);
    let text = json!({
        "openapi": "3.0.3",
        "components": { "parameters": { "a{b}/c": { "name": "day", "in": "query", "required": true, "example": "mon" } } },
        "paths": {
            "/tickets": { "$ref": "./parts/paths.yaml#/tickets" },
            "/shows": { "get": {
                "parameters": [{ "$ref": "#/components/parameters/a%7Bb%7D~1c" }],
                "responses": { "200": {} },
            } },
            "/lost": { "$ref": "missing.yaml#/x" },
            "/out": { "$ref": "../../secret.yaml" },
            "/gone": { "post": {
                "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/nowhere" } } } },
                "responses": { "200": {} },
            } },
        },
    });
    let imported = import_with(&text.to_string(), &options(), &files).unwrap();
    load(&imported);
    holds(
        &imported,
        &[
            "POST /tickets",
            "kind: \"aisle\"",
            "seat: \"14C\"",
            "GET /shows?day=mon",
            "POST /gone",
        ],
    );
    assert!(!imported.workload.contains("null"), "{}", imported.workload);
    says(
        &imported,
        "`missing.yaml` that the description refers to is left out, with what needs it: there is no such file",
    );
    says(&imported, "what `../../secret.yaml` stands for is left out");
    says(&imported, "`#/nowhere` is referred to, but isn't there");
    says(
        &imported,
        "POST /gone: its body (application/json) is left out",
    );
}

#[test]
fn forms_of_swagger_2_are_sent() {
    let operation = |parameters: Value, consumes: Value| json!({ "post": { "consumes": consumes, "parameters": parameters, "responses": { "200": {} } } });
    let field = |name: &str, kind: &str| json!({ "name": name, "in": "formData", "type": kind, "required": true });
    let list = json!({ "name": "tags", "in": "formData", "type": "array", "items": { "type": "string" },
        "collectionFormat": "multi", "x-example": ["red", "a b"] });
    let imported = made(&described(
        "2.0",
        json!({ "paths": {
            "/spots": operation(json!([field("latitude", "number"), field("town", "string"), field("password", "string")]),
                json!(["application/x-www-form-urlencoded"])),
            "/tags": operation(json!([list]), json!([])),
            "/scans": operation(json!([field("title", "string"), field("page", "file")]), json!(["multipart/form-data"])),
            "/xml": operation(json!([{ "name": "b", "in": "body", "schema": { "type": "object", "xml": { "name": "spot" },
                "properties": { "n": { "type": "integer" } } } }]), json!(["application/xml"])),
        } }),
    ));
    holds(
        &imported,
        &[
            "latitude: \"1\"",
            "town: \"text\"",
            "password: \"{{ secret('PASSWORD') }}\"",
            "text: tags=red&tags=a+b",
            r#"name=\"page\"; filename=\"page\"\r\nContent-Type: application/octet-stream"#,
            r#"name=\"title\"\r\n\r\ntext\r\n"#,
            "<spot><n>1</n></spot>",
        ],
    );
}

#[test]
fn parameters_are_written_by_their_styles() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let query = |name: &str, more: Value| {
        let mut one = json!({ "name": name, "in": "query", "required": true, "schema": list, "example": [8, 9] });
        for (key, value) in more.as_object().unwrap() {
            one[key] = value.clone();
        }
        one
    };
    let object = json!({ "type": "object", "required": ["hue", "by"], "properties": {
        "hue": { "enum": ["teal"] }, "by": { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } } } });
    let path = |style: &str, explode: bool| json!([{ "name": "k", "in": "path", "required": true, "style": style, "explode": explode, "schema": list, "example": [8, 9] }]);
    let get = |parameters: Value| json!({ "get": { "parameters": parameters, "responses": { "200": {} } } });
    let imported = made(&described(
        "3.0.3",
        json!({ "paths": {
            "/search?kind=all": get(json!([
                query("plain", json!({})),
                query("commas", json!({ "explode": false })),
                query("spaces", json!({ "style": "spaceDelimited" })),
                query("pipes", json!({ "style": "pipeDelimited", "explode": false })),
                query("deep", json!({ "style": "deepObject", "schema": object, "example": { "hue": "teal", "by": { "id": 1 } } })),
                { "name": "w", "in": "query", "required": true, "content": { "application/json": { "schema": object } } },
            ])),
            "/a/{k}": get(path("simple", false)),
            "/b/{k}": get(path("label", true)),
            "/c/{k}": get(path("matrix", true)),
            "/d{k}": get(path("matrix", false)),
            "/head": get(json!([{ "name": "X-Ids", "in": "header", "required": true, "schema": list, "example": [8, 9] },
                { "name": "seen", "in": "cookie", "required": true, "schema": { "type": "string" } }])),
        } }),
    ));
    holds(
        &imported,
        &[
            "/search?kind=all&plain=8&plain=9&commas=8,9&spaces=8%209&pipes=8%7C9&deep[by][id]=1&deep[hue]=teal&w=%7B%22by%22:%7B%22id%22:1%7D",
            "GET /a/{{ k }}",
            "GET /b/.{{ k_2 }}",
            "GET /c/;k={{ k_3 }}",
            "GET /d;k={{ k }}",
            "k: \"8,9\"",
            "k_2: \"8.9\"",
            "k_3: \"8;k=9\"",
            "X-Ids: \"8,9\"",
        ],
    );
    says(&imported, "GET /head: its cookie `seen` is left out");
}

#[test]
fn what_an_operation_has_of_its_own_is_taken_or_reported() {
    let imported = made(&described(
        "3.1.0",
        json!({
            "webhooks": { "paid": {} },
            "components": { "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": "SID" },
                "card": { "type": "mutualTLS" },
            } },
            "paths": {
                "/files": {
                    "servers": [{ "url": "https://files.test/store" }],
                    "get": { "responses": { "200": {} } },
                    "head": { "responses": { "200": {} } },
                },
                "/same": { "get": { "servers": [{ "url": "http://api.test/v7" }], "security": [{ "session": [] }], "responses": {} } },
                "/more": { "get": { "security": [{ "card": [] }], "responses": {} } },
            },
        }),
    ));
    holds(
        &imported,
        &["GET https://files.test/store/files", "GET /v7/same"],
    );
    says(&imported, "GET /files: goes to https://files.test");
    says(&imported, "HEAD /files left out");
    says(&imported, "GET /same: its cookie `SID` is left out");
    says(
        &imported,
        "GET /more: its security scheme `card` is left out",
    );
    says(&imported, "1 of `webhooks` left out");
}

#[test]
fn bodies_of_several_parts_and_of_xml_are_sent() {
    let post = |content: Value| json!({ "post": { "requestBody": { "content": content }, "responses": { "200": {} } } });
    let imported = made(&described(
        "3.0.3",
        json!({
            "components": { "schemas": { "Order": { "type": "object", "required": ["id", "line", "note"], "properties": {
                "id": { "type": "integer", "xml": { "attribute": true } },
                "line": { "type": "array", "xml": { "wrapped": true, "name": "lines" }, "items": { "type": "string", "xml": { "name": "line" } }, "example": ["a<b", "c"] },
                "note": { "type": "string", "format": "uuid" },
            } } } },
            "paths": {
                "/orders": post(json!({ "application/xml": { "schema": { "$ref": "#/components/schemas/Order" } } })),
                "/uploads": post(json!({ "multipart/form-data": {
                    "schema": { "type": "object", "required": ["about", "scan", "tag"], "properties": {
                        "about": { "type": "object", "properties": { "n": { "type": "integer" } } },
                        "scan": { "type": "string", "format": "binary" },
                        "tag": { "type": "array", "items": { "type": "string" }, "example": ["x", "y"] },
                    } },
                    "encoding": { "scan": { "contentType": "image/png, image/gif" } },
                } })),
            },
        }),
    ));
    holds(
        &imported,
        &[
            r#"<Order id=\"1\"><lines><line>a&lt;b</line><line>c</line></lines><note>{{ uuid() | xml }}</note></Order>"#,
            "Content-Type: \"application/xml\"",
            r#"name=\"about\"\r\nContent-Type: application/json\r\n\r\n{\"n\":1}"#,
            r#"name=\"scan\"; filename=\"scan\"\r\nContent-Type: image/png"#,
            r#"name=\"tag\"\r\n\r\nx\r\n"#,
            r#"name=\"tag\"\r\n\r\ny\r\n"#,
        ],
    );
}

/// What is made up is held against its own schema.
#[test]
fn examples_that_are_made_up_satisfy_their_schemas() {
    let schemas = [
        json!({ "type": "string", "minLength": 12, "maxLength": 14 }),
        json!({ "type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$" }),
        json!({ "type": "string", "pattern": "^\\w+@corp\\.test$", "minLength": 20 }),
        json!({ "type": "string", "format": "date-time" }),
        json!({ "type": "string", "format": "email", "maxLength": 10 }),
        json!({ "type": "integer", "minimum": 7, "multipleOf": 5 }),
        json!({ "type": "integer", "maximum": -3 }),
        json!({ "type": "integer", "exclusiveMinimum": 41, "exclusiveMaximum": 43 }),
        json!({ "type": "integer", "minimum": 9_223_372_036_854_775_809_u64 }),
        json!({ "type": "number", "minimum": 0.35, "multipleOf": 0.1, "maximum": 0.9 }),
        json!({ "type": "number", "exclusiveMinimum": 2, "maximum": 2.5 }),
        json!({ "type": "array", "items": { "type": "integer" }, "minItems": 3, "uniqueItems": true }),
        json!({ "type": "array", "items": { "enum": ["a", "b", "c"] }, "minItems": 2, "uniqueItems": true }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer", "minimum": 4 }], "minItems": 2 }),
        json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a", "b"] }),
        json!({ "type": "object", "properties": { "a": {}, "b": { "type": "boolean" }, "c": { "type": "integer" } }, "required": ["b"], "minProperties": 2 }),
        json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "integer" } }),
        json!({ "allOf": [{ "type": "string", "minLength": 3 }] }),
        json!({ "type": ["null", "integer"], "minimum": 3 }),
        json!({ "enum": [null, "x"] }),
        json!({ "oneOf": [{ "type": "null" }, { "type": "object", "required": ["k"], "properties": { "k": { "const": 5 } } }] }),
    ];
    for schema in schemas {
        let whole = json!({ "type": "object", "required": ["it"], "properties": { "it": schema } });
        let imported = made(&described(
            "3.1.0",
            json!({ "paths": { "/a": { "post": {
                "requestBody": { "content": { "application/json": { "schema": whole } } },
                "responses": {},
            } } } }),
        ));
        let workload = load(&imported);
        let lab_workload::Body::Json(body) = &workload.session.steps[0].requests[0].body else {
            panic!("{}", imported.workload);
        };
        let value: Value = serde_json::from_str(body.as_literal().unwrap()).unwrap();
        let judge = lab_workload::JsonSchema::parse("s", whole.to_string().as_bytes()).unwrap();
        assert_eq!(judge.judge(&value), Ok(()), "{schema}: {value}");
    }
}
