// The module `k6/html`: HTML as selections of nodes. The host keeps the document; a selection holds a list of its nodes.
import { each, kindOf, put } from 'plimsoll/internal/waiting';
import { elementOf, useSelection } from 'plimsoll/internal/element';

// Returns the host's list of nodes of what names elements: a selection or an element.
function nodesOf(target) {
  if (target instanceof Selection) return target.$nodes;
  if (target !== null && typeof target === 'object' && target.$nodes !== undefined) return target.$nodes;
  throw new TypeError(`a selector, a selection, or an element is expected, not ${kindOf(target)}`);
}

export class Selection {
  constructor(nodes) {
    Object.defineProperty(this, '$nodes', { value: nodes });
  }

  find(selector) {
    return new Selection(this.$nodes.find(String(selector), false));
  }

  single(selector) {
    return new Selection(this.$nodes.find(String(selector), true));
  }

  // Tests of elements: a selector, a function, or other elements.
  #kept(test, wanted) {
    const nodes = this.$nodes;
    if (typeof test === 'string') return new Selection(nodes.filter(test, wanted));
    if (typeof test !== 'function') return new Selection(nodes.filterOther(nodesOf(test), wanted));
    const places = [];
    return each(
      nodes.size(),
      (i) => test(i, new Selection(nodes.at(i))),
      (passed, i) => {
        if (!!passed === wanted) places.push(i);
      },
      () => new Selection(nodes.pick(places)),
    );
  }

  filter(test) {
    return this.#kept(test, true);
  }

  not(test) {
    return this.#kept(test, false);
  }

  is(test) {
    const nodes = this.$nodes;
    if (typeof test === 'string') return nodes.filter(test, true).size() > 0;
    if (typeof test !== 'function') return nodes.filterOther(nodesOf(test), true).size() > 0;
    let found = false;
    return each(
      nodes.size(),
      (i) => test(i, new Selection(nodes.at(i))),
      (passed) => (found = !!passed),
      () => found,
    );
  }

  has(target) {
    const nodes = this.$nodes;
    return new Selection(typeof target === 'string' ? nodes.has(target) : nodes.hasOther(nodesOf(target)));
  }

  closest(selector) {
    return new Selection(this.$nodes.closest(String(selector)));
  }

  #walked(way, until, filter) {
    const end = until === undefined || until === null || typeof until === 'string' ? until : nodesOf(until);
    return new Selection(this.$nodes.walk(way, end ?? undefined, filter === undefined || filter === null ? undefined : String(filter)));
  }

  children(filter) {
    return this.#walked('children', undefined, filter);
  }

  contents() {
    return this.#walked('contents');
  }

  parent(filter) {
    return this.#walked('parent', undefined, filter);
  }

  parents(filter) {
    return this.#walked('parents', undefined, filter);
  }

  parentsUntil(until, filter) {
    return this.#walked('parents', until, filter);
  }

  next(filter) {
    return this.#walked('next', undefined, filter);
  }

  nextAll(filter) {
    return this.#walked('nextAll', undefined, filter);
  }

  nextUntil(until, filter) {
    return this.#walked('nextAll', until, filter);
  }

  prev(filter) {
    return this.#walked('prev', undefined, filter);
  }

  prevAll(filter) {
    return this.#walked('prevAll', undefined, filter);
  }

  prevUntil(until, filter) {
    return this.#walked('prevAll', until, filter);
  }

  size() {
    return this.$nodes.size();
  }

  get length() {
    return this.$nodes.size();
  }

  eq(index) {
    return this.slice(index, index === -1 ? undefined : index + 1);
  }

  first() {
    return this.eq(0);
  }

  last() {
    return this.eq(-1);
  }

  slice(start, end) {
    const size = this.$nodes.size();
    const place = (at) => (at < 0 ? Math.max(0, size + at) : Math.min(size, at));
    const from = place(Math.trunc(Number(start)) || 0);
    const to = end === undefined ? size : place(Math.trunc(Number(end)) || 0);
    const places = [];
    for (let i = from; i < to; i++) places.push(i);
    return new Selection(this.$nodes.pick(places));
  }

  get(index) {
    if (index === undefined) return this.toArray().map((one) => one.get(0));
    const size = this.$nodes.size();
    const place = index < 0 ? size + index : index;
    return place >= 0 && place < size ? elementOf(this.$nodes.at(place)) : undefined;
  }

  toArray() {
    const all = [];
    for (let i = 0, size = this.$nodes.size(); i < size; i++) all.push(new Selection(this.$nodes.at(i)));
    return all;
  }

  each(f) {
    if (typeof f !== 'function') throw new TypeError(`each takes a function, not ${kindOf(f)}`);
    const nodes = this.$nodes;
    return each(
      nodes.size(),
      (i) => f(i, elementOf(nodes.at(i))),
      (result) => result === false,
      () => this,
    );
  }

  map(f) {
    if (typeof f !== 'function') throw new TypeError(`map takes a function, not ${kindOf(f)}`);
    const nodes = this.$nodes;
    const results = [];
    return each(
      nodes.size(),
      (i) => f(i, new Selection(nodes.at(i))),
      (result) => {
        results.push(result);
      },
      () => results,
    );
  }

  attr(name, missing) {
    return this.$nodes.attr(String(name)) ?? missing;
  }

  // Data attributes, by their names in camel case or with hyphens, as numbers, booleans, and objects where they say such.
  data(key) {
    if (key !== undefined) {
      const value = this.$nodes.attr(`data-${String(key).replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`);
      return value === undefined ? undefined : ofData(value);
    }
    const all = {};
    for (const [name, value] of this.$nodes.attrs()) {
      if (name.startsWith('data-')) put(all, name.slice(5).replace(/-([a-z])/g, (_, c) => c.toUpperCase()), ofData(value));
    }
    return all;
  }

  html() {
    return this.$nodes.html(false);
  }

  text() {
    return this.$nodes.text();
  }

  val() {
    return this.$nodes.val();
  }

  serializeArray() {
    return this.$nodes.fields().map(([name, value]) => ({ name, value }));
  }

  serializeObject() {
    const all = {};
    for (const [name, value] of this.$nodes.fields()) {
      put(all, name, Object.hasOwn(all, name) ? [all[name], value].flat() : value);
    }
    return all;
  }

  serialize() {
    return $host.form(this.$nodes.fields().flat());
  }
}

useSelection((nodes) => new Selection(nodes));

function ofData(value) {
  if (value === 'true') return true;
  if (value === 'false') return false;
  if (value === 'null') return null;
  if (value !== '' && String(Number(value)) === value) return Number(value);
  if (/^(?:\{[\w\W]*\}|\[[\w\W]*\])$/.test(value)) {
    try {
      return JSON.parse(value);
    } catch {
      return value;
    }
  }
  return value;
}

export function parseHTML(text) {
  if (text instanceof ArrayBuffer) text = $host.utf8(text);
  if (typeof text !== 'string') throw new TypeError(`parseHTML takes text, not ${kindOf(text)}`);
  return new Selection($host.html(text));
}

export default Object.freeze({ parseHTML, Selection });
