/// <reference types="node" />
import type { EventEmitter } from 'node:events';
import type { ConnectionOptions } from 'node:tls';

/** Something about a lock; the message says what, and to which name. */
export class LockError extends Error {}
/** The lock was not to be had in the time that was given. */
export class NotGranted extends LockError {}
/** The lock is not held any more: stop working on what it protects. */
export class LockLost extends LockError {}
/** The broker has refused the request; the message begins with its code (holdfast-protocol(7), ERROR REPLIES). */
export class Refused extends LockError {}
/** The body of an outer use() of the same name has the lock already, and re-entry was not asked for. */
export class AlreadyHeld extends LockError {}
/** No broker of the list could be reached, or the client has been closed. */
export class Disconnected extends LockError {}

/** Of a request; times in milliseconds. */
export interface LockOptions {
  /** How long to wait; without it for ever, 0: one try. */
  wait?: number;
  /** It ends by itself after this time; without it the broker renews it for as long as this process lives. */
  lease?: number;
  /** Held for this time at most. */
  maxHold?: number;
  /** As a reader, together with others. */
  shared?: boolean;
  /** As one of so many. */
  limit?: number;
  /** In the order of arrival, also across brokers. */
  fair?: boolean;
  /** Ends the wait: the request is rejected with the signal's reason. */
  signal?: AbortSignal;
}

export interface UseOptions extends LockOptions {
  /** Inside the body of another use() of the same names it is entered once more, and not AlreadyHeld. */
  reentrant?: boolean;
}

export interface ClientOptions {
  /** What the brokers are asked for, as Sentinels are: "holdfast". */
  service?: string;
  /** Milliseconds of silence after which a broker is given up: 3000. */
  timeout?: number;
  /** For rediss: certificates and the like. */
  tls?: ConnectionOptions;
}

/** A lock, or several, from when they were granted until they are released or lost. Emits "jeopardy", "safe" and "lost". */
export class Hold extends EventEmitter {
  private constructor();
  readonly names: readonly string[];
  /** The fencing token of the (first) name. A lock that was taken back has a larger one: read it for each write. */
  readonly token: number;
  /** The fencing tokens, in the order of the names. */
  readonly tokens: readonly number[];
  /** Why it is held no more (holdfast-protocol(7), Pushes; "expired" by the clock), or null. */
  readonly lost: string | null;
  /** Whether a renewal has failed, of one of the names; the broker goes on trying. */
  readonly inJeopardy: boolean;
  /** Aborted with LockLost when the lock is lost. */
  readonly signal: AbortSignal;
  /** Whether it is held, by this process's own clock. */
  readonly held: boolean;
  /** For how many milliseconds it may be relied on without hearing more, counted from before the request was sent. */
  readonly remaining: number;
  /** Throws LockLost unless it is held. */
  check(): void;
  /** Gives it back. Rejected with LockLost when it was not held any more. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  on(event: 'jeopardy' | 'safe' | 'lost', listener: (hold: Hold) => void): this;
  once(event: 'jeopardy' | 'safe' | 'lost', listener: (hold: Hold) => void): this;
}

/** The locks of a process: one connection to one of the brokers, from which it moves to another when it has to. */
export class Client {
  private constructor();
  /**
   * brokers: URLs of ioredis or host:port (port 5625), several of them in the order of preference. Rejected with Disconnected
   * when none can be reached; later it connects anew by itself.
   */
  static connect(brokers: string | readonly string[], options?: ClientOptions): Promise<Client>;
  /** Takes the lock of this name, or all of several. Rejected with NotGranted, Refused, Disconnected or the signal's reason. */
  lock(names: string | readonly string[], options?: LockOptions): Promise<Hold>;
  /** Runs the body with the lock, and gives it back. Rejected with LockLost when it was lost inside. */
  use<T>(names: string | readonly string[], options: UseOptions, body: (hold: Hold) => T | Promise<T>): Promise<T>;
  /** Ends the connection. What is held is released, but for locks with a lease, which end with that. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
