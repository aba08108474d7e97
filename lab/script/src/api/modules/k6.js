// The module `k6`, in part.
export function check(value, sets) {
  let all = true;
  for (const name of Object.keys(sets)) {
    const passed = !!sets[name](value);
    $host.check(name, passed);
    if (!passed) all = false;
  }
  return all;
}

export function sleep(seconds) {
  return $op('wait', Math.round(seconds * 1e6));
}

export function group(name, f) {
  return f();
}

export default { check, sleep, group };
