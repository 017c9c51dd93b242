// Locks of the broker holdfastd: see README.md, and index.d.ts for what each thing is.
//
// Nothing is sent twice blindly: a request whose connection has ended is given back, as it may have been granted, and asked anew by
// another owner. Each acquisition has an owner of its own, which is the tag of its request too.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AlreadyHeld, Disconnected, Hold, NotGranted, Refused, quoted } from './hold.js';
import { Link, notAfterNow, notBeforeNow } from './link.js';

export * from './hold.js';

const RETRY_MS = 100;
const OPTIONS = new Set(['wait', 'lease', 'maxHold', 'shared', 'limit', 'fair', 'signal', 'reentrant']);
const listed = (names) => [names].flat().map(String);      // as the broker will name them
const isNotHeld = (reply) => reply instanceof Error && reply.message.startsWith('NOTHELD');

export class Client {
  #brokers; #service; #timeout; #tls;
  #prefix = `js-${randomBytes(12).toString('hex')}`;
  #number = 0;
  #link = null;
  #named = [];
  #why = 'not yet connected';
  #closed = false;
  #all = new Map();           // by owner: asked for, held, or not yet given back
  #holds = new Map();         // by name and token
  #inside = new AsyncLocalStorage();

  static async connect(brokers, { service = 'holdfast', timeout = 3000, tls = {} } = {}) {
    const client = new Client();
    client.#brokers = [brokers].flat().map((broker) => (broker.includes('://') ? broker : `redis://${broker}`));
    client.#service = service;
    client.#timeout = timeout;
    client.#tls = tls;
    const link = await client.#find();
    if (!link) throw new Disconnected(`no broker can be reached: ${client.#why}`);
    client.#run(link);
    return client;
  }

