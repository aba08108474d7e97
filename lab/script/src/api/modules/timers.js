// The module `k6/timers`, also as globals: functions that run later. An iteration ends after its timers.
import { $$a, $timers } from '$$';
import { kindOf } from 'plimsoll/internal/waiting';

const MOST = 10_000;
// A number is used once.
let last = 0;

function started(name, f, live) {
  if (typeof f !== 'function') throw new TypeError(`${name} takes a function, not ${kindOf(f)}`);
  if (live.size >= MOST) throw new RangeError(`there are ${MOST} timers: clear some`);
  live.add(++last);
  return last;
}

const micros = (millis) => Math.max(0, Math.round((Number(millis) || 0) * 1000));

// Runs a function of the script, and waits for what it waits for.
const run = (f, given) => $$a(f(...given));

export function setTimeout(f, millis, ...given) {
  const live = $timers();
  const id = started('setTimeout', f, live);
  $async($op('wait', micros(millis))).then(() => {
    if (live.delete(id)) return run(f, given);
  });
  return id;
}

export function setInterval(f, millis, ...given) {
  const live = $timers();
  const id = started('setInterval', f, live);
  const wait = Math.max(1000, micros(millis));
  const again = () =>
    $async($op('wait', wait)).then(async () => {
      if (!live.has(id)) return;
      await run(f, given);
      if (live.has(id)) again();
    });
  again();
  return id;
}

export function clearTimeout(id) {
  $timers().delete(id);
}

export function clearInterval(id) {
  $timers().delete(id);
}

export default Object.freeze({ setTimeout, setInterval, clearTimeout, clearInterval });
