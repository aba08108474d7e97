// In place of the library k6-reporter: the data of `handleSummary` as a page of HTML, without scripts or addresses.
import { humanizeValue } from 'jslib/k6-summary';
import { escaped, list } from 'plimsoll/internal/inspect';


const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3em .6em;border-bottom:1px solid #ddd;vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.good{color:#176b2c}.bad{color:#a8201a;font-weight:600}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#444}.good{color:#6c9}.bad{color:#f88}}`;

const verdict = (good) => `<span class="${good ? 'good' : 'bad'}">${good ? 'passed' : 'failed'}</span>`;

function table(head, rows) {
  if (rows.length === 0) return '<p>None.</p>';
  const cells = (row, tag) => row.map((cell, i) => `<${tag}${i > 0 ? ' class="n"' : ''}>${cell}</${tag}>`).join('');
  return `<table><thead><tr>${cells(head, 'th')}</tr></thead><tbody>${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n')}</tbody></table>`;
}

function checksOf(group, path, rows) {
  if (group === undefined) return rows;
  const own = group.name ? [...path, group.name] : path;
  for (const { name, passes, fails } of list(group.checks)) {
    rows.push([escaped([...own, name].join(' › ')), passes, fails, verdict(fails === 0)]);
  }
  for (const inner of list(group.groups)) checksOf(inner, own, rows);
  return rows;
}

export function htmlReport(data, { title = new Date().toISOString().slice(0, 16).replace('T', ' ') } = {}) {
  const metrics = Object.entries(data.metrics ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const thresholds = metrics.flatMap(([name, metric]) =>
    Object.entries(metric.thresholds ?? {}).map(([rule, { ok }]) => [escaped(name), escaped(rule), verdict(ok)]),
  );
  const of = (type) => metrics.filter(([, metric]) => metric.type === type);
  const trends = of('trend');
  const columns = [...new Set(trends.flatMap(([, metric]) => Object.keys(metric.values)))];
  const shown = (metric, name) => (metric.values[name] === undefined ? '' : escaped(humanizeValue(metric.values[name], name === 'count' ? undefined : metric)));
  const others = metrics.filter(([, metric]) => metric.type !== 'trend');
  const checks = checksOf(data.root_group, [], []);
  const bad = [...thresholds, ...checks].some((row) => row.at(-1).includes('bad'));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><h1>${escaped(title)}</h1><p>Result: ${verdict(!bad)}</p>
<h2>Thresholds</h2>${table(['Metric', 'Threshold', 'Result'], thresholds)}
<h2>Checks</h2>${table(['Check', 'Passed', 'Failed', 'Result'], checks)}
<h2>Times and distributions</h2>${table(['Metric', ...columns.map(escaped)], trends.map(([name, metric]) => [escaped(name), ...columns.map((column) => shown(metric, column))]))}
<h2>Counts and shares</h2>${table(['Metric', 'Values'], others.map(([name, metric]) => [escaped(name), Object.keys(metric.values).map((value) => `${escaped(value)} ${shown(metric, value)}`).join(', ')]))}
</body></html>
`;
}

export default Object.freeze({ htmlReport });
