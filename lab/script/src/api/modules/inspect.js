// Internal: values as text, for the log and for messages.

const DEEPEST = 6;
const LONGEST = 10_000;

// What `console.log` prints of a value: text as it is, all else as JSON, as k6 does.
export function logged(value) {
  if (typeof value === 'string') return shortened(value);
  if (value === null || typeof value !== 'object') return shortened(typeof value === 'symbol' ? value.toString() : String(value));
  if (value instanceof Error) return shortened(value.stack ? `${value}\n${value.stack}`.trimEnd() : String(value));
  try {
    return shortened(JSON.stringify(value) ?? String(value));
  } catch {
    return shortened(inspected(value));
  }
}

function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text;
}

// A value as messages of assertions show it: `{ a: 1, b: [ 'x' ] }`.
export function inspected(value, depth = 0) {
  switch (typeof value) {
    case 'string':
      return `'${value.replace(/\n/g, '\\n').replace(/'/g, "\\'")}'`;
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return value.name ? `[Function ${value.name}]` : '[Function]';
    case 'object':
      return value === null ? 'null' : ofObject(value, depth);
    default:
      return String(value);
  }
}

function ofObject(value, depth) {
  if (value instanceof Error) return `[${value}]`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (depth >= DEEPEST) return Array.isArray(value) ? '[ … ]' : '{ … }';
  const inner = (one) => inspected(one, depth + 1);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    const some = Array.from(value).slice(0, 100).map(inner);
    return some.length === 0 ? '[]' : `[ ${some.join(', ')} ]`;
  }
  if (value instanceof Map) return `Map { ${[...value].map(([key, one]) => `${inner(key)} => ${inner(one)}`).join(', ')} }`;
  if (value instanceof Set) return `Set { ${[...value].map(inner).join(', ')} }`;
  const names = Object.keys(value).slice(0, 100);
  const members = names.map((name) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`}: ${inner(value[name])}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

// Text in HTML and XML.
export const escaped = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');

// The members of a list, or of an object by names.
export const list = (all) => (Array.isArray(all) ? all : Object.values(all ?? {}));
