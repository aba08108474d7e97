// Internal: elements of HTML, as `Selection.get` and `Selection.each` give them. All they say is read from the document
// when it is asked for; nothing can be changed.
import { put } from 'plimsoll/internal/waiting';

// Makes a selection of nodes; `k6/html`, which imports this module, sets it.
let selectionOf;

export function useSelection(make) {
  selectionOf = make;
}

export function elementOf(nodes) {
  return new Element(nodes);
}

const one = (nodes) => (nodes.size() > 0 ? new Element(nodes.at(0)) : undefined);

function all(nodes) {
  const list = [];
  for (let i = 0, size = nodes.size(); i < size; i++) list.push(new Element(nodes.at(i)));
  return list;
}

const VOID_URL = ['', '', '', '', '', '', '', '', '', '', ''];

class Element {
  constructor(nodes) {
    Object.defineProperty(this, '$nodes', { value: nodes });
  }

  #walked(way, filter) {
    return this.$nodes.walk(way, undefined, filter);
  }

  // An attribute that names something, empty if it is absent.
  #said(name) {
    return this.$nodes.attr(name) ?? '';
  }

  #owner(names) {
    return one(this.$nodes.closest(names));
  }

  // The parts of the address that a link names.
  #address() {
    const target = this.$nodes.attr('href');
    if (target === undefined) return VOID_URL;
    try {
      return $host.address(target, undefined);
    } catch {
      return VOID_URL;
    }
  }

  selection() {
    return selectionOf(this.$nodes);
  }

  nodeName() {
    return this.$nodes.name();
  }

  nodeType() {
    return this.$nodes.kind();
  }

  nodeValue() {
    return this.$nodes.value();
  }

  id() {
    return this.#said('id');
  }

  innerHTML() {
    return this.$nodes.html(false);
  }

  outerHTML() {
    return this.$nodes.html(true);
  }

  textContent() {
    return this.$nodes.text();
  }

  toString() {
    return this.$nodes.html(true);
  }

  className() {
    return this.#said('class');
  }

  classList() {
    return this.#said('class').split(/\s+/).filter(Boolean);
  }

  lang() {
    return this.#said('lang');
  }

  attributes() {
    const map = {};
    for (const [name, value] of this.$nodes.attrs()) put(map, name, { name, value, nodeName: name, nodeValue: value });
    return map;
  }

  getAttribute(name) {
    return this.$nodes.attr(String(name));
  }

  getAttributeNode(name) {
    const value = this.$nodes.attr(String(name));
    return value === undefined ? undefined : { name: String(name), value, nodeName: String(name), nodeValue: value };
  }

  hasAttribute(name) {
    return this.$nodes.attr(String(name)) !== undefined;
  }

  hasAttributes() {
    return this.$nodes.attrs().length > 0;
  }

  childNodes() {
    return all(this.#walked('contents'));
  }

  children() {
    return all(this.#walked('children'));
  }

  childElementCount() {
    return this.#walked('children').size();
  }

  hasChildNodes() {
    return this.#walked('contents').size() > 0;
  }

  firstChild() {
    return one(this.#walked('contents'));
  }

  lastChild() {
    return this.childNodes().at(-1);
  }

  firstElementChild() {
    return one(this.#walked('children'));
  }

  lastElementChild() {
    return this.children().at(-1);
  }

  nextSibling() {
    return one(this.#walked('nextNode'));
  }

  previousSibling() {
    return one(this.#walked('prevNode'));
  }

  nextElementSibling() {
    return one(this.#walked('next'));
  }

  previousElementSibling() {
    return one(this.#walked('prev'));
  }

  parentElement() {
    return one(this.#walked('parent'));
  }

  parentNode() {
    return this.parentElement();
  }

  ownerDocument() {
    const around = this.#walked('parents');
    const size = around.size();
    return new Element(size > 0 ? around.at(size - 1) : this.$nodes);
  }

  isSameNode(other) {
    return other instanceof Element && this.$nodes.same(other.$nodes);
  }

  isEqualNode(other) {
    return other instanceof Element && this.$nodes.html(true) === other.$nodes.html(true);
  }

  contains(other) {
    return other instanceof Element && (this.isSameNode(other) || this.$nodes.hasOther(other.$nodes).size() > 0);
  }

  matches(selector) {
    return this.$nodes.filter(String(selector), true).size() > 0;
  }

  querySelector(selector) {
    return one(this.$nodes.find(String(selector), true));
  }

  querySelectorAll(selector) {
    return all(this.$nodes.find(String(selector), false));
  }

  getElementsByTagName(name) {
    return this.querySelectorAll(name);
  }

  getElementsByClassName(names) {
    return this.querySelectorAll(
      String(names)
        .split(/\s+/)
        .filter(Boolean)
        .map((name) => `.${name}`)
        .join(''),
    );
  }

  namespaceURI() {
    return this.matches('svg, svg *') ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml';
  }

  isDefaultNamespace() {
    return this.namespaceURI() === 'http://www.w3.org/1999/xhtml';
  }

  // Links.
  href() {
    return this.$nodes.attr('href') === undefined ? '' : this.#address()[0] || this.#said('href');
  }

  origin() {
    return this.#address()[1];
  }

  protocol() {
    return this.#address()[2];
  }

  username() {
    return this.#address()[3];
  }

  password() {
    return this.#address()[4];
  }

  host() {
    return this.#address()[5];
  }

  hostname() {
    return this.#address()[6];
  }

  port() {
    return this.#address()[7];
  }

  pathname() {
    return this.#address()[8];
  }

  search() {
    return this.#address()[9];
  }

  hash() {
    return this.#address()[10];
  }

  relList() {
    return this.#said('rel').split(/\s+/).filter(Boolean);
  }

  text() {
    return this.$nodes.text();
  }

  // Forms and their controls.
  value() {
    return this.$nodes.val();
  }

  name() {
    return this.#said('name');
  }

  type() {
    return this.#said('type');
  }

  disabled() {
    return this.hasAttribute('disabled');
  }

  checked() {
    return this.hasAttribute('checked');
  }

  selected() {
    return this.hasAttribute('selected');
  }

  multiple() {
    return this.hasAttribute('multiple');
  }

  form() {
    const named = this.$nodes.attr('form');
    if (named !== undefined) return this.ownerDocument().querySelector(`form[id="${named.replace(/["\\]/g, '\\$&')}"]`);
    return this.#owner('form');
  }

  method() {
    return this.#said('method').toLowerCase() === 'post' ? 'post' : 'get';
  }

  action() {
    return this.#said('action');
  }

  elements() {
    return this.querySelectorAll('input, select, textarea, button, fieldset, object, output');
  }

  length() {
    return this.nodeName() === 'select' ? this.options().length : this.elements().length;
  }

  options() {
    return this.querySelectorAll('option');
  }

  selectedOptions() {
    const options = this.options();
    const chosen = options.filter((option) => option.selected());
    return chosen.length > 0 || this.multiple() ? chosen : options.slice(0, 1);
  }

  selectedIndex() {
    const chosen = this.selectedOptions()[0];
    return chosen === undefined ? -1 : this.options().findIndex((option) => option.isSameNode(chosen));
  }

  index() {
    return this.#owner('select')?.options().findIndex((option) => option.isSameNode(this)) ?? 0;
  }

  label() {
    return this.$nodes.attr('label') ?? this.$nodes.text();
  }

  labels() {
    const id = this.id().replace(/["\\]/g, '\\$&');
    return id === '' ? [] : this.ownerDocument().querySelectorAll(`label[for="${id}"]`);
  }

  control() {
    const id = this.#said('for').replace(/["\\]/g, '\\$&');
    return id === '' ? this.querySelector('input, select, textarea, button') : this.ownerDocument().querySelector(`[id="${id}"]`);
  }

  // Tables.
  rows() {
    return this.querySelectorAll('tr');
  }

  cells() {
    return this.querySelectorAll('td, th');
  }

  colSpan() {
    return Number.parseInt(this.#said('colspan'), 10) || 1;
  }

  rowSpan() {
    return Number.parseInt(this.#said('rowspan'), 10) || 1;
  }

  rowIndex() {
    return this.#owner('table')?.rows().findIndex((row) => row.isSameNode(this)) ?? -1;
  }

  cellIndex() {
    return this.#owner('tr')?.cells().findIndex((cell) => cell.isSameNode(this)) ?? -1;
  }
}
