// The library at https://jslib.k6.io/k6-utils: small functions of scripts.
import { $$at } from '$$';
import exec from 'k6/execution';
import { check as checkNow } from 'k6';
import { each, guarded } from 'plimsoll/internal/waiting';

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

export function randomIntBetween(least, most) {
  return Math.floor(Math.random() * (most - least + 1) + least);
}

export function randomItem(items) {
  return items[Math.floor(Math.random() * items.length)];
}

export function randomString(length, charset = LETTERS) {
  let text = '';
  for (let i = 0; i < length; i++) text += charset[Math.floor(Math.random() * charset.length)];
  return text;
}

export function uuidv4() {
  return crypto.randomUUID();
}

export function findBetween(content, left, right, repeat = false) {
  content = String(content);
  const found = [];
  let place = 0;
  for (;;) {
    const before = content.indexOf(left, place);
    if (before < 0 || place > content.length) break;
    const start = before + left.length;
    const end = content.indexOf(right, start);
    if (end < 0) break;
    if (!repeat) return content.slice(start, end);
    found.push(content.slice(start, end));
    place = Math.max(end + right.length, place + 1);
  }
  return repeat ? found : '';
}

// Stages whose users follow a bell curve over two standard deviations to each side, with `most` at its top.
export function normalDistributionStages(most, seconds, count = 10) {
  const stages = [];
  for (let i = 0; i < count; i++) {
    const place = count === 1 ? 0 : -2 + (4 * i) / (count - 1);
    stages.push({
      duration: `${Math.max(1, Math.round(seconds / count))}s`,
      target: Math.max(1, Math.round(most * Math.exp((-place * place) / 2))),
    });
  }
  return stages;
}

const UNITS = { ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };

export function parseDuration(text) {
  if (typeof text === 'number') return text;
  let millis = 0;
  let rest = String(text);
  if (/^\d+(?:\.\d+)?$/.test(rest)) return Number(rest);
  while (rest !== '') {
    const [whole, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)/.exec(rest) ?? [];
    if (whole === undefined) throw new TypeError(`'${text}' isn't a duration such as '1m30s'`);
    millis += Number(number) * UNITS[unit];
    rest = rest.slice(whole.length);
  }
  return millis;
}

function stagesOf() {
  const scenario = exec.test.options.scenarios?.[exec.scenario.name];
  const stages = scenario?.stages;
  if (!Array.isArray(stages) || stages.length === 0) {
    throw new Error(`the scenario '${exec.scenario.name}' has no stages: use an executor that has, such as ramping-vus`);
  }
  return { scenario, stages };
}

export function getCurrentStageIndex() {
  const { stages } = stagesOf();
  const passed = Date.now() - exec.scenario.startTime;
  let end = 0;
  for (let i = 0; i < stages.length; i++) {
    end += parseDuration(stages[i].duration);
    if (passed < end) return i;
  }
  return stages.length - 1;
}

export function tagWithCurrentStageIndex() {
  exec.vu.tags.stage = String(getCurrentStageIndex());
}

export function tagWithCurrentStageProfile() {
  const { scenario, stages } = stagesOf();
  const place = getCurrentStageIndex();
  const before = place === 0 ? (scenario.startVUs ?? scenario.startRate ?? 0) : stages[place - 1].target;
  const { target } = stages[place];
  exec.vu.tags.stage_profile = target > before ? 'ramp-up' : target < before ? 'ramp-down' : 'steady';
}

// As the check of k6; a promise is awaited, and then the check returns a promise.
export function check(value, sets) {
  const site = $$at.s;
  const names = Object.keys(sets);
  const later = [];
  let all = true;
  const record = (name, passed) => {
    $$at.s = site;
    if (!checkNow(value, { [name]: !!passed })) all = false;
  };
  const tested = (name) =>
    guarded(
      () => (typeof sets[name] === 'function' ? sets[name](value) : sets[name]),
      (passed) => passed,
      (error) => {
        record(name, false);
        throw error;
      },
    );
  return each(
    names.length,
    (i) => tested(names[i]),
    (passed, i) => {
      if (passed instanceof Promise) later.push([names[i], passed]);
      else record(names[i], passed);
    },
    () => (later.length === 0 ? all : recordLater(later, record).then(() => all)),
  );
}

async function recordLater(later, record) {
  for (const [name, promise] of later) {
    let passed = false;
    try {
      passed = await promise;
    } finally {
      record(name, passed);
    }
  }
}

export default Object.freeze({
  check,
  findBetween,
  getCurrentStageIndex,
  normalDistributionStages,
  parseDuration,
  randomIntBetween,
  randomItem,
  randomString,
  tagWithCurrentStageIndex,
  tagWithCurrentStageProfile,
  uuidv4,
});
