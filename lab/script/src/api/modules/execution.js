// The module `k6/execution`: facts about the user, the scenario, and the test.

const fact = $host.fact;

// The tags of the user, kept over its iterations by the host: what a script assigns becomes a tag of all that follows.
// `scenario` is there from the start.
const tagOf = (name) => (typeof name === 'string' ? ($host.tag(name) ?? (name === 'scenario' ? fact('scenario') : undefined)) : undefined);
const tags = new Proxy(
  {},
  {
    get: (_, name) => tagOf(name),
    set(_, name, value) {
      if (value === null || (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')) {
        throw new TypeError(`the tag '${String(name)}' isn't a text, a number, or a boolean`);
      }
      $host.setTag(String(name), String(value));
      return true;
    },
    has: (_, name) => tagOf(name) !== undefined,
    deleteProperty(_, name) {
      $host.setTag(String(name), undefined);
      return true;
    },
    ownKeys: () => [...new Set(['scenario', ...$host.tagNames()])],
    getOwnPropertyDescriptor(_, name) {
      const value = tagOf(name);
      return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true };
    },
  },
);

export const vu = {
  get idInInstance() {
    return fact('vu_in_instance');
  },
  get idInTest() {
    return fact('vu_in_test');
  },
  get iterationInInstance() {
    return fact('vu_iteration_in_instance');
  },
  get iterationInScenario() {
    return fact('vu_iteration_in_scenario');
  },
  get tags() {
    return tags;
  },
  set tags(given) {
    vu.metrics.tags = given;
  },
  metrics: {
    get tags() {
      return tags;
    },
    set tags(given) {
      for (const name of $host.tagNames()) $host.setTag(name, undefined);
      for (const name of Object.keys(given ?? {})) tags[name] = given[name];
    },
    // Metadata goes with no sample here, so nothing of it is kept.
    metadata: new Proxy(
      {},
      {
        set: () => true,
        deleteProperty: () => true,
      },
    ),
  },
};

export const scenario = {
  get name() {
    return fact('scenario');
  },
  get executor() {
    return fact('executor');
  },
  get startTime() {
    return fact('start_ms');
  },
  get progress() {
    return fact('progress');
  },
  get iterationInInstance() {
    return fact('iteration_in_instance');
  },
  get iterationInTest() {
    return fact('iteration_in_test');
  },
};

export const instance = {
  get iterationsInterrupted() {
    return fact('iterations_interrupted');
  },
  get iterationsCompleted() {
    return fact('iterations_completed');
  },
  get vusActive() {
    return fact('vus_active');
  },
  get vusInitialized() {
    return fact('vus_initialized');
  },
  get currentTestRunDuration() {
    return $host.now() - fact('start_ms');
  },
};

// An option that was not set is null, as in k6, not undefined.
const UNSET = {
  get: (options, name) => (typeof name === 'string' && !(name in options) ? null : options[name]),
};
let options;

// Options with the scenario that shortcuts such as `vus` and `stages` stand for.
function derived(given) {
  if (given.scenarios !== undefined) return given;
  const { vus, duration, iterations, stages } = given;
  let scenario;
  if (stages !== undefined) scenario = { executor: 'ramping-vus', startVUs: vus ?? 1, stages };
  else if (iterations !== undefined) scenario = { executor: 'shared-iterations', vus: vus ?? 1, iterations };
  else if (duration !== undefined) scenario = { executor: 'constant-vus', vus: vus ?? 1, duration };
  else scenario = { executor: 'shared-iterations', vus: vus ?? 1, iterations: vus ?? 1 };
  return { ...given, scenarios: { default: scenario } };
}

export const test = {
  abort(reason) {
    const text = reason === undefined ? 'test aborted' : String(reason);
    $host.abort(text);
    throw new Error(text);
  },
  fail(reason) {
    $host.failTest(reason === undefined ? 'test marked as failed' : String(reason));
  },
  get options() {
    return (options ??= new Proxy($$z(derived($host.options())), UNSET));
  },
};

export default Object.freeze({ vu, scenario, instance, test });
