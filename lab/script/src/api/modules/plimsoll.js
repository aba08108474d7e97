// The module `plimsoll`: what k6's modules lack.
import { group } from 'k6';
import { kindOf } from 'plimsoll/internal/waiting';

// Times all that `f` does as one transaction.
export function transaction(name, f) {
  return group(name, f);
}

export { transaction as step };

const UNITS = { ms: 1e3, s: 1e6, m: 60e6, min: 60e6, h: 3600e6 };

// Microseconds of a duration such as '1.5s'.
function micros(text, whole) {
  const [, number, unit] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)\s*$/.exec(text) ?? [];
  if (number === undefined) throw new TypeError(`wait takes a duration such as '2s', or a range such as '1s..5s', not '${whole}'`);
  return Number(number) * UNITS[unit];
}

// Waits for a duration, or for one drawn evenly from a range.
export function wait(given) {
  if (typeof given === 'number') return $op('wait', Math.max(0, Math.round(given * 1e6)));
  const text = String(given);
  const [from, to, more] = text.split('..');
  if (more !== undefined) throw new TypeError(`wait takes one range such as '1s..5s', not '${text}'`);
  const least = micros(from, text);
  const most = to === undefined ? least : micros(to, text);
  if (most < least) throw new RangeError(`the range '${text}' ends before it begins`);
  return $op('wait', Math.round(least + Math.random() * (most - least)));
}

// A secret by the name of its variable.
export function secret(name) {
  const value = $host.variable(String(name));
  if (value === undefined) throw new Error(`the secret '${name}' isn't known: run with -e ${name}=…`);
  return value;
}

const TIMES = { us: 1e-3, ms: 1, s: 1e3, min: 60e3 };

// Adds a value to a distribution. Units of time make it a time.
export function measure(name, value, unit) {
  const number = Number(value);
  if (Number.isNaN(number)) throw new TypeError(`measure takes a number, not ${kindOf(value)}`);
  const factor = TIMES[unit];
  $host.metric(String(name), 'trend', factor === undefined ? number : number * factor, factor !== undefined);
}

const refused = (what, instead) => () => {
  throw new Error(`${what} can't be used in a script yet: ${instead}`);
};

// Counters, queues, and pools of all users are keys of workloads so far.
export const shared = new Proxy(Object.freeze({}), {
  get(_, name) {
    if (typeof name !== 'string') return undefined;
    return refused(`shared.${name}`, 'use the key shared: of a workload, see docs/shared.md');
  },
});

export const tcp = Object.freeze({
  connect: refused('tcp.connect', 'write the dialogue as a workload, see docs/clients.md'),
});

export default Object.freeze({ step: transaction, transaction, wait, secret, measure, shared, tcp });
