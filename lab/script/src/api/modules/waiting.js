// Internal: calls of user functions that may wait. A call returns an operation or a generator if it waits; the helpers
// stay plain function calls until one does, because most never do.

// Gives what a waiting call gives in the end.
export function* drained(waiting) {
  return waiting instanceof $Op ? yield waiting : yield* waiting;
}

// Calls `call(i)` for i from 0 to `count` - 1, passes each result to `keep`, which ends the loop with `true`, and
// returns `done()`.
export function each(count, call, keep, done) {
  for (let i = 0; i < count; i++) {
    const result = call(i);
    if ($w(result)) return eachFrom(i, result, count, call, keep, done);
    if (keep(result, i) === true) break;
  }
  return done();
}

function* eachFrom(i, waiting, count, call, keep, done) {
  let ended = keep(yield* drained(waiting), i);
  while (ended !== true && ++i < count) {
    const result = call(i);
    ended = keep($w(result) ? yield* drained(result) : result, i);
  }
  return done();
}

// Calls `f` and then `ended(result)` or, if it throws, `failed(error)`; returns what these return.
export function guarded(f, ended, failed) {
  let result;
  try {
    result = f();
  } catch (error) {
    return failed(error);
  }
  return $w(result) ? guardedFrom(result, ended, failed) : ended(result);
}

function* guardedFrom(waiting, ended, failed) {
  let result;
  try {
    result = yield* drained(waiting);
  } catch (error) {
    return failed(error);
  }
  return ended(result);
}

// Sets a member of a name that a server or a file gives: it may be one of Object.prototype, which is frozen.
export function put(object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

// Names the type of a value in messages.
export function kindOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  const kind = typeof value;
  return kind === 'undefined' ? 'undefined' : kind === 'object' ? 'an object' : `a ${kind}`;
}
