//! Libraries of assertions: k6chaijs, expect, k6-testing.

use lab_script::Event;
use serde_json::json;

use super::run;

const CHAI: &str =
    "import { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';";

#[test]
fn chai_passes_documented_examples() {
    let script = format!(
        "{CHAI}
export default function () {{
  return describe('Basic test', () => {{
    expect({{ a: 1 }}).to.not.have.property('b');
    expect({{ a: 1 }}).to.deep.equal({{ a: 1 }});
    expect({{ a: {{ b: ['x', 'y'] }} }}).to.have.nested.property('a.b[1]');
    expect({{ a: 1 }}).to.have.own.property('a');
    expect([1, 2]).to.have.ordered.members([1, 2]).but.not.have.ordered.members([2, 1]);
    expect({{ a: 1, b: 2 }}).to.not.have.any.keys('c', 'd');
    expect({{ a: 1, b: 2 }}).to.have.all.keys('a', 'b');
    expect('foo').to.be.a('string');
    expect([1, 2, 3]).to.be.an('array').that.includes(2);
    expect('foobar').to.include('foo');
    expect(true).to.be.true;
    expect(null).to.be.null;
    expect(undefined).to.be.undefined;
    expect(NaN).to.be.NaN;
    expect([]).to.be.empty;
    expect({{}}).not.to.be.arguments;
    expect({{ a: 1 }}).to.eql({{ a: 1 }}).but.not.equal({{ a: 1 }});
    expect('foo').to.have.lengthOf(3);
    expect(2).to.be.at.most(3);
    expect([1, 2, 3]).to.have.lengthOf.at.least(2);
    expect({{ a: 1 }}).to.not.be.an.instanceof(Array);
    expect('foobar').to.match(/^foo/);
    expect('foobar').to.have.string('bar');
    expect(function () {{ throw new TypeError('Illegal salmon!'); }}).to.throw(TypeError, /salmon/);
    expect(1).to.satisfy((num) => num > 0);
    expect(1.5).to.be.closeTo(1.4, 0.2);
    expect([1, 2, 3]).to.have.members([2, 1, 3]);
    expect([1, 2, 3]).to.include.members([3, 1]);
    expect('Today is sunny').to.contain.oneOf(['sunny', 'cloudy']);
    expect({{ a: 1 }}).to.be.extensible;
    expect(1).to.be.finite;
    expect({{ a: 1, b: 2 }}).to.include({{ a: 1 }});
    expect({{ a: 1 }}).to.have.property('a').that.is.a('number').and.equals(1);
  }});
}}"
    );
    let done = run(&script, "");
    assert_eq!(*done.value(), true, "{:?}", done.checks());
    let checks = done.checks();
    assert!(
        checks.iter().all(|check| check.starts_with("expected ")),
        "{checks:?}"
    );
    for expected in [
        "expected ${this} to not have property 'b'",
        "expected ${this} to deeply equal { a: 1 }",
        "expected ${this} to have nested property 'a.b[1]'",
        "expected ${this} to have keys 'a', and 'b'",
        "expected ${this} to be a string",
        "expected ${this} to be at most 3",
        "expected ${this} to have the same members as [ 2, 1, 3 ]",
    ] {
        assert!(
            checks.iter().any(|check| check == expected),
            "{expected}: {checks:?}"
        );
    }
}

#[test]
fn chai_describe_catches_failures() {
    let script = format!(
        "{CHAI}
import http from 'k6/http';
export default function () {{
  const one = describe('good', () => {{ expect(1, 'number one').to.equal(1); }});
  const two = describe('throws', () => {{ throw 'Something entirely unexpected happened'; }});
  const three = describe('fails', () => {{ expect(false, 'my value').to.be.true(); console.log('never'); }});
  const four = describe('sends', () => {{
    const r = http.get('http://shop/');
    expect(r.status, 'response status').to.equal(200);
    expect(r).to.have.validJsonBody();
    expect(r.json('names').length, 'number of names').to.be.above(1);
  }});
  return [one, two, three, four];
}}"
    );
    let done = run(&script, r#"{"names":[1,2]}"#);
    assert_eq!(*done.value(), json!([true, false, false, true]));
    assert_eq!(
        done.checks(),
        [
            "expected number one to equal 1",
            "!Exception raised \"Something entirely unexpected happened\"",
            "!expected my value to be true",
            "expected response status to equal 200",
            "expected ${this} to have a valid json body",
            "expected number of names to be above 1",
        ]
    );
}

#[test]
fn expect_chains() {
    let script = "import { describe } from 'https://jslib.k6.io/expect/0.0.4/index.js'; import http from 'k6/http';
        export default function () {
          return [describe('a', (t) => {
            const r = http.get('http://shop/');
            t.expect(r.status).as('response status').toEqual(200).and(r).as('body').toHaveValidJson().and(r.json('stars')).as('rating stars').toBeGreaterThan(0);
          }), describe('b', (t) => { t.expect(1).as('one').toEqual(2).and(3).toBeTruthy(); })];
        }";
    let done = run(script, r#"{"stars":5}"#);
    assert_eq!(*done.value(), json!([true, false]));
    assert_eq!(
        done.checks(),
        [
            "response status is 200",
            "body has valid json",
            "rating stars is greater than 0",
            "!one is 2"
        ]
    );
}

#[test]
fn testing_ends_test_or_marks_it() {
    let script = "import { expect } from 'https://jslib.k6.io/k6-testing/0.5.0/index.js';
        export default function () {
          expect(42).toBe(42); expect([1, 2]).toContain(2); expect([{ a: 1 }]).toContainEqual({ a: 1 }); expect({ a: { b: 1 } }).toHaveProperty('a.b', 1);
          expect(0.1 + 0.2).toBeCloseTo(0.3); expect('abc').not.toContain('x'); expect('abc').toHaveLength(3); expect({ a: 1 }).toEqual({ a: 1 });
          expect.soft(1).toBe(2);
          expect(1, 'the answer').toBeGreaterThan(2);
        }";
    let done = run(script, "");
    assert!(
        done.error()
            .contains("the answer: expected 1 to be greater than 2"),
        "{}",
        done.error()
    );
    assert!(
        matches!(&done.events[1], Event::Fail { reason } if reason == "expected 1 to be 2"),
        "{:?}",
        done.events
    );
    assert!(matches!(&done.events[2], Event::Interrupt { .. }));
}
