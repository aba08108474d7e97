// The library at https://jslib.k6.io/k6-summary: the data of `handleSummary` as text and as JUnit.
import { escaped, list } from 'plimsoll/internal/inspect';

const COLORS = { green: '\u001b[32m', red: '\u001b[31m', faint: '\u001b[2m', end: '\u001b[0m' };

// A number with at most two decimals.
const plain = (number) => String(Math.round(number * 100) / 100);

export function humanizeValue(value, metric, unit) {
  if (typeof value !== 'number') return String(value);
  if (metric?.type === 'rate') return `${(Math.trunc(value * 10_000) / 100).toFixed(2)}%`;
  if (metric?.contains === 'data') return bytes(value);
  if (metric?.contains === 'time') return duration(value, unit);
  return plain(value);
}

function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let place = 0;
  while (Math.abs(value) >= 1000 && place < units.length - 1) {
    value /= 1000;
    place++;
  }
  return `${place === 0 ? plain(value) : value.toFixed(value < 10 ? 1 : 0)} ${units[place]}`;
}

// Milliseconds as text, in the unit that fits unless one is given.
function duration(millis, unit) {
  if (unit === 's') return `${(millis / 1000).toFixed(2)}s`;
  if (unit === 'ms') return `${millis.toFixed(2)}ms`;
  if (unit === 'us') return `${(millis * 1000).toFixed(2)}µs`;
  if (millis === 0) return '0s';
  if (millis < 1) return `${plain(millis * 1000)}µs`;
  if (millis < 1000) return `${plain(millis)}ms`;
  if (millis < 60_000) return `${plain(millis / 1000)}s`;
  const minutes = Math.floor(millis / 60_000);
  const rest = `${minutes % 60}m${Math.round((millis % 60_000) / 1000)}s`;
  return minutes < 60 ? rest : `${Math.floor(minutes / 60)}h${rest}`;
}

const failed = (metric) => Object.values(metric.thresholds ?? {}).some((threshold) => !threshold.ok);

function valuesOf(metric, unit) {
  const { values, type } = metric;
  const show = (name) => humanizeValue(values[name], metric, unit);
  switch (type) {
    case 'counter':
      return `${show('count')} ${humanizeValue(values.rate ?? 0, metric, unit)}/s`;
    case 'rate':
      return `${show('rate')} ✓ ${values.passes ?? 0} ✗ ${values.fails ?? 0}`;
    case 'gauge':
      return ['value', 'min', 'max'].filter((name) => name in values).map((name) => (name === 'value' ? show(name) : `${name}=${show(name)}`)).join(' ');
    default:
      return Object.keys(values)
        .map((name) => `${name}=${name === 'count' ? values[name] : show(name)}`)
        .join(' ');
  }
}

function* checksOf(group, depth, mark) {
  if (group === undefined) return;
  const pad = '  '.repeat(depth);
  if (group.name) yield `${pad}█ ${group.name}`;
  for (const check of list(group.checks)) {
    const total = check.passes + check.fails;
    yield `${pad}  ${mark(check.fails === 0, check.fails === 0 ? '✓' : '✗')} ${check.name}`;
    if (check.fails > 0) yield `${pad}   ↳ ${Math.floor((check.passes / total) * 100)}% — ✓ ${check.passes} / ✗ ${check.fails}`;
  }
  for (const inner of list(group.groups)) yield* checksOf(inner, depth + 1, mark);
}

export function textSummary(data, { indent = ' ', enableColors = false, summaryTimeUnit } = {}) {
  const unit = summaryTimeUnit ?? data.options?.summaryTimeUnit ?? '';
  const mark = (good, text) => (enableColors ? `${good ? COLORS.green : COLORS.red}${text}${COLORS.end}` : text);
  const lines = [...checksOf(data.root_group, 0, mark)];
  if (lines.length > 0) lines.push('');
  const names = Object.keys(data.metrics ?? {}).sort();
  const width = Math.max(0, ...names.map((name) => name.length)) + 3;
  for (const name of names) {
    const metric = data.metrics[name];
    const sign = metric.thresholds === undefined ? ' ' : mark(!failed(metric), failed(metric) ? '✗' : '✓');
    lines.push(`${sign} ${`${name}`.padEnd(width, '.')}: ${valuesOf(metric, unit)}`);
    for (const [rule, { ok }] of Object.entries(metric.thresholds ?? {})) {
      if (!ok) lines.push(`    ${mark(false, '✗')} ${rule}`);
    }
  }
  return lines.map((line) => (line === '' ? '' : indent + line)).join('\n');
}

export function jUnit(data, { name = 'k6 thresholds', classname } = {}) {
  const cases = [];
  let failures = 0;
  for (const [metric, { thresholds }] of Object.entries(data.metrics ?? {})) {
    for (const [rule, { ok }] of Object.entries(thresholds ?? {})) {
      const title = `name="${escaped(`${metric} - ${rule}`)}"${classname === undefined ? '' : ` classname="${escaped(classname)}"`}`;
      if (ok) cases.push(`<testcase ${title} />`);
      else {
        failures++;
        cases.push(`<testcase ${title}><failure message="failed" /></testcase>`);
      }
    }
  }
  const counts = `tests="${cases.length}" failures="${failures}"`;
  return [
    '<?xml version="1.0"?>',
    `<testsuites ${counts}>`,
    `<testsuite name="${escaped(name)}" ${counts}>${cases.join('\n')}`,
    '</testsuite >',
    '</testsuites >',
  ].join('\n');
}

export default Object.freeze({ textSummary, jUnit, humanizeValue });
