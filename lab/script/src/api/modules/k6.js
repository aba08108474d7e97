// The module `k6`: checks, groups, and waits.
import { $$at } from '$$';
import { drained, guarded, kindOf } from 'plimsoll/internal/waiting';

const SEPARATOR = '::';

function named(what, name) {
  name = String(name);
  if (name.includes(SEPARATOR)) throw new TypeError(`the name of a ${what} can't contain '${SEPARATOR}': ${name}`);
  return name;
}

export function check(value, sets) {
  const site = $$at.s;
  $$at.s = 0;
  if (sets === null || (typeof sets !== 'object' && typeof sets !== 'function')) {
    throw new TypeError(`check takes an object of named tests as its second argument, not ${kindOf(sets)}`);
  }
  return checkFrom(0, true, Object.keys(sets), { value, sets, site });
}

// Runs the tests from a place on; without a closure, since most scripts check each response.
function checkFrom(i, all, names, asked) {
  for (; i < names.length; i++) {
    let passed = asked.sets[names[i]];
    if (typeof passed === 'function') {
      try {
        passed = passed(asked.value);
      } catch (error) {
        record(names[i], false, asked);
        throw error;
      }
      if ($w(passed)) return checkOn(passed, i, all, names, asked);
    }
    if (!record(names[i], passed, asked)) all = false;
  }
  return all;
}

function* checkOn(waiting, i, all, names, asked) {
  let passed;
  try {
    passed = yield* drained(waiting);
  } catch (error) {
    record(names[i], false, asked);
    throw error;
  }
  if (!record(names[i], passed, asked)) all = false;
  const rest = checkFrom(i + 1, all, names, asked);
  return $w(rest) ? yield* rest : rest;
}

function record(name, passed, { site }) {
  if (passed instanceof Promise) {
    $host.log('warn', `the check '${name}' returns a promise, which counts as passed: await it before the check`);
  }
  $host.check(named('check', name), !!passed, site);
  return !!passed;
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
