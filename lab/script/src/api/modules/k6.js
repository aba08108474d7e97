// The module `k6`: checks, groups, and waits.
import { $$at } from '$$';
import { each, guarded, kindOf } from 'plimsoll/internal/waiting';

const SEPARATOR = '::';

function named(what, name) {
  name = String(name);
  if (name.includes(SEPARATOR)) throw new TypeError(`the name of a ${what} can't contain '${SEPARATOR}': ${name}`);
  return name;
}

export function check(value, sets, tags) {
  if (sets === null || (typeof sets !== 'object' && typeof sets !== 'function')) {
    throw new TypeError(`check takes an object of named tests as its second argument, not ${kindOf(sets)}`);
  }
  const site = $$at.s;
  $$at.s = 0;
  const names = Object.keys(sets);
  let all = true;
  return each(
    names.length,
    (i) => {
      const test = sets[names[i]];
      if (typeof test !== 'function') return test;
      try {
        return test(value);
      } catch (error) {
        $host.check(named('check', names[i]), false, tags, site);
        throw error;
      }
    },
    (passed, i) => {
      if (passed instanceof Promise) {
        $host.log('warn', `the check '${names[i]}' returns a promise, which counts as passed: await it before the check`);
      }
      $host.check(named('check', names[i]), !!passed, tags, site);
      if (!passed) all = false;
    },
    () => all,
  );
}

export function group(name, f) {
  if (typeof f !== 'function') throw new TypeError(`group takes a function as its second argument, not ${kindOf(f)}`);
  name = named('group', name);
  $host.group(name, true);
  return guarded(
    f,
    (result) => {
      $host.group(name, false);
      if (result instanceof Promise) {
        throw new TypeError(`the group '${name}' has an async function: await within the group ends it early, use a plain function`);
      }
      return result;
    },
    (error) => {
      $host.group(name, false);
      throw error;
    },
  );
}

export function sleep(seconds) {
  const wait = Number(seconds);
  if (Number.isNaN(wait)) throw new TypeError(`sleep takes a number of seconds, not ${kindOf(seconds)}`);
  return $op('wait', wait > 0 ? Math.round(wait * 1e6) : 0);
}

export function fail(reason) {
  throw new Error(reason === undefined ? 'fail() was called' : String(reason));
}

export function randomSeed(seed) {
  $host.seed(Number(seed));
}

export default Object.freeze({ check, group, sleep, fail, randomSeed });
