// The module `k6/data`: rows of data that all users share.
import { $$z } from '$$';
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
    return $$z(rows);
  }

  static [Symbol.hasInstance](value) {
    return Array.isArray(value) && Object.isFrozen(value);
  }
}

export default Object.freeze({ SharedArray });
