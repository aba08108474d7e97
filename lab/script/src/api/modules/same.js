// Internal: deep equality, as assertions mean it, and their error.

export class AssertionError extends Error {
  get name() {
    return 'AssertionError';
  }
}

// Returns true if both values are the same, or objects of one type with the same content. Cycles are compared once.
export function same(a, b, seen = new Map()) {
  if (Object.is(a, b)) return true;
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return a === b;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  if (a instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof RegExp) return String(a) === String(b);
  if (a instanceof Error) return a === b;
  if (a instanceof ArrayBuffer) return same(new Uint8Array(a), new Uint8Array(b), seen);
  if (Array.isArray(a) || ArrayBuffer.isView(a)) {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!same(a[i], b[i], seen)) return false;
    return true;
  }
  if (a instanceof Map) {
    if (a.size !== b.size) return false;
    for (const [key, value] of a) if (!b.has(key) || !same(value, b.get(key), seen)) return false;
    return true;
  }
  if (a instanceof Set) {
    if (a.size !== b.size) return false;
    for (const value of a) if (!b.has(value) && ![...b].some((other) => same(value, other, seen))) return false;
    return true;
  }
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  for (const name of names) if (!Object.hasOwn(b, name) || !same(a[name], b[name], seen)) return false;
  return true;
}

// The value at a path such as `a.b[1].c`, as { found, value }.
export function at(root, path) {
  const parts = Array.isArray(path) ? path : pathOf(String(path));
  let value = root;
  for (const part of parts) {
    if (value === null || value === undefined || !(part in Object(value))) return { found: false, value: undefined };
    value = value[part];
  }
  return { found: true, value };
}

function pathOf(text) {
  const parts = [];
  for (const [, dotted, place] of text.matchAll(/((?:\\.|[^.[\]\\])+)|\[(\d+)\]/g)) {
    parts.push(dotted !== undefined ? dotted.replace(/\\(.)/g, '$1') : place);
  }
  return parts;
}
