//! Descriptions of services as workloads.

use std::io;

use lab_import::openapi::{OpenApiOptions, import};
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

/// A schema that refers to itself, or to nothing, ends all the same.
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
