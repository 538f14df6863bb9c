// S-22, S-26: text is shown as it comes, in the thread that it will be in; and a run that goes on is cancelled.
import { assert, browse, cli, serve, until, write } from './harness.mjs';

const words = Array.from({ length: 400 }, (_, i) => `word${i}`).join(' ');
const script = write('slow.yaml', `- when: {}\n  reply: { text: "${words}", delay_ms: 240000 }\n`);
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  const document = { task: 'Tell it at length.', nodes: [{ node_type: 'llm-first', node_id: 'tell', node_name: 'Tell', thread_id: 'tale', task_prompt: 'Begin.' }] };
  const made = await page.evaluate(async (body) => (await fetch('/v1/runs', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json(), { document: JSON.stringify(document), run_id: 'tale' });
  assert.equal(made.run_id, 'tale');
  await page.goto(`${server.origin}/#/run/tale?tab=tale`);
  const text = page.locator('.thread .message.streaming', { hasText: 'word0' });
  await text.waitFor();
  const first = (await text.textContent()).length;
  await until('more text has come', async () => (await text.textContent()).length > first);
  assert.ok(!(await text.textContent()).includes('word399'), 'not all of it is there yet');
  await page.locator('.run-acts button.danger').click();
  await page.locator('.sure button.danger').click();
  await page.locator('.run-title .status.is-cancelled').waitFor();
  await text.waitFor({ state: 'detached' });
});
assert.equal(cli('show', 'tale').status, 'cancelled');
await server.stop();
