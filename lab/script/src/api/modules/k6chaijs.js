// The library at https://jslib.k6.io/k6chaijs: assertions in the form of Chai, which count as checks.
import { group } from 'k6';
import { inspected } from 'plimsoll/internal/inspect';
import { AssertionError, at, same } from 'plimsoll/internal/same';
import { guarded, kindOf } from 'plimsoll/internal/waiting';

export { AssertionError };

export const config = {
  truncateMsgThreshold: 300,
  truncateVariableThreshold: 100,
  aggregateChecks: true,
  logFailures: false,
};

const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.max(0, most - 3))}...` : text);
const shown = (value) => cut(inspected(value), config.truncateVariableThreshold);
const listed = (values, word) =>
  values.length < 2 ? values.map(shown).join('') : `${values.slice(0, -1).map(shown).join(', ')}, ${word} ${shown(values.at(-1))}`;

// Words without a meaning of their own.
const WORDS = ['to', 'be', 'been', 'is', 'that', 'which', 'and', 'has', 'have', 'with', 'at', 'of', 'same', 'but', 'does', 'still', 'also'];
// Words that change what follows.
const FLAGS = ['not', 'deep', 'nested', 'own', 'ordered', 'any', 'all', 'itself'];

class Assertion {
  constructor(value, label, flags = {}) {
    this.$ = { value, label, flags };
  }

  // Records a check and ends the block if it fails. `text` is what is expected, `negated` its opposite.
  $judge(passed, text, negated = text.replace(/^to /, 'to not ')) {
    const { value, label, flags } = this.$;
    const name = label ?? (config.aggregateChecks ? '${this}' : shown(value));
    const sentence = cut(`expected ${name} ${flags.not ? negated : text}`, config.truncateMsgThreshold);
    const good = !!passed !== !!flags.not;
    $host.check(sentence.replaceAll('::', ': :'), good);
    if (!good) {
      if (config.logFailures) $host.log('warn', `${sentence}: it is ${shown(value)}`);
      throw new AssertionError(sentence);
    }
    return this;
  }

  $with(flag, on = true) {
    const { value, label, flags } = this.$;
    return new Assertion(value, label, { ...flags, [flag]: on });
  }

  equal(expected) {
    if (this.$.flags.deep) return this.eql(expected);
    return this.$judge(this.$.value === expected, `to equal ${shown(expected)}`);
  }

  eql(expected) {
    return this.$judge(same(this.$.value, expected), `to deeply equal ${shown(expected)}`);
  }

  $measured() {
    const { value, flags } = this.$;
    if (flags.length !== true) return value;
    return value?.length ?? value?.size;
  }

  $compared(test, words, limit) {
    const { flags } = this.$;
    const actual = this.$measured();
    const right = (typeof actual === 'number' || actual instanceof Date || typeof actual === 'bigint') && test(actual);
    return this.$judge(right, flags.length ? `to have a length ${words} ${shown(limit)}` : `to be ${words} ${shown(limit)}`);
  }

  above(limit) {
    return this.$compared((actual) => actual > limit, 'above', limit);
  }

  least(limit) {
    return this.$compared((actual) => actual >= limit, 'at least', limit);
  }

  below(limit) {
    return this.$compared((actual) => actual < limit, 'below', limit);
  }

  most(limit) {
    return this.$compared((actual) => actual <= limit, 'at most', limit);
  }

  within(from, to) {
    return this.$judge(this.$measured() >= from && this.$measured() <= to, `to be within ${from}..${to}`);
  }

  closeTo(expected, delta) {
    return this.$judge(Math.abs(this.$.value - expected) <= delta, `to be close to ${expected} +/- ${delta}`);
  }

  instanceof(type) {
    return this.$judge(this.$.value instanceof type, `to be an instance of ${type?.name}`);
  }

  property(name, ...expected) {
    const { value, label, flags } = this.$;
    const found =
      value === null || value === undefined
        ? { found: false }
        : flags.nested
          ? at(value, name)
          : { found: flags.own ? Object.hasOwn(Object(value), name) : name in Object(value), value: value[name] };
    const kind = `to have ${flags.deep ? 'deep ' : ''}${flags.own ? 'own ' : ''}${flags.nested ? 'nested ' : ''}property`;
    const right = found.found && (expected.length === 0 || (flags.deep ? same(found.value, expected[0]) : found.value === expected[0]));
    this.$judge(right, `${kind} ${shown(name)}${expected.length > 0 ? ` of ${shown(expected[0])}` : ''}`);
    return flags.not ? this : new Assertion(found.value, label === undefined ? undefined : `${label}.${name}`);
  }

  ownPropertyDescriptor(name, expected) {
    const found = Object.getOwnPropertyDescriptor(Object(this.$.value), name);
    return this.$judge(found && (expected === undefined || same(found, expected)), `to have an own property descriptor for ${shown(name)}`);
  }

  match(pattern) {
    return this.$judge(pattern.test(this.$.value), `to match ${pattern}`);
  }

  string(part) {
    return this.$judge(typeof this.$.value === 'string' && this.$.value.includes(part), `to contain ${shown(part)}`);
  }

  keys(...names) {
    const wanted = (Array.isArray(names[0]) ? names[0] : names.length === 1 && typeof names[0] === 'object' ? Object.keys(names[0]) : names).map(String);
    const { value, flags } = this.$;
    const has = (value instanceof Map || value instanceof Set ? [...value.keys()] : Object.keys(Object(value))).map(String);
    const held = wanted.filter((name) => has.includes(name));
    const right = flags.any ? held.length > 0 : held.length === wanted.length && (flags.contains || has.length === wanted.length);
    return this.$judge(right, `to ${flags.contains ? 'contain' : 'have'} ${wanted.length > 1 ? 'keys' : 'key'} ${listed(wanted, flags.any ? 'or' : 'and')}`);
  }

  members(expected) {
    const { value, flags } = this.$;
    const equal = flags.deep ? same : Object.is;
    let right = Array.isArray(value) && (flags.contains || value.length === expected.length);
    if (right && flags.ordered) right = expected.every((one, i) => equal(value[i], one));
    else if (right) {
      const left = [...value];
      right = expected.every((one) => {
        const place = left.findIndex((other) => equal(other, one));
        if (place >= 0) left.splice(place, 1);
        return place >= 0;
      });
    }
    const kind = `${flags.ordered ? 'ordered ' : ''}members`;
    return this.$judge(right, flags.contains ? `to be a superset of ${shown(expected)}` : `to have the same ${kind} as ${shown(expected)}`);
  }

  oneOf(expected) {
    const { value, flags } = this.$;
    const right = flags.contains ? expected.some((one) => value.includes(one)) : expected.includes(value);
    return this.$judge(right, `to ${flags.contains ? 'contain' : 'be'} one of ${shown(expected)}`);
  }

  throw(type, message) {
    if (typeof this.$.value !== 'function') throw new TypeError(`expect(…).to.throw takes a function, not ${kindOf(this.$.value)}`);
    const fits = (error) => {
      if (typeof type === 'function' && !(error instanceof type)) return false;
      const wanted = typeof type === 'function' ? message : (type ?? message);
      const text = error instanceof Error ? error.message : String(error);
      return wanted === undefined || wanted === error || (wanted instanceof RegExp ? wanted.test(text) : text.includes(String(wanted)));
    };
    const what = `to throw ${typeof type === 'function' ? type.name : 'an error'}`;
    return guarded(
      this.$.value,
      () => this.$judge(false, what),
      (error) => this.$judge(fits(error), what),
    );
  }

  respondTo(name) {
    const { value, flags } = this.$;
    const target = typeof value === 'function' && !flags.itself ? value.prototype : value;
    return this.$judge(typeof target?.[name] === 'function', `to respond to ${shown(name)}`);
  }

  satisfy(test) {
    return this.$judge(test(this.$.value), `to satisfy ${shown(test)}`);
  }

  $changed(target, name, test, words) {
    const read = () => (name === undefined ? target() : target[name]);
    const before = read();
    return guarded(
      this.$.value,
      () => {
        const difference = read() - before;
        this.$judge(test(difference, read() !== before), `to ${words} ${name === undefined ? 'the value' : `.${name}`}`);
        const flagged = new Assertion(difference, this.$.label);
        flagged.by = (amount) => flagged.$judge(Math.abs(difference) === amount, `to ${words} by ${amount}`);
        return flagged;
      },
      (error) => {
        throw error;
      },
    );
  }

  change(target, name) {
    return this.$changed(target, name, (_, changed) => changed, 'change');
  }

  increase(target, name) {
    return this.$changed(target, name, (difference) => difference > 0, 'increase');
  }

  decrease(target, name) {
    return this.$changed(target, name, (difference) => difference < 0, 'decrease');
  }

  validJsonBody() {
    let valid = true;
    try {
      this.$.value.json();
    } catch {
      valid = false;
    }
    return this.$judge(valid, 'to have a valid json body', 'to not have a valid json body');
  }
}

function typeOf(value) {
  if (value === null) return 'null';
  if (typeof value !== 'object') return typeof value;
  return Object.prototype.toString.call(value).slice(8, -1).toLowerCase();
}

function isEmpty(value) {
  if (typeof value === 'string' || Array.isArray(value)) return value.length === 0;
  if (value instanceof Map || value instanceof Set) return value.size === 0;
  return value !== null && typeof value === 'object' && Object.keys(value).length === 0;
}

// A function that is also the assertion that follows.
function callable(assertion, f) {
  const both = (...given) => f(...given);
  Object.setPrototypeOf(both, assertion);
  return both;
}

const getter = (name, get) => Object.defineProperty(Assertion.prototype, name, { get, configurable: true });

for (const word of WORDS) getter(word, function () { return this; });
for (const flag of FLAGS) getter(flag, function () { return this.$with(flag); });

for (const name of ['a', 'an']) {
  getter(name, function () {
    return callable(this, (type) => {
      const article = /^[aeiou]/i.test(type) ? 'an' : 'a';
      return this.$judge(typeOf(this.$.value) === String(type).toLowerCase(), `to be ${article} ${type}`);
    });
  });
}

function includes(assertion, part) {
  const { value, flags } = assertion.$;
  const equal = flags.deep ? same : (a, b) => a === b || Object.is(a, b);
  let right = false;
  if (typeof value === 'string') right = value.includes(part);
  else if (Array.isArray(value) || value instanceof Set) right = [...value].some((one) => equal(one, part));
  else if (value instanceof Map) right = [...value.values()].some((one) => equal(one, part));
  else if (value !== null && typeof value === 'object' && part !== null && typeof part === 'object') {
    right = Object.keys(part).every((name) => {
      const found = flags.nested ? at(value, name) : { found: name in value, value: value[name] };
      return found.found && equal(found.value, part[name]);
    });
  }
  return assertion.$judge(right, `to ${flags.deep ? 'deep ' : ''}include ${shown(part)}`);
}

for (const name of ['include', 'includes', 'contain', 'contains']) {
  getter(name, function () {
    return callable(this.$with('contains'), (part) => includes(this, part));
  });
}

for (const name of ['length', 'lengthOf']) {
  getter(name, function () {
    const flagged = this.$with('length');
    return callable(flagged, (expected) => this.$judge(flagged.$measured() === expected, `to have a length of ${shown(expected)}`));
  });
}

const FACTS = {
  ok: [(value) => value, 'to be truthy'],
  true: [(value) => value === true, 'to be true'],
  false: [(value) => value === false, 'to be false'],
  null: [(value) => value === null, 'to be null'],
  undefined: [(value) => value === undefined, 'to be undefined'],
  NaN: [(value) => Number.isNaN(value), 'to be NaN'],
  exist: [(value) => value !== null && value !== undefined, 'to exist'],
  empty: [isEmpty, 'to be empty'],
  arguments: [(value) => typeOf(value) === 'arguments', 'to be arguments'],
  extensible: [(value) => Object.isExtensible(value), 'to be extensible'],
  sealed: [(value) => Object.isSealed(value), 'to be sealed'],
  frozen: [(value) => Object.isFrozen(value), 'to be frozen'],
  finite: [(value) => Number.isFinite(value), 'to be a finite number'],
};
for (const [name, [test, text]] of Object.entries(FACTS)) {
  // Judged when it is read, as in Chai; a call of the result, as the documentation of k6 shows it, does nothing more.
  getter(name, function () {
    this.$judge(test(this.$.value), text);
    return callable(this, () => this);
  });
}

const NAMES = {
  equal: ['equals', 'eq'],
  eql: ['eqls'],
  above: ['gt', 'greaterThan'],
  least: ['gte', 'greaterThanOrEqual'],
  below: ['lt', 'lessThan'],
  most: ['lte', 'lessThanOrEqual'],
  instanceof: ['instanceOf'],
  closeTo: ['approximately'],
  match: ['matches'],
  keys: ['key'],
  throw: ['throws', 'Throw'],
  respondTo: ['respondsTo'],
  satisfy: ['satisfies'],
  change: ['changes'],
  increase: ['increases'],
  decrease: ['decreases'],
};
for (const [name, others] of Object.entries(NAMES)) for (const other of others) Assertion.prototype[other] = Assertion.prototype[name];

export function expect(value, label) {
  return new Assertion(value, label === undefined ? undefined : String(label));
}

// A group that catches what its function throws, and returns whether nothing was thrown.
export function describe(name, f) {
  return group(name, () =>
    guarded(
      () => f(expect),
      () => true,
      (error) => {
        if (!(error instanceof AssertionError)) {
          const text = cut(`Exception raised "${error instanceof Error ? error.message : error}"`, config.truncateMsgThreshold);
          $host.check(text.replaceAll('::', ': :'), false);
          $host.log('warn', `${name}: ${error}`);
        }
        return false;
      },
    ),
  );
}

export default Object.freeze({ describe, expect, config, AssertionError, Assertion });
