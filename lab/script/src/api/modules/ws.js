// The module `k6/ws`: a WebSocket whose events end with the call of `connect`.
import { drained, kindOf } from 'plimsoll/internal/waiting';

const EVENTS = ['open', 'message', 'binaryMessage', 'ping', 'pong', 'close', 'error'];

const order = (payload) => $op('socket', payload);

// The request that opens the socket, in the form of `k6/http`.
export const handshake = (url, params) => ['GET', String(url), null, params ?? undefined, undefined, undefined];

class Socket {
  #handlers = new Map();
  #outgoing = [];
  #timers = [];
  #closing = undefined;
  #closed = false;

  on(event, handler) {
    if (!EVENTS.includes(event)) throw new TypeError(`a socket has no event '${event}': it has ${EVENTS.join(', ')}`);
    if (typeof handler !== 'function') throw new TypeError(`socket.on takes a function, not ${kindOf(handler)}`);
    const handlers = this.#handlers.get(event);
    if (handlers === undefined) this.#handlers.set(event, [handler]);
    else handlers.push(handler);
  }

  send(data) {
    this.#outgoing.push({ order: 'send', kind: 'text', data: String(data) });
  }

  sendBinary(data) {
    if (!(data instanceof ArrayBuffer)) throw new TypeError(`sendBinary takes an ArrayBuffer, not ${kindOf(data)}`);
    this.#outgoing.push({ order: 'send', kind: 'binary', data });
  }

  ping() {
    this.#outgoing.push({ order: 'send', kind: 'ping', data: '' });
  }

  setTimeout(f, millis) {
    this.#timer('setTimeout', f, millis, false);
  }

  setInterval(f, millis) {
    this.#timer('setInterval', f, millis, true);
  }

  #timer(name, f, millis, again) {
    if (typeof f !== 'function') throw new TypeError(`${name} takes a function, not ${kindOf(f)}`);
    const wait = Number(millis);
    if (!(wait > 0)) throw new RangeError(`${name} takes a number of milliseconds above 0`);
    this.#timers.push({ f, wait, due: $host.now() + wait, again });
  }

  close(code) {
    this.#closing ??= { order: 'close', code: code === undefined ? 1000 : Number(code) };
  }

  *$emit(event, value) {
    for (const handler of [...(this.#handlers.get(event) ?? [])]) {
      const result = value === undefined ? handler() : handler(value);
      if ($w(result)) yield* drained(result);
    }
  }

  *#due() {
    const now = $host.now();
    const due = this.#timers.filter((timer) => timer.due <= now);
    for (const timer of due) {
      if (timer.again) timer.due = now + timer.wait;
      else this.#timers.splice(this.#timers.indexOf(timer), 1);
      const result = timer.f();
      if ($w(result)) yield* drained(result);
    }
  }

  *$heard(event) {
    switch (event?.event) {
      case 'received':
        if (event.kind === 'text') yield* this.$emit('message', event.data);
        else if (event.kind === 'binary') yield* this.$emit('binaryMessage', event.data);
        else yield* this.$emit(event.kind);
        break;
      case 'closed':
        this.#closed = true;
        yield* this.$emit('close', event.code);
        break;
      case 'failed':
        this.#closed = true;
        yield* this.$emit('error', { error: () => event.message, message: event.message });
        break;
      default:
    }
  }

  // Sends and hears until the socket is closed.
  *$play() {
    yield* this.$emit('open');
    while (!this.#closed) {
      while (this.#outgoing.length > 0 && !this.#closed) yield* this.$heard(yield order(this.#outgoing.shift()));
      if (this.#closed) break;
      if (this.#closing !== undefined) {
        const code = this.#closing.code;
        const event = yield order(this.#closing);
        this.#closed = true;
        yield* this.$emit('close', event?.event === 'closed' ? event.code : code);
        break;
      }
      const next = this.#timers.reduce((least, timer) => Math.min(least, timer.due), Infinity);
      const micros = next === Infinity ? undefined : Math.max(0, (next - $host.now()) * 1000);
      yield* this.$heard(yield order({ order: 'next', micros }));
      yield* this.#due();
    }
  }
}

export function connect(url, params, callback) {
  if (typeof params === 'function') [params, callback] = [undefined, params];
  if (typeof callback !== 'function') throw new TypeError(`ws.connect takes a function as its last argument, not ${kindOf(callback)}`);
  return connected(url, params, callback);
}

function* connected(url, params, callback) {
  const opened = yield order({ order: 'open', request: handshake(url, params) });
  const socket = new Socket();
  if (opened.event !== 'opened') {
    const set = callback(socket);
    if ($w(set)) yield* drained(set);
    yield* socket.$heard(opened);
    return { status: 0, url: String(url), body: '', headers: {}, error: opened.message ?? 'the socket was not opened' };
  }
  const set = callback(socket);
  if ($w(set)) yield* drained(set);
  yield* socket.$play();
  return opened.response;
}

export default Object.freeze({ connect });
