// The library at https://jslib.k6.io/expect: assertions in chains, which count as checks.
import { group } from 'k6';
import { inspected } from 'plimsoll/internal/inspect';
import { same } from 'plimsoll/internal/same';
import { guarded } from 'plimsoll/internal/waiting';

// Ends the chain and the block after a failed assertion.
class Broken extends Error {}

class Chain {
  constructor(value) {
    this.value = value;
    this.label = undefined;
  }

  as(label) {
    this.label = String(label);
    return this;
  }

  and(value) {
    return new Chain(value);
  }

  #judge(passed, text) {
    const sentence = `${this.label ?? inspected(this.value).slice(0, 100)} ${text}`.replaceAll('::', ': :');
    $host.check(passed ? sentence : `${sentence}.`.replace(/\.$/, ''), !!passed);
    if (!passed) throw new Broken(`${sentence}: it is ${inspected(this.value).slice(0, 100)}`);
    return this;
  }

  toEqual(expected) {
    return this.#judge(same(this.value, expected), `is ${inspected(expected)}`);
  }

  toBe(expected) {
    return this.#judge(Object.is(this.value, expected), `is ${inspected(expected)}`);
  }

  toBeGreaterThan(limit) {
    return this.#judge(this.value > limit, `is greater than ${limit}`);
  }

  toBeGreaterThanOrEqual(limit) {
    return this.#judge(this.value >= limit, `is greater than or equal to ${limit}`);
  }

  toBeLessThan(limit) {
    return this.#judge(this.value < limit, `is less than ${limit}`);
  }

  toBeLessThanOrEqual(limit) {
    return this.#judge(this.value <= limit, `is less than or equal to ${limit}`);
  }

  toBeBetween(from, to) {
    return this.#judge(this.value >= from && this.value <= to, `is between ${from} and ${to}`);
  }

  toBeTruthy() {
    return this.#judge(this.value, 'is truthy');
  }

  toBeFalsy() {
    return this.#judge(!this.value, 'is falsy');
  }

  toInclude(part) {
    return this.#judge(this.value?.includes?.(part), `includes ${inspected(part)}`);
  }

  toContain(part) {
    return this.toInclude(part);
  }

  toMatch(pattern) {
    return this.#judge(new RegExp(pattern).test(this.value), `matches ${pattern}`);
  }

  toHaveValidJson() {
    let valid = true;
    try {
      if (typeof this.value === 'string') JSON.parse(this.value);
      else this.value.json();
    } catch {
      valid = false;
    }
    return this.#judge(valid, 'has valid json');
  }
}

export function expect(value) {
  return new Chain(value);
}

export function describe(name, f) {
  return group(name, () =>
    guarded(
      () => f({ expect }),
      () => true,
      (error) => {
        if (!(error instanceof Broken)) $host.check(`Exception raised "${error}"`.replaceAll('::', ': :'), false);
        $host.log('warn', `${name}: ${error instanceof Error ? error.message : error}`);
        return false;
      },
    ),
  );
}

export default Object.freeze({ describe, expect });
