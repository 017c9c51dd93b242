// What is held, and what can go wrong.
import { EventEmitter } from 'node:events';
import { notBeforeNow } from './link.js';

/** Something about a lock; the message says what, and to which name. */
export class LockError extends Error {
  constructor(message) {
    super(message);
    this.name = this.constructor.name;
  }
}
export class NotGranted extends LockError {}
export class LockLost extends LockError {}
export class Refused extends LockError {}
export class AlreadyHeld extends LockError {}
export class Disconnected extends LockError {}

export const quoted = (names) => names.map((name) => `'${name}'`).join(', ');

// From when it is asked for until it is released or lost; `state` is for the client.
export class Hold extends EventEmitter {
  #client;
  #timer;
  #abort = new AbortController();

  constructor(client, names, options) {
    super();
    this.names = names;
    this.lost = null;
    this.#client = client;
    const state = { options, until: notBeforeNow() + (options.wait ?? Infinity), tokens: new Map(), ends: new Map(), jeopardy: new Set() };
    state.released = new Promise((resolve) => { state.done = () => { clearTimeout(this.#timer); resolve(); }; });
    Object.defineProperty(this, 'state', { value: state, enumerable: false });
  }

  get tokens() { return this.names.map((name) => this.state.tokens.get(name)); }
  get token() { return this.tokens[0]; }
  get signal() { return this.#abort.signal; }
  get inJeopardy() { return this.state.jeopardy.size > 0; }     // any of its names
  get held() { return this.remaining > 0; }
  get remaining() { return this.lost || this.state.over ? 0 : Math.max(0, this.#left()); }

  #left() { return Math.min(...this.state.ends.values()) - notBeforeNow(); }

  check() {
    if (!this.held) throw this.#notHeld();
  }

  #notHeld() {
    const why = this.lost ?? (this.state.over ? 'it has been released' : 'expired');
    return new LockLost(`${quoted(this.names)} is not held any more: ${why}`);
  }

  async release() {
    if (!this.lost && !this.state.over) await this.#client.release(this);
    if (this.lost) throw this.#notHeld();
  }

  async [Symbol.asyncDispose]() { await this.release(); }

  // for the client

  lose(reason) {
    this.lost = reason;
    clearTimeout(this.#timer);
    this.#client.forget(this);
    this.#abort.abort(this.#notHeld());
    this.tell('lost');
  }

  // later, so that who has just been granted it can listen, and what listeners throw is not ours
  tell(event) { setImmediate(() => this.emit(event, this)); }

  // Until its deadline, which renewals put off.
  watch() {
    const left = this.#left();
    if (left > 0) {
      this.#timer = setTimeout(() => this.watch(), left + 1);
      this.#timer.unref();
    } else if (this.state.over) {
      this.state.done();              // nobody could be told, and it has lapsed
    } else {
      this.lose('expired');
      this.#client.release(this);     // a broker may renew it still
    }
  }
}
