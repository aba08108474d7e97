// The module `k6/websockets`, also `k6/experimental/websockets`: the class WebSocket of the Web. Its events come while
// the iteration waits, and the iteration ends after its socket is closed.
import { $$a } from '$$';
import { handshake } from 'k6/ws';
import { kindOf } from 'plimsoll/internal/waiting';

const EVENTS = ['open', 'message', 'error', 'close', 'ping', 'pong'];
// How long one order waits for an event, in microseconds: timers and requests of the script come in between.
const PIECE = 50_000;

const order = (payload) => $async($op('socket', payload));

export class Blob {
  #bytes;

  constructor(parts = [], { type = '' } = {}) {
    const pieces = parts.map((part) => new Uint8Array(part instanceof ArrayBuffer ? part : $host.bytes(String(part))));
    this.size = pieces.reduce((sum, piece) => sum + piece.length, 0);
    this.type = type;
    this.#bytes = new Uint8Array(this.size);
    let place = 0;
    for (const piece of pieces) {
      this.#bytes.set(piece, place);
      place += piece.length;
    }
  }

  async arrayBuffer() {
    return this.#bytes.slice().buffer;
  }

  async bytes() {
    return this.#bytes.slice();
  }

  async text() {
    return $host.utf8(this.#bytes);
  }
}

export class WebSocket {
  #listeners = new Map();
  #outgoing = [];
  #closing = undefined;

  constructor(url, protocols, params) {
    this.url = String(url);
    this.readyState = WebSocket.CONNECTING;
    this.binaryType = 'blob';
    this.bufferedAmount = 0;
    this.extensions = '';
    this.protocol = '';
    for (const event of EVENTS) this[`on${event}`] = null;
    if (protocols !== undefined && protocols !== null && protocols.length > 0) {
      const named = [protocols].flat().join(', ');
      params = { ...params, headers: { 'Sec-WebSocket-Protocol': named, ...params?.headers } };
    }
    this.#play(params);
  }

  addEventListener(event, listener) {
    if (!EVENTS.includes(event)) throw new TypeError(`a WebSocket has no event '${event}': it has ${EVENTS.join(', ')}`);
    if (typeof listener !== 'function') throw new TypeError(`addEventListener takes a function, not ${kindOf(listener)}`);
    const listeners = this.#listeners.get(event);
    if (listeners === undefined) this.#listeners.set(event, [listener]);
    else listeners.push(listener);
  }

  #queue(message) {
    if (this.readyState === WebSocket.CONNECTING) throw new Error('the WebSocket is not open yet: send after its event open');
    if (this.readyState === WebSocket.OPEN) this.#outgoing.push(message);
  }

  send(data) {
    if (typeof data === 'string') this.#queue({ order: 'send', kind: 'text', data });
    else if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) this.#queue({ order: 'send', kind: 'binary', data });
    else throw new TypeError(`a WebSocket sends text or an ArrayBuffer, not ${kindOf(data)}`);
  }

  ping() {
    this.#queue({ order: 'send', kind: 'ping', data: '' });
  }

  close(code = 1000, reason = '') {
    if (this.readyState >= WebSocket.CLOSING) return;
    this.readyState = WebSocket.CLOSING;
    this.#closing = { order: 'close', code, reason };
  }

  async #emit(type, members) {
    const event = { type, target: this, currentTarget: this, timestamp: $host.now(), ...members };
    const handler = this[`on${type}`];
    if (typeof handler === 'function') await $$a(handler.call(this, event));
    for (const listener of [...(this.#listeners.get(type) ?? [])]) await $$a(listener.call(this, event));
  }

  async #heard(event) {
    switch (event?.event) {
      case 'received': {
        if (event.kind === 'ping' || event.kind === 'pong') return this.#emit(event.kind);
        const binary = event.kind === 'binary' && this.binaryType === 'blob';
        return this.#emit('message', { data: binary ? new Blob([event.data]) : event.data });
      }
      case 'closed':
        this.readyState = WebSocket.CLOSED;
        return this.#emit('close', { code: event.code, reason: event.reason, wasClean: true });
      case 'failed':
        this.readyState = WebSocket.CLOSED;
        await this.#emit('error', { error: event.message, message: event.message });
        return this.#emit('close', { code: 1006, reason: event.message, wasClean: false });
      default:
        return undefined;
    }
  }

  async #play(params) {
    const opened = await order({ order: 'open', request: handshake(this.url, params) });
    if (opened.event !== 'opened') return this.#heard(opened);
    if (this.readyState === WebSocket.CONNECTING) {
      this.readyState = WebSocket.OPEN;
      await this.#emit('open');
    }
    while (this.readyState !== WebSocket.CLOSED) {
      while (this.#outgoing.length > 0) await this.#heard(await order(this.#outgoing.shift()));
      if (this.#closing !== undefined) {
        const { code, reason } = this.#closing;
        const event = await order(this.#closing);
        return this.#heard(event?.event === 'closed' ? event : { event: 'closed', code, reason });
      }
      await this.#heard(await order({ order: 'next', micros: PIECE }));
    }
    return undefined;
  }
}

['CONNECTING', 'OPEN', 'CLOSING', 'CLOSED'].forEach((name, value) => {
  for (const target of [WebSocket, WebSocket.prototype]) Object.defineProperty(target, name, { value, enumerable: true });
});

export default Object.freeze({ WebSocket, Blob });
