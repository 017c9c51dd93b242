// One connection to a broker: replies in the order of requests, and pushes between them.
import net from 'node:net';
import os from 'node:os';
import { Redis } from 'ioredis';

// Milliseconds on a clock that also runs while the machine is suspended, where Node.js has one: in steps of 10 ms, so one may
// ask for a time that is not after now, or for one that is not before.
const boottime = process.platform === 'linux';
export const notAfterNow = () => (boottime ? os.uptime() * 1000 : performance.now());
export const notBeforeNow = () => notAfterNow() + (boottime ? 10 : 0);

class Push extends Array {}
const MORE = Symbol('more');

// A value of RESP3 at this.at of this.bytes, or MORE.
class Reader {
  bytes = Buffer.alloc(0);
  at = 0;

  * values(chunk) {
    this.bytes = this.at < this.bytes.length ? Buffer.concat([this.bytes.subarray(this.at), chunk]) : chunk;
    this.at = 0;
    for (;;) {
      const start = this.at;
      const value = start < this.bytes.length ? this.value() : MORE;
      if (value === MORE) {
        this.at = start;
        return;
      }
      yield value;
    }
  }

  value() {
    const end = this.bytes.indexOf('\r\n', this.at);
    if (end < 0) return MORE;
    const kind = String.fromCharCode(this.bytes[this.at]);
    const text = this.bytes.toString('utf8', this.at + 1, end);
    this.at = end + 2;
    switch (kind) {
      case '+': return text;
      case '-': return new Error(text);
      case ':': return Number(text);
      case '_': return null;
      case '$': return this.string(Number(text));
      case '*': return this.list([], Number(text));
      case '%': return this.list([], 2 * Number(text));
      case '>': return this.list(new Push(), Number(text));
      default: throw new Error(`the broker has sent something that is not RESP3: ${kind}${text}`);
    }
  }

  string(length) {
    if (this.at + length + 2 > this.bytes.length) return MORE;
    this.at += length + 2;
    return this.bytes.toString('utf8', this.at - length - 2, this.at - 2);
  }

  list(values, length) {
    for (let i = 0; i < length; i++) {
      const value = this.value();
      if (value === MORE) return MORE;
      values.push(value);
    }
    return values;
  }
}

// Over a Unix socket nothing can be reset: it is closed when whatever it held has been taken back, or has lapsed.
const LINGER_MS = 60000;

// ioredis connects and logs in; from then on the bytes are read here, as it keeps pushes to itself.
//
// `mark` is a time before which nothing that is read now has left the broker: replies come in order, so what stands behind the
// reply to a request has left after that was sent.
export class Link {
  mark = notAfterNow();
  #due = [];
  #answers = 0;
  #reader = new Reader();
  #timer;
  #end;
  closed = new Promise((resolve) => { this.#end = resolve; });
  over = false;

  static async open(url, { timeout, tls }, onPush) {
    const place = new URL(url);
    const host = place.hostname.replace(/^\[|\]$/g, '');
    place.port ||= '5625';
    // one of ours below TLS, as that can not be reset from above
    const socket = place.protocol === 'rediss:' ? net.connect(Number(place.port), host).on('error', () => {}) : undefined;
    const redis = new Redis(place.protocol === 'unix:' ? decodeURIComponent(place.pathname) : place.href, {
      ...(socket && { tls: { ...tls, socket, servername: net.isIP(host) ? '' : host } }), lazyConnect: true, connectTimeout: timeout, enableReadyCheck: false, enableOfflineQueue: false,
      retryStrategy: null, maxRetriesPerRequest: 0, commandTimeout: timeout, disableClientInfo: true,
    });
    redis.on('error', () => {});    // connect() rejects with it, too
    try {
      await redis.connect();
      await redis.ping();           // logged in
    } catch (error) {
      redis.disconnect();
      throw error;
    }
    return new Link(redis, socket ?? redis.stream, timeout, onPush).#greet();
  }

  constructor(redis, socket, timeout, onPush) {
    this.redis = redis;
    this.socket = socket;
    this.timeout = timeout;
    this.onPush = onPush;
    this.stream = redis.stream;
    this.stream.removeAllListeners('data');
    this.stream.on('data', (chunk) => this.#read(chunk));
    this.stream.on('close', () => this.reset(new Error('the broker has closed the connection')));
    this.#watch();
  }

  async #greet() {
    try {
      await this.ask('HELLO', 3);
      await this.ask('CLIENT', 'TELL', 'ON');
    } catch (error) {
      this.reset(error);
      throw error;
    }
    return this;
  }

  // then(reply, sent) is called in the turn in which the reply is read; an error is an Error, `ended` when it is of the connection
  send(words, then = () => {}) {
    const request = Link.#packed(words);    // may throw, and then no reply is due
    this.#due.push({ sent: notAfterNow(), then });
    this.stream.write(request);
  }

  // what is answered by pushes alone
  say(words) { this.stream.write(Link.#packed(words)); }

  static #packed(words) {
    return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(`${word}`)}\r\n${word}\r\n`).join('')}`;
  }

  ask(...words) {
    return new Promise((resolve, reject) => {
      this.send(words, (reply) => (reply instanceof Error ? reject(reply) : resolve(reply)));
    });
  }

  // Ends it in order: what is held by it is free at once.
  async quit() {
    await this.ask('QUIT').catch(() => {});
    this.reset(new Error('closed'), { orderly: true });
  }

  // Gives it up. A reset: after an orderly end the broker would release what another one is to take back.
  reset(why, { orderly = false } = {}) {
    if (this.over) return;
    this.over = true;
    clearInterval(this.#timer);
    this.#end(why);
    const ended = Object.assign(new Error(`the connection to the broker has ended: ${why.message}`), { ended: true });
    for (const { then } of this.#due.splice(0)) then(ended);
    if (orderly) this.stream.end();
    else if (this.socket.remotePort || this.socket.destroyed) this.socket.resetAndDestroy();
    else {
      this.stream.unref();
      setTimeout(() => this.redis.disconnect(), LINGER_MS).unref();
      return;
    }
    this.redis.disconnect();
  }

  #read(chunk) {
    try {
      for (const value of this.#reader.values(chunk)) {
        if (this.over) return;
        if (value instanceof Push) this.onPush(value);
        else {
          const { sent, then } = this.#due.shift();
          this.mark = sent;
          this.#answers++;
          then(value, sent);
        }
      }
    } catch (error) {
      this.reset(error);
    }
  }

  // Resets it when the broker is silent. By counting, as this process may have been stopped meanwhile.
  #watch() {
    let before;
    let missed = 0;
    this.#timer = setInterval(() => {
      missed = this.#answers === before ? missed + 1 : 0;
      before = this.#answers;
      if (missed > 3) this.reset(new Error(`the broker has been silent for ${this.timeout} ms`));
      else this.send(['PING']);
    }, this.timeout / 4);
  }
}
