// The module `$$`, which all others import: operations, the turns of users, and what the loader inserts calls of.
// A function of a script that may wait is a generator here. It yields operations; the host does them.

const host = globalThis.$host;
const GeneratorPrototype = Object.getPrototypeOf(function* () {}).prototype;
const defineProperty = Object.defineProperty;

// What marks values that wait: 1 is an operation, 2 the generator of a converted function.
export const $$K = Symbol('waits');

// An operation that isn't handed over yet, and others made in the same turn.
let made;
let others;

// The number of the call site that was entered last.
export const $$at = { s: 0 };

export class $Op {
  constructor(kind, payload, map, site) {
    this.kind = kind;
    this.payload = payload;
    this.map = map;
    this.site = site;
  }
}
defineProperty($Op.prototype, $$K, { value: 1 });
defineProperty(GeneratorPrototype, $$K, { value: 2 });

// Makes an operation. `map` makes the value of the call of the outcome.
export function $op(kind, payload, map) {
  const op = new $Op(kind, payload, map, $$at.s);
  $$at.s = 0;
  if (made !== undefined) (others ??= []).push(op);
  else made = op;
  return op;
}

const made_of = { request: 'a request', batch: 'a batch of requests', wait: 'a wait' };

function refused(message, site) {
  const error = new Error(message);
  error.$site = site;
  return error;
}

function cannotWait(op) {
  const what = made_of[op.kind] ?? op.kind;
  return refused(`${what} isn't possible here: JavaScript can't wait in getters, constructors, callbacks of built-in functions, and at module level`, op.site);
}

// Takes an operation off the list of those that must be handed over.
function taken(op) {
  if (made === op) {
    made = others?.pop();
    return;
  }
  const place = others === undefined ? -1 : others.indexOf(op);
  if (place >= 0) others.splice(place, 1);
}

// Ends a turn: all that was made must be handed over.
function ended() {
  if (made === undefined) return;
  const op = made;
  made = others = undefined;
  throw refused(`${made_of[op.kind] ?? op.kind} was created but never sent: the loader did not recognise the call`, op.site);
}

// Returns a number other than 0 if the value is a wait of any kind.
export function $w(value) {
  return value?.[$$K];
}

// The user whose turn it is, and the values of the bindings that each user has for itself.
let user;
export let $$U;

const users = [];
let functions;
let initialisers;

class User {
  constructor() {
    this.state = undefined;
    this.waiting = undefined;
    this.map = undefined;
    // Operations of async functions that go on beside.
    this.tasks = undefined;
    // Timers that will fire, by number.
    this.timers = undefined;
    // The call site of the operation that was handed over last.
    this.site = 0;
    // What was handed over beside tasks: its time in milliseconds, and its length in microseconds if it is a wait.
    this.since = this.length = undefined;
  }
}

// The timers of the user whose turn it is. At module level there is no user.
const timersOfNobody = new Set();
export function $timers() {
  return user === undefined ? timersOfNobody : (user.timers ??= new Set());
}

export function $functions(namespace, inits) {
  functions = namespace;
  initialisers = inits;
}

// Runs the initialisers of a user's own bindings, once.
function prepared(index) {
  // An array that is written beyond its end becomes a table of hashes.
  while (users.length < index) users.push(undefined);
  user = users[index] = new User();
  $$U = user.state = [];
  if (initialisers.length === 0) return;
  host.initialise(true);
  try {
    for (const init of initialisers) $$y(init());
  } catch (error) {
    users[index] = undefined;
    throw error;
  } finally {
    host.initialise(false);
  }
  // Without room to grow.
  $$U = user.state = $$U.slice();
}

function current(index) {
  user = users[index];
  if (user === undefined) prepared(index);
  else $$U = user.state;
}

// Begins a call. Returns a number of microseconds to wait, an operation, or null if the call is over.
export function begin(index, name, data) {
  made = others = undefined;
  $$at.s = 0;
  current(index);
  user.waiting = user.map = user.tasks = user.timers = undefined;
  tasks = undefined;
  const f = functions[name];
  return stepped(f(data));
}

