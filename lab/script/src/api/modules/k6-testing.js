// The library at https://jslib.k6.io/k6-testing: assertions that end the test, or mark it as failed.
import { inspected } from 'plimsoll/internal/inspect';
import { AssertionError, at, same } from 'plimsoll/internal/same';

const short = (value) => {
  const text = inspected(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

class Expectation {
  constructor(value, message, settings, negated = false) {
    this.$ = { value, message, settings, negated };
  }

  get not() {
    const { value, message, settings, negated } = this.$;
    return new Expectation(value, message, settings, !negated);
  }

  $judge(passed, text) {
    const { value, message, settings, negated } = this.$;
    if (!!passed !== negated) return;
    const sentence = `${message === undefined ? '' : `${message}: `}expected ${short(value)} ${negated ? 'not ' : ''}${text}`;
    if (!settings.soft) {
      $host.abort(sentence);
      throw new AssertionError(sentence);
    }
    if (settings.softMode === 'throw') throw new AssertionError(sentence);
    $host.log('error', sentence);
    $host.failTest(sentence);
  }
}

const MATCHERS = {
  toBe: [(value, expected) => Object.is(value, expected), 'to be'],
  toEqual: [same, 'to equal'],
  toBeCloseTo: [(value, expected, digits = 2) => Math.abs(value - expected) < 10 ** -digits / 2, 'to be close to'],
  toBeDefined: [(value) => value !== undefined, 'to be defined'],
  toBeUndefined: [(value) => value === undefined, 'to be undefined'],
  toBeNull: [(value) => value === null, 'to be null'],
  toBeNaN: [(value) => Number.isNaN(value), 'to be NaN'],
  toBeTruthy: [(value) => value, 'to be truthy'],
  toBeFalsy: [(value) => !value, 'to be falsy'],
  toBeGreaterThan: [(value, limit) => value > limit, 'to be greater than'],
  toBeGreaterThanOrEqual: [(value, limit) => value >= limit, 'to be greater than or equal to'],
  toBeLessThan: [(value, limit) => value < limit, 'to be less than'],
  toBeLessThanOrEqual: [(value, limit) => value <= limit, 'to be less than or equal to'],
  toBeInstanceOf: [(value, type) => value instanceof type, 'to be an instance of'],
  toContain: [
    (value, part) => (typeof value === 'string' ? value.includes(part) : [...value].some((one) => Object.is(one, part))),
    'to contain',
  ],
  toContainEqual: [(value, part) => [...value].some((one) => same(one, part)), 'to contain'],
  toHaveLength: [(value, length) => (value?.length ?? value?.size) === length, 'to have the length'],
  toHaveProperty: [
    (value, path, ...expected) => {
      const { found, value: held } = at(value, path);
      return found && (expected.length === 0 || same(held, expected[0]));
    },
    'to have the property',
  ],
};
for (const [name, [test, text]] of Object.entries(MATCHERS)) {
  Object.defineProperty(Expectation.prototype, name, {
    value(...given) {
      this.$judge(test(this.$.value, ...given), [text, ...given.map(short)].join(' '));
    },
  });
}
// Assertions on elements of a browser's page, which retry.
for (const name of ['Checked', 'Disabled', 'Editable', 'Enabled', 'Hidden', 'Visible'].map((word) => `toBe${word}`).concat(
  ['toContainText', 'toHaveAttribute', 'toHaveText', 'toHaveValue'],
)) {
  Object.defineProperty(Expectation.prototype, name, {
    value() {
      throw new TypeError(`expect(…).${name} is for pages of a browser, which k6/browser drives: it is not supported`);
    },
  });
}

function configured(settings) {
  const make = (value, message) => new Expectation(value, message, settings);
  make.soft = (value, message) => new Expectation(value, message, { ...settings, soft: true });
  make.configure = (more) => configured({ ...settings, ...more });
  return Object.freeze(make);
}

export const expect = configured({ softMode: 'fail' });

export { AssertionError };

export default Object.freeze({ expect, AssertionError });
