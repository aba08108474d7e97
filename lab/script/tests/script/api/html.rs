//! `k6/html`, with the examples of k6's documentation.

use serde_json::{Value, json};

use super::{error, run};

const LIST: &str = r#"<dl><dt id="term-1">term 1</dt><dd>definition 1-a</dd><dd>definition 1-b</dd><dd>definition 1-c</dd><dd>definition 1-d</dd><dt id="term-2">term 2</dt><dd>definition 2-a</dd><dd>definition 2-b</dd><dd>definition 2-c</dd><dt id="term-3">term 3</dt><dd>definition 3-a</dd><dd>definition 3-b</dd></dl>"#;

const FIELDS: &str = r#"<form><input id="text_input" name="t" type="text" value="input-text-value"/>
<select id="select_one" name="one"><option value="not this option">no</option><option value="yes this option" selected>yes</option></select>
<select id="select_text"><option>no text</option><option selected>yes text</option></select>
<select id="select_multi" name="m" multiple><option>option 1</option><option selected>option 2</option><option selected>option 3</option></select>
<textarea id="textarea" name="area">Lorem ipsum dolor sit amet</textarea>
<input type="checkbox" name="off" value="1"><input type="checkbox" name="on" checked><input type="submit" name="s" value="x"><input name="dead" disabled></form>"#;

/// The value of an expression with the document as `doc`.
fn of(page: &str, expression: &str) -> Value {
    let page = Value::from(page);
    let script = format!(
        "import {{ parseHTML }} from 'k6/html';\nexport default function () {{ const doc = parseHTML({page}); return {expression}; }}"
    );
    let done = run(&script, "");
    match done.result {
        Ok(value) => value,
        Err(thrown) => panic!("{expression}: {thrown:?}"),
    }
}

/// Checks expressions about [`LIST`].
fn all(examples: &[(&str, Value)]) {
    for (expression, expected) in examples {
        assert_eq!(of(LIST, expression), *expected, "{expression}");
    }
}

#[test]
fn selects_as_documented() {
    all(&[
        ("doc.find('dl').children().size()", json!(12)),
        ("doc.find('dl').children('dt').size()", json!(3)),
        ("doc.find('dt').eq(1).html()", json!("term 2")),
        ("doc.find('dt').first().text()", json!("term 1")),
        ("doc.find('dt').last().text()", json!("term 3")),
        ("doc.find('dt').eq(-2).text()", json!("term 2")),
        ("doc.find('dt').eq(7).size()", json!(0)),
        (
            "doc.find('dl').children().filter('#term-2').text()",
            json!("term 2"),
        ),
        (
            "doc.find('dl').children().filter((i, el) => el.text() === 'definition 3-a').text()",
            json!("definition 3-a"),
        ),
        (
            "doc.find('dl').children().filter(doc.find('dl dt#term-1')).text()",
            json!("term 1"),
        ),
        ("doc.find('dl').children().not('dt').size()", json!(9)),
        (
            "doc.find('dl').children().not('dt').not((i, el) => el.text().startsWith('definition')).size()",
            json!(0),
        ),
        ("doc.find('dl').children().is('dd')", json!(true)),
        (
            "doc.find('dl').children().is((i, el) => el.text() === 'hola')",
            json!(false),
        ),
        (
            "doc.find('dl').children().is(doc.find('dl').children().first())",
            json!(true),
        ),
        (
            "doc.find('dl').children().get(0).innerHTML()",
            json!("term 1"),
        ),
        (
            "doc.find('dl').children().get(-1).innerHTML()",
            json!("definition 3-b"),
        ),
    ]);
}

#[test]
fn walks_as_documented() {
    all(&[
        ("doc.find('#term-2').nextUntil('dt').size()", json!(3)),
        (
            "doc.find('#term-1').nextUntil('#term-3', 'dd').size()",
            json!(7),
        ),
        (
            "doc.find('#term-3').prevUntil('#term-1', 'dd').size()",
            json!(7),
        ),
        ("doc.find('#term-2').nextAll('dt').size()", json!(1)),
        ("doc.find('#term-2').prevAll().size()", json!(5)),
        ("doc.find('#term-2').next().text()", json!("definition 2-a")),
        ("doc.find('#term-2').prev('dt').size()", json!(0)),
        ("doc.find('#term-2').parents().size()", json!(3)),
        ("doc.find('#term-2').parentsUntil('body').size()", json!(1)),
        (
            "doc.find('#term-2').parent().attr('id') ?? 'none'",
            json!("none"),
        ),
        ("doc.find('dd').slice(4).size()", json!(5)),
        (
            "doc.find('dd').slice(2, 4).text()",
            json!("definition 1-cdefinition 1-d"),
        ),
        (
            "doc.find('dl').children('dt').map((i, el) => 'hola ' + el.text())",
            json!(["hola term 1", "hola term 2", "hola term 3"]),
        ),
        (
            "doc.find('dt').toArray().map((el) => el.text())",
            json!(["term 1", "term 2", "term 3"]),
        ),
        (
            "doc.find('dt').contents().text()",
            json!("term 1term 2term 3"),
        ),
        (
            "doc.find('dd:contains(\"3-b\")').text()",
            json!("definition 3-b"),
        ),
        ("doc.find('dl').has('#term-3').size()", json!(1)),
        ("doc.single('dd').text()", json!("definition 1-a")),
        ("doc.find('dd, dt').length", json!(12)),
    ]);
}

