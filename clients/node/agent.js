// The agent of this package: see clients/scenarios/README.md. usage: node agent.js
import readline from 'node:readline';
import * as holdfast from './index.js';

let client;
const holds = new Map();
const cancels = new Map();
const say = (event, hold, more) => process.stdout.write(`${JSON.stringify({ event, hold, ...more })}\n`);

const does = {
  async connect({ brokers, timeout }) {
    client = await holdfast.Client.connect(brokers, { timeout });
    say('connected');
  },

  async lock({ hold: as, names, do: _, name, max_hold: maxHold, ...options }) {
    const cancel = new AbortController();
    delete options.expect;
    cancels.set(as, cancel);
    try {
      const hold = await client.lock(names, { ...options, ...(maxHold && { maxHold }), signal: cancel.signal });
      for (const event of ['jeopardy', 'safe', 'lost']) {
        hold.on(event, () => say(event, as, event === 'lost' ? { text: hold.lost } : {}));
      }
      holds.set(as, hold);
      say('granted', as, { tokens: hold.tokens });
    } catch (error) {
      if (error instanceof holdfast.NotGranted) say('timeout', as);
      else if (error.name === 'AbortError') say('cancelled', as);
      else say('error', as, { text: error.message });
    }
  },

  cancel({ hold }) { cancels.get(hold).abort(); },

  async unlock({ hold: as }) {
    try {
      await holds.get(as).release();
      say('released', as);
    } catch (error) {
      if (!(error instanceof holdfast.LockLost)) throw error;
      say('notheld', as);
    }
  },

  state({ hold: as }) {
    const hold = holds.get(as);
    say('state', as, { held: hold?.held ?? false, tokens: hold?.tokens ?? [], remaining: hold?.remaining ?? 0 });
  },

  async nested({ hold: as, name, reentrant }) {
    try {
      await client.use(name, { reentrant }, async (outer) => {
        await client.use(name, { reentrant }, () => {});
        outer.check();
      });
      say('entered', as);
    } catch (error) {
      if (!(error instanceof holdfast.AlreadyHeld)) throw error;
      say('refused', as);
    }
  },

  async close() {
    await client.close();
    say('closed');
  },
};

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line);
  does[request.do](request);
}).on('close', () => process.exit());