  async close() {
    const link = this.#link;
    this.#closed = true;
    this.#link = null;
    for (const hold of [...this.#all.values()]) {
      if (hold.state.over) hold.state.done();
      else if (hold.state.tokens.size > 0) hold.lose('closed');
      else hold.state.fail(new Disconnected('the client has been closed'));
    }
    await link?.quit();
  }

  async [Symbol.asyncDispose]() { await this.close(); }

  // ---- the connection

  async #run(link) {
    for (;;) {
      while (!link) {
        this.#giveUpLateOnes();
        await sleep(RETRY_MS);
        if (this.#closed) return;
        link = await this.#find();
      }
      if (this.#closed) {
        await link.quit();
        return;
      }
      this.#link = link;
      for (const hold of [...this.#all.values()]) {
        if (hold.state.over) this.#unlock(hold);
        else if (hold.state.tokens.size > 0) this.#takeBack(hold);
        else this.#askAnew(hold);
      }
      this.#why = (await link.closed).message;
      if (this.#closed) return;
      link = this.#link = null;
    }
  }

  async #find() {
    for (const url of this.#brokers) {
      try {
        const link = await this.#open(url);
        return this.#brokers.length > 1 ? await this.#follow(link, url) : link;
      } catch (error) {
        this.#why = `${url.replace(/.*@|.*:\/\//, '')}: ${error.message}`;
      }
    }
    return null;
  }

  #open(url) { return Link.open(url, { timeout: this.#timeout, tls: this.#tls }, (push) => this.#pushed(push)); }

  // To the broker that this one names, as a Sentinel does.
  async #follow(link, url) {
    try {
      this.#named = await link.ask('SENTINEL', 'get-master-addr-by-name', this.#service);
      if (!this.#named) throw new Error(`it does not serve as '${this.#service}'`);
      const [host, port] = this.#named;
      const place = new URL(url);
      if (place.hostname !== host || (place.port || '5625') !== port) {
        await link.quit();
        place.hostname = host.includes(':') ? `[${host}]` : host;
        place.port = port;
        link = await this.#open(place.href);
      }
    } catch (error) {
      link.reset(error);
      throw error;
    }
    link.say(['SUBSCRIBE', '+switch-master']);
    return link;
  }

  #leave(why) { this.#link?.reset(new Error(why)); }

  #pushed([kind, ...what]) {
    if (kind === 'async') {
      this.#ended(...what);
    } else if (kind === 'message') {
      if (what[1].split(' ').slice(1, 3).join(' ') === this.#named.join(' ')) this.#leave('it names another broker');
    } else if (['renewed', 'jeopardy', 'safe', 'lost'].includes(kind)) {
      const [name, token, value] = what;
      const hold = this.#holds.get(`${token} ${name}`);
      if (!hold) return;
      if (kind === 'lost') {
        hold.lose(value);
        return;
      }
      const { ends, jeopardy } = hold.state;
      ends.set(name, Math.max(ends.get(name), this.#link.mark + value));
      if (kind === 'jeopardy') jeopardy.add(name);
      else jeopardy.delete(name);
      if (kind !== 'renewed') hold.tell(kind);
    }
  }

  // ---- taking

  async lock(names, options = {}) {
    const { signal } = options;
    const hold = new Hold(this, listed(names), options);
    const wrong = Object.keys(options).find((key) => !OPTIONS.has(key));
    if (wrong) throw new TypeError(`there is no option '${wrong}'`);
    if (hold.names.length === 0) throw new TypeError('no lock is named');
    if (this.#closed) throw new Disconnected('the client has been closed');
    signal?.throwIfAborted();
    const cancel = () => {
      hold.state.fail(signal.reason);
      if (hold.state.sent === undefined) this.#all.delete(hold.state.owner);
      else this.#link?.send(['CANCEL', hold.state.owner]);
    };
    signal?.addEventListener('abort', cancel);
    try {
      await new Promise((resolve, reject) => {
        hold.state.grant = () => { hold.state.answered = true; resolve(); };
        hold.state.fail = (error) => { hold.state.answered = true; reject(error); };
        this.#send(hold);
      });
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
    return hold;
  }

  async use(names, options, body) {
    const all = listed(names);
    const outer = this.#inside.getStore();
    const entries = all.map((name) => outer?.get(name)).filter((hold) => hold?.held);
    if (entries.length > 0) {
      if (!options.reentrant || entries.some((hold) => hold.names.join('\n') !== all.join('\n'))) {
        throw new AlreadyHeld(`${quoted(all)} is held here already; say reentrant: true if it may be entered again`);
      }
      return body(entries[0]);
    }
    const hold = await this.lock(all, options);
    let result;
    try {
      result = await this.#inside.run(new Map([...(outer ?? []), ...all.map((name) => [name, hold])]), () => body(hold));
    } catch (error) {
      await hold.release().catch(() => {});     // the error of the body says more
      throw error;
    }
    await hold.release();
    return result;
  }

  #send(hold) {
    const { state } = hold;
    const { lease, maxHold, limit, shared, fair } = state.options;
    const owner = `${this.#prefix}:${this.#number++}`;
    state.owner = owner;
    this.#all.set(owner, hold);
    if (!this.#link) return;
    const left = state.until - notBeforeNow();
    const wait = left === Infinity ? 0 : left > 0 ? Math.ceil(left) : undefined;
    const words = Client.#words('LOCK', hold);
    for (const [word, value] of Object.entries({ ASYNC: owner, WAIT: wait, LEASE: lease, MAXHOLD: maxHold, LIMIT: limit })) {
      if (value !== undefined) words.push(word, value);
    }
    state.sent = notAfterNow();
    try {
      this.#link.send([...words, ...(shared ? ['SHARED'] : []), ...(fair ? ['FAIR'] : [])], (reply) => {
        if (reply instanceof Error && !reply.ended) this.#ended(owner, 'error', reply.message);
      });
    } catch (error) {       // it can not be written in words
      this.#all.delete(owner);
      state.fail(error);
    }
  }

  static #words(command, { names, state }) {
    return [...(names.length === 1 ? [command, names[0]] : [`M${command}`, names.length, ...names]), 'OWNER', state.owner];
  }

  #ended(owner, how, ...what) {
    const hold = this.#all.get(owner);
    if (!hold) return;
    if (how === 'granted') {
      this.#granted(hold, ...what);
    } else if (how === 'error' && !hold.state.answered && this.#mayMove(hold, what[0])) {
      this.#leave(what[0]);
    } else {
      this.#all.delete(owner);
      hold.state.fail(how === 'error' ? new Refused(what[0]) : new NotGranted(`${quoted(hold.names)} was not to be had in time`));
    }
  }

  #mayMove({ state }, error) {
    return /^(DRAINING|PAUSED) /.test(error) && this.#brokers.length > 1 && notAfterNow() < state.until + this.#timeout;
  }

  #granted(hold, tokens, validity, waited) {
    const { state } = hold;
    const deadline = Math.max(state.sent + waited, this.#link.mark) + validity;
    for (const [i, token] of [tokens].flat().entries()) this.#keep(hold, hold.names[i], token, deadline);
    hold.watch();
    if (state.answered) this.release(hold);       // it was cancelled meanwhile
    else state.grant();
  }

  #keep(hold, name, token, end) {
    this.#holds.delete(`${hold.state.tokens.get(name)} ${name}`);
    this.#holds.set(`${token} ${name}`, hold);
    hold.state.tokens.set(name, token);
    hold.state.ends.set(name, end);
  }