// Takes what a user waits for. The waits of its tasks are as much shorter as it waited.
function woken(index) {
  user = users[index];
  $$U = user.state;
  const { waiting } = user;
  tasks = waiting.$tasks === undefined ? user.tasks : waiting.left;
  user.waiting = user.map = user.tasks = waiting.left = undefined;
  if (tasks?.length > 0) {
    const passed = user.length ?? (host.now() - user.since) * 1000;
    for (const { op } of tasks) if (op.kind === 'wait') op.payload = Math.max(0, Math.round(op.payload - passed));
  } else tasks = undefined;
  return waiting;
}

// Notes that a user waits for an operation, beside which its tasks go on.
function noteWait(op) {
  user.site = op.site;
  user.since = host.now();
  user.length = op.kind === 'wait' ? op.payload : undefined;
}

export function resume(index, outcome) {
  const { map } = users[index];
  const waiting = woken(index);
  if (waiting.$tasks !== undefined) return resumedTasks(waiting, outcome);
  if (map === undefined) return advanced(waiting, waiting.next(outcome));
  let value;
  try {
    value = map(outcome);
  } catch (error) {
    return advanced(waiting, waiting.throw(error));
  }
  return advanced(waiting, waiting.next(value));
}

// Continues a user by an error: what the host gave can't become a value.
export function fail(index, error) {
  const waiting = woken(index);
  if (error instanceof Error) defineProperty(error, '$place', { value: user.site });
  const failed = waiting.$tasks;
  if (failed === undefined) return advanced(waiting, waiting.throw(error));
  waiting.$tasks = undefined;
  for (const task of failed) task.reject(error);
  return checked(waiting);
}

export function endCall(index) {
  const left = users[index];
  if (left !== undefined) left.waiting = left.map = left.tasks = left.timers = undefined;
}

// What a function of the script returned: a generator that runs, an operation, a promise, or a value.
function stepped(result) {
  const kind = result?.[$$K];
  if (kind === 2) return advanced(result, result.next());
  if (kind === 1) return handed(once(result), result);
  if (tasks !== undefined || result instanceof Promise) return settled(result);
  ended();
  return result === undefined ? null : new $Op('done', result);
}

function* once(op) {
  return yield op;
}

function advanced(generator, { value, done }) {
  if (done) return stepped(value);
  return handed(generator, value);
}

function handed(generator, op) {
  taken(op);
  ended();
  if (tasks !== undefined) {
    host.jobs();
    noteWait(op);
  }
  user.tasks = tasks;
  tasks = undefined;
  user.waiting = generator;
  user.site = op.site;
  user.map = op.kind === 'batch' ? listed(op.map) : op.map;
  return op.kind === 'wait' ? op.payload : op;
}

// A batch of one request has a list of one answer.
function listed(map) {
  return (outcome) => {
    const all = Array.isArray(outcome) ? outcome : [outcome];
    return map === undefined ? all : map(all);
  };
}

// What the script exports: the options, and the names of functions.
export function describe(index) {
  current(index);
  const names = Object.keys(functions).filter((name) => typeof functions[name] === 'function');
  return JSON.stringify({ options: functions.options ?? {}, functions: names });
}

// --- Promises: what async functions wait for. ---

// Operations of async functions that aren't done yet, and what settles their promises.
let tasks;

export function $async(op) {
  taken(op);
  return new Promise((resolve, reject) => {
    (tasks ??= []).push({ op, resolve, reject });
  });
}

// Makes a promise of a wait of any kind.
export function $$a(value) {
  const kind = value?.[$$K];
  if (kind === undefined) return value;
  return kind === 1 ? $async(value) : drainedLater(value);
}

async function drainedLater(generator) {
  let { value, done } = generator.next();
  while (!done) {
    try {
      value = await $async(value);
    } catch (error) {
      ({ value, done } = generator.throw(error));
      continue;
    }
    ({ value, done } = generator.next(value));
  }
  return $$a(value);
}

// Waits until a promise is settled, or the next operations of async functions are known.
function settled(promise) {
  const state = { done: false, failed: false, value: undefined, $tasks: undefined, left: undefined };
  Promise.resolve(promise).then(
    (value) => {
      state.done = true;
      state.value = value;
    },
    (error) => {
      state.done = state.failed = true;
      state.value = error;
    },
  );
  return checked(state);
}

