// S-04, S-20: the server is killed under the page and started anew; the page goes on without a gap, and the run with it.
import { assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const script = write('replies.yaml', replies(4000));
const token = write('token', 'a-token-of-the-test');
const first = await serve(['--script', script, '--token-file', token]);
const { port } = new URL(first.url);
let server = first;
await browse(first, async (page) => {
  const made = await page.evaluate(async (body) => (await fetch('/v1/runs', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json(), { document: JSON.stringify(letter), run_id: 'long' });
  assert.equal(made.run_id, 'long');
  await page.goto(`${first.origin}/#/run/long`);
  await page.locator('.bar.is-running[data-node="gather"]').waitFor();
  await first.stop();
  await page.locator('.banner', { hasText: 'reached' }).waitFor();
  server = await serve(['--script', script, '--token-file', token], `127.0.0.1:${port}`);
  assert.equal(new URL(server.url).port, port);
  await page.locator('.banner').waitFor({ state: 'detached' });
  await page.locator('.run-title .status.is-completed').waitFor();
  const events = cli('show', 'long', '--events').events.length;
  await until('the page has all events', async () => Number(await page.locator('.scrub input[type=range]').getAttribute('max')) === events);
}, { quiet: ['Failed to load resource', 'ERR_CONNECTION', 'ERR_INCOMPLETE', 'ERR_EMPTY_RESPONSE'] });
await server.stop();