#[test]
fn finds_closest_data_and_attributes() {
    let page = r#"<ul id="one" class="level-1"><li class="item-ii">II<ul class="level-2"><li class="item-a">A</li></ul></li></ul>
<h1 data-test-id="data-value" data-n="7" data-on="true" data-o='{"a":[1]}'>Hola</h1>"#;
    assert_eq!(
        of(page, "doc.find('li.item-a').closest('ul').attr('class')"),
        "level-2"
    );
    assert_eq!(
        of(page, "doc.find('li.item-a').closest('#one').attr('id')"),
        "one"
    );
    assert_eq!(
        of(page, "doc.find('h1').data()"),
        json!({ "testId": "data-value", "n": 7, "on": true, "o": { "a": [1] } })
    );
    assert_eq!(
        of(
            page,
            "[doc.find('h1').data('test-id'), doc.find('h1').data('testId')]"
        ),
        json!(["data-value", "data-value"])
    );
    assert_eq!(
        of(page, "doc.find('li').has('ul').html()"),
        r#"II<ul class="level-2"><li class="item-a">A</li></ul>"#
    );
}

#[test]
fn reads_values_of_forms() {
    let val = |id: &str| of(FIELDS, &format!("doc.find('{id}').val()"));
    assert_eq!(val("#text_input"), "input-text-value");
    assert_eq!(val("#select_one option[selected]"), "yes this option");
    assert_eq!(val("#select_one"), "yes this option");
    assert_eq!(val("#select_text"), "yes text");
    assert_eq!(val("#select_multi"), json!(["option 2", "option 3"]));
    assert_eq!(val("#textarea"), "Lorem ipsum dolor sit amet");
    assert_eq!(
        of(FIELDS, "doc.find('form').serialize()"),
        "t=input-text-value&one=yes+this+option&m=option+2&m=option+3&area=Lorem+ipsum+dolor+sit+amet&on=on"
    );
    assert_eq!(
        of(FIELDS, "doc.find('form').serializeObject()"),
        json!({ "t": "input-text-value", "one": "yes this option", "m": ["option 2", "option 3"], "area": "Lorem ipsum dolor sit amet", "on": "on" })
    );
    let one = r#"<form><input name="username"></form>"#;
    assert_eq!(
        of(one, "doc.find('form').serializeArray()"),
        json!([{ "name": "username", "value": "" }])
    );
}

#[test]
fn elements_say_what_they_are() {
    let link = r#"<p><a href="http://username:password@example.com:8080/a?b#c" rel="prev next" class="x y">6</a>tail</p>"#;
    let examples = [
        ("el.nodeName()", json!("a")),
        ("el.innerHTML()", json!("6")),
        ("el.host()", json!("example.com:8080")),
        ("el.hostname()", json!("example.com")),
        ("el.port()", json!("8080")),
        ("el.protocol()", json!("http:")),
        ("el.username()", json!("username")),
        ("el.pathname()", json!("/a")),
        ("el.search()", json!("?b")),
        ("el.hash()", json!("#c")),
        ("el.origin()", json!("http://example.com:8080")),
        ("el.relList()", json!(["prev", "next"])),
        ("el.classList()", json!(["x", "y"])),
        ("el.parentElement().nodeName()", json!("p")),
        ("el.nextSibling().nodeValue()", json!("tail")),
        ("el.nextElementSibling() === undefined", json!(true)),
        ("el.nodeType()", json!(1)),
        ("el.firstChild().nodeName()", json!("#text")),
        ("el.hasAttribute('rel')", json!(true)),
        ("el.attributes().rel.value", json!("prev next")),
        ("el.matches('p > a')", json!(true)),
        ("el.parentElement().contains(el)", json!(true)),
        ("el.isSameNode(doc.find('a').get(0))", json!(true)),
        ("el.ownerDocument().querySelectorAll('a').length", json!(1)),
        ("el.selection().closest('p').size()", json!(1)),
        ("el.toString().startsWith('<a href=')", json!(true)),
    ];
    for (expression, expected) in examples {
        let expression = format!("((el) => {expression})(doc.find('a').get(0))");
        assert_eq!(of(link, &expression), expected, "{expression}");
    }
}

#[test]
fn each_waits_for_what_its_function_sends() {
    let script = "import http from 'k6/http';
        export default function () {
          const seen = [];
          http.get('http://shop/').html().find('a').each((i, el) => { seen.push(http.get('http://shop' + el.getAttribute('href')).status); });
          return seen;
        }";
    let done = run(script, "<a href='/1'>1</a><a href='/2'>2</a>");
    assert_eq!(*done.value(), json!([200, 200]));
    assert_eq!(done.requests.len(), 3);
}

#[test]
fn names_selectors_that_are_not_css() {
    let imports = "import { parseHTML } from 'k6/html'";
    assert!(error(imports, "parseHTML('<p>').find('p:first')").contains("isn't understood"));
    assert!(error(imports, "parseHTML('<p>').find('p[')").contains("isn't understood"));
    assert!(error(imports, "parseHTML(7)").contains("takes text"));
}
