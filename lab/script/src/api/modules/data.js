// The module `k6/data`: rows of data that all users share.
import { kindOf } from 'plimsoll/internal/waiting';

// The array itself, frozen with all it contains, so that no user can change the rows of another one.
export class SharedArray {
  constructor(name, make) {
    if (typeof name !== 'string' || name === '') throw new TypeError('new SharedArray takes a name as its first argument');
    if (typeof make !== 'function') {
      throw new TypeError(`new SharedArray takes a function as its second argument, not ${kindOf(make)}`);
    }
    $host.onlyInInit(`new SharedArray('${name}')`);
    const rows = make();
    if (!Array.isArray(rows)) throw new TypeError(`the function of SharedArray '${name}' returns ${kindOf(rows)}, not an array`);
    return frozen(rows);
  }

  static [Symbol.hasInstance](value) {
    return Array.isArray(value) && Object.isFrozen(value);
  }
}

// Freezes all that can be reached, without recursion: rows may be nested deeply.
export function frozen(root) {
  const open = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (value === null || typeof value !== 'object' || Object.isFrozen(value)) continue;
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) continue;
    Object.freeze(value);
    for (const key of Object.keys(value)) open.push(value[key]);
  }
  return root;
}

export default Object.freeze({ SharedArray });
