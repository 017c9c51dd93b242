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
const isNotHeld = (reply) => reply instanceof Error && reply.message.startsWith('NOTHELD');

export class Client {
  #brokers; #service; #timeout; #tls;
  #prefix = `js-${randomBytes(12).toString('hex')}`;
  #number = 0;
  #link = null;
  #named = [];
  #why = 'not yet connected';
  #closed = false;
  #requests = new Map();      // by owner
  #holds = new Map();         // by name and token
  #releasing = new Map();     // by owner
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
    for (const request of this.#requests.values()) request.fail(new Disconnected('the client has been closed'));
    for (const hold of new Set(this.#holds.values())) hold.lose('closed');
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
      for (const hold of this.#releasing.values()) this.#unlock(hold);
      for (const hold of new Set(this.#holds.values())) this.#takeBack(hold);
      for (const request of [...this.#requests.values()]) this.#askAnew(request);
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
      const { ends } = hold.state;
      ends.set(name, Math.max(ends.get(name), this.#link.mark + value));
      hold.inJeopardy = kind === 'jeopardy';
      if (kind !== 'renewed') hold.tell(kind);
    }
  }

  // ---- taking

  lock(names, options = {}) {
    const { signal, wait } = options;
    const request = { names: [names].flat(), options, owner: this.#owner(), until: notBeforeNow() + (wait ?? Infinity) };
    const wrong = Object.keys(options).find((key) => !OPTIONS.has(key));
    if (wrong) return Promise.reject(new TypeError(`there is no option '${wrong}'`));
    if (request.names.length === 0) return Promise.reject(new TypeError('no lock is named'));
    if (this.#closed) return Promise.reject(new Disconnected('the client has been closed'));
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const cancel = () => {
        request.fail(signal.reason);
        if (this.#link && request.sent !== undefined) this.#link.send(['CANCEL', request.owner]);
      };
      const settle = (how) => (value) => {
        if (request.done) return;
        request.done = true;
        signal?.removeEventListener('abort', cancel);
        how(value);
      };
      request.grant = settle(resolve);
      request.fail = settle(reject);
      signal?.addEventListener('abort', cancel);
      this.#requests.set(request.owner, request);
      if (this.#link) this.#send(request);
    });
  }

  async use(names, options, body) {
    const all = [names].flat();
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

  #owner() { return `${this.#prefix}:${this.#number++}`; }

  #send(request) {
    const { names, options, owner } = request;
    const left = request.until - notBeforeNow();
    const words = names.length === 1 ? ['LOCK', names[0]] : ['MLOCK', names.length, ...names];
    words.push('OWNER', owner, 'ASYNC', owner);
    if (left === Infinity || left > 0) words.push('WAIT', left === Infinity ? 0 : Math.ceil(left));
    if (options.lease !== undefined) words.push('LEASE', options.lease);
    if (options.maxHold !== undefined) words.push('MAXHOLD', options.maxHold);
    if (options.limit !== undefined) words.push('LIMIT', options.limit);
    if (options.shared) words.push('SHARED');
    if (options.fair) words.push('FAIR');
    request.sent = notAfterNow();
    this.#link.send(words, (reply) => {
      if (reply instanceof Error && !reply.ended) this.#ended(owner, 'error', reply.message);
    });
  }

  #ended(owner, how, ...what) {
    const request = this.#requests.get(owner);
    if (!request) return;
    this.#requests.delete(owner);
    if (how === 'granted') {
      this.#granted(request, ...what);
    } else if (how === 'error' && !request.done && this.#mayMove(request, what[0])) {
      this.#requests.set(owner, request);
      this.#leave(what[0]);
    } else if (how === 'error') {
      request.fail(new Refused(what[0]));
    } else {
      request.fail(new NotGranted(`${quoted(request.names)} was not to be had in time`));
    }
  }

  #mayMove(request, error) {
    return /^(DRAINING|PAUSED) /.test(error) && this.#brokers.length > 1 && notAfterNow() < request.until + this.#timeout;
  }

  #granted({ names, owner, options, sent, done, grant }, tokens, validity, waited) {
    const deadline = Math.max(sent + waited, this.#link.mark) + validity;
    const list = [tokens].flat();
    const hold = new Hold(this, names, {
      owner, options, tokens: new Map(names.map((name, i) => [name, list[i]])), ends: new Map(names.map((name) => [name, deadline])),
    });
    for (const [name, token] of hold.state.tokens) this.#holds.set(`${token} ${name}`, hold);
    if (done) this.release(hold);       // it was cancelled meanwhile
    else grant(hold);
  }

  #askAnew(request) {
    this.#requests.delete(request.owner);
    if (request.sent !== undefined) this.#link.send(Client.#unlockWords(request));
    if (request.done) return;
    request.owner = this.#owner();
    this.#requests.set(request.owner, request);
    this.#send(request);
  }

  #giveUpLateOnes() {
    for (const request of this.#requests.values()) {
      if (notAfterNow() > request.until + this.#timeout) request.fail(new Disconnected(`no broker can be reached: ${this.#why}`));
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
    const { tokens, ends, over } = hold.state;
    if (over || hold.lost || reply.ended) return;
    if (Array.isArray(reply)) {
      this.#holds.delete(`${tokens.get(name)} ${name}`);
      tokens.set(name, reply[0]);
      ends.set(name, sent + reply[1]);
      this.#holds.set(`${reply[0]} ${name}`, hold);
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
    this.#releasing.set(hold.state.owner, hold);
    this.#unlock(hold);
    return hold.state.released;
  }

  forget(hold) {
    for (const [name, token] of hold.state.tokens) this.#holds.delete(`${token} ${name}`);
  }

  static #unlockWords({ names, owner }) {
    return [...(names.length === 1 ? ['UNLOCK', names[0]] : ['MUNLOCK', names.length, ...names]), 'OWNER', owner];
  }

  #unlock(hold) {
    const { names, state } = hold;
    this.#link?.send(Client.#unlockWords({ names, owner: state.owner }), (reply) => {
      if (reply.ended) {
        state.sentBefore = true;
        return;
      }
      this.#releasing.delete(state.owner);
      if (!state.sentBefore && (isNotHeld(reply) || reply < names.length)) hold.lost ??= 'gone';
      state.done();
    });
  }
}