function checked(state) {
  host.jobs();
  if (state.failed) {
    tasks = undefined;
    throw state.value;
  }
  if (tasks !== undefined && tasks.length > 0) return handedTasks(state);
  if (!state.done) throw new Error('the promise is never settled: nothing is left that could do it');
  ended();
  return state.value === undefined ? null : new $Op('done', state.value);
}

function handedTasks(state) {
  ended();
  const requests = tasks.filter((task) => task.op.kind === 'request');
  user.waiting = state;
  if (requests.length > 1) {
    noteWait(requests[0].op);
    state.$tasks = requests;
    state.left = tasks.filter((task) => task.op.kind !== 'request');
    tasks = undefined;
    return new $Op('requests', requests.map((task) => task.op));
  }
  const next =
    requests[0] ??
    tasks.find((task) => task.op.kind !== 'wait') ??
    tasks.reduce((a, b) => (b.op.payload < a.op.payload ? b : a));
  state.$tasks = [next];
  state.left = tasks.filter((task) => task !== next);
  tasks = undefined;
  noteWait(next.op);
  return next.op.kind === 'wait' ? next.op.payload : next.op;
}

function resumedTasks(state, outcome) {
  const settledNow = state.$tasks;
  state.$tasks = undefined;
  settledNow.forEach((task, i) => {
    const own = settledNow.length > 1 ? outcome[i] : outcome;
    try {
      task.resolve(task.op.map === undefined ? own : task.op.map(own));
    } catch (error) {
      task.reject(error);
    }
  });
  return checked(state);
}

// --- Places where JavaScript can't wait. ---

// Runs a wait of any kind to its end, where an operation is an error.
export function $$y(value) {
  const kind = value?.[$$K];
  if (kind === undefined) return value;
  if (kind === 1) {
    taken(value);
    throw cannotWait(value);
  }
  const step = value.next();
  if (step.done) return $$y(step.value);
  taken(step.value);
  return value.throw(cannotWait(step.value)).value;
}

// Makes a function for places where JavaScript can't wait of any function.
export function $$f(f) {
  if (typeof f !== 'function') return f;
  return function (...given) {
    return $$y(f.apply(this, given));
  };
}

// Marks generator functions of the script itself, which aren't drained.
export function $$o(f) {
  defineProperty(f.prototype, $$K, { value: undefined });
  return f;
}

// Drains a wait of any kind in a generator.
function* drained(value) {
  const kind = value?.[$$K];
  return kind === undefined ? value : kind === 1 ? yield value : yield* value;
}

// --- Methods of arrays, maps, and sets whose callback may wait: `$$map` for `map`. ---

const waiting = {
  *forEach(f, self) {
    for (let i = 0; i < this.length; i++) {
      if (i in this) yield* drained(f.call(self, this[i], i, this));
    }
  },
  *map(f, self) {
    const all = [];
    all.length = this.length;
    for (let i = 0; i < this.length; i++) {
      if (i in this) all[i] = yield* drained(f.call(self, this[i], i, this));
    }
    return all;
  },
  *flatMap(f, self) {
    return (yield* waiting.map.call(this, f, self)).flat();
  },
  *filter(f, self) {
    const all = [];
    for (let i = 0; i < this.length; i++) {
      const value = this[i];
      if (yield* drained(f.call(self, value, i, this))) all.push(value);
    }
    return all;
  },
  *find(f, self) {
    for (let i = 0; i < this.length; i++) {
      const value = this[i];
      if (yield* drained(f.call(self, value, i, this))) return value;
    }
  },
  *findIndex(f, self) {
    for (let i = 0; i < this.length; i++) {
      if (yield* drained(f.call(self, this[i], i, this))) return i;
    }
    return -1;
  },
  *some(f, self) {
    for (let i = 0; i < this.length; i++) {
      if (yield* drained(f.call(self, this[i], i, this))) return true;
    }
    return false;
  },
  *every(f, self) {
    for (let i = 0; i < this.length; i++) {
      if (!(yield* drained(f.call(self, this[i], i, this)))) return false;
    }
    return true;
  },
  *reduce(f, ...initial) {
    let i = 0;
    if (initial.length === 0 && this.length === 0) throw new TypeError('reduce of an empty array with no initial value');
    let value = initial.length > 0 ? initial[0] : this[i++];
    for (; i < this.length; i++) value = yield* drained(f(value, this[i], i, this));
    return value;
  },
};

