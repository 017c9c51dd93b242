// Typed use of the package, compiled strictly and run. usage: node types.js URL
import { Client, Hold, LockLost, NotGranted } from 'holdfast';

const client: Client = await Client.connect([process.argv[2]], { timeout: 2000 });
let kept: Hold;
{
  await using lock = await client.lock('types', { wait: 1000 });
  const token: number = lock.token;
  kept = lock;
  console.log(lock.held && token > 0);
  try {
    await client.lock('types', { wait: 0 });
  } catch (error) {
    console.log(error instanceof NotGranted);
  }
}
console.log(kept.held);
try {
  kept.check();
} catch (error) {
  console.log(error instanceof LockLost);
}
const tokens: readonly number[] = await client.use(['types', 'more'], { shared: true }, (lock) => lock.tokens);
console.log(tokens.length);
// @ts-expect-error: there is no such option
await client.lock('types', { wiat: 1 }).catch((error: unknown) => console.log(error instanceof TypeError));
await client.close();