  #askAnew(hold) {
    const { owner, sent, answered } = hold.state;
    this.#all.delete(owner);
    if (sent !== undefined) this.#link.send(Client.#words('UNLOCK', hold));
    if (!answered) this.#send(hold);
  }

  #giveUpLateOnes() {
    for (const { state } of this.#all.values()) {
      if (state.tokens.size > 0 || notAfterNow() <= state.until + this.#timeout) continue;
      state.fail(new Disconnected(`no broker can be reached: ${this.#why}`));
      if (state.sent === undefined) this.#all.delete(state.owner);
    }
  }

  // ---- keeping

  #takeBack(hold, names = hold.names) {
    for (const name of names) {
      if (!this.#link || hold.state.over || hold.lost) return;
      const words = ['RENEW', name, 'OWNER', hold.state.owner];
      if (hold.state.options.lease !== undefined) words.push('LEASE', Math.max(4, Math.floor(hold.remaining)));
      this.#link.send(words, (reply, sent) => this.#takenBack(hold, name, reply, sent));
    }
  }

  #takenBack(hold, name, reply, sent) {
    if (hold.state.over || hold.lost || reply.ended) return;
    if (Array.isArray(reply)) {
      this.#keep(hold, name, reply[0], sent + reply[1]);
    } else if (isNotHeld(reply)) {
      hold.lose('gone');
    } else {
      setTimeout(() => this.#takeBack(hold, [name]), RETRY_MS).unref();
    }
  }

  // ---- giving back; these two are for Hold

  /** Done when a broker has confirmed it, or when it has lapsed. */
  release(hold) {
    this.forget(hold);
    hold.state.over = true;
    this.#all.set(hold.state.owner, hold);
    this.#unlock(hold);
    return hold.state.released;
  }

  forget(hold) {
    this.#all.delete(hold.state.owner);
    for (const [name, token] of hold.state.tokens) this.#holds.delete(`${token} ${name}`);
  }

  #unlock(hold) {
    const { names, state } = hold;
    this.#link?.send(Client.#words('UNLOCK', hold), (reply) => {
      if (reply.ended) {
        state.unsure = true;
        return;
      }
      this.forget(hold);
      if (!state.unsure && (isNotHeld(reply) || reply < names.length)) hold.lost ??= 'gone';
      state.done();
    });
  }
}