const keyed = {
  *forEach(f, self) {
    for (const [key, value] of this.entries()) yield* drained(f.call(self, value, key, this));
  },
};

function define(target, name, value) {
  defineProperty(target, name, { value, writable: false, enumerable: false, configurable: false });
}

for (const name of Object.keys(waiting)) {
  // Objects of the script with a method of this name.
  define(Object.prototype, `$$${name}`, function (...given) {
    return this[name](...given);
  });
  define(Array.prototype, `$$${name}`, waiting[name]);
}
define(Map.prototype, '$$forEach', keyed.forEach);
define(Set.prototype, '$$forEach', keyed.forEach);
define(Array, '$$from', function* (items, f, self) {
  return f === undefined ? Array.from(items) : yield* waiting.map.call(Array.from(items), f, self);
});

// --- The realm. ---

for (const [name, value] of Object.entries({ $Op, $op, $w, $async, $$z })) define(globalThis, name, value);

defineProperty(globalThis, '__VU', { get: host.vu });
defineProperty(globalThis, '__ITER', { get: host.iteration });

// `open`; the loader adds the file that calls it.
export function $$open(base, name, mode) {
  return mode === 'b' ? host.openBytes(base, String(name)) : host.openText(base, String(name));
}

// Names of frozen prototypes that scripts assign on their own objects.
const assigned = ['toString', 'toLocaleString', 'valueOf', 'constructor', 'name', 'message', 'stack', 'toJSON', 'cause'];

function openTo(proto, name) {
  const found = Object.getOwnPropertyDescriptor(proto, name);
  if (found === undefined || !('value' in found) || !found.configurable) return;
  const { value } = found;
  defineProperty(proto, name, {
    configurable: false,
    enumerable: false,
    get() {
      return value;
    },
    set(own) {
      if (this === proto) throw new TypeError(`${name} of a built-in object can't be changed: all users share it`);
      defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
    },
  });
}

// Freezes all built-in objects: users share them.
export function $freeze(own) {
  const seen = new Set();
  const open = [...Object.getOwnPropertyNames(globalThis).map((name) => globalThis[name]), GeneratorPrototype, own];
  open.push(Object.getPrototypeOf(async function () {}), Object.getPrototypeOf([][Symbol.iterator]()));
  while (open.length > 0) {
    const value = open.pop();
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) continue;
    if (seen.has(value) || value === globalThis || ArrayBuffer.isView(value)) continue;
    seen.add(value);
    for (const key of Reflect.ownKeys(value)) {
      const { value: inner, get, set } = Object.getOwnPropertyDescriptor(value, key);
      open.push(inner, get, set);
    }
    open.push(Object.getPrototypeOf(value));
  }
  for (const proto of [Object.prototype, ...errors()]) for (const name of assigned) openTo(proto, name);
  for (const value of seen) Object.freeze(value);
}

function errors() {
  const all = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
  return all.map((error) => error.prototype);
}

// Freezes a value of the script that all users share, deeply. A write to it then throws.
export function $$z(value) {
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (next === null || (typeof next !== 'object' && typeof next !== 'function') || Object.isFrozen(next)) continue;
    if (ArrayBuffer.isView(next)) continue;
    Object.freeze(next);
    for (const key of Reflect.ownKeys(next)) {
      const { value: inner } = Object.getOwnPropertyDescriptor(next, key);
      open.push(inner);
    }
    if (typeof next === 'function' && next.prototype) open.push(next.prototype);
  }
  return value;
}

// Frames of the prelude and of generators are dropped later.
Error.stackTraceLimit = 100;
Math.random = host.random;
const Time = Date;
const now = host.now;
class HostDate extends Time {
  constructor(...given) {
    if (given.length === 0) super(now());
    else super(...given);
  }
  static now() {
    return now();
  }
}
// `Date()` without `new` is text.
globalThis.Date = new Proxy(HostDate, { apply: () => new HostDate().toString() });
defineProperty(HostDate, 'name', { value: 'Date' });
Time.prototype.constructor = globalThis.Date;
