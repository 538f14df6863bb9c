// S-31: a run in one file, opened from disk: the same page, read-only, without a server.
import { accessible, assert, browse, cli, letter, replies, write } from './harness.mjs';
import fs from 'node:fs';
import { pathToFileURL } from 'node:url';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
const file = `${process.env.WORK}/letter.html`;
const said = cli('export', 'letter', '--html', file);
assert.equal(said.run_id, 'letter');
assert.ok(fs.statSync(file).size < 1_000_000);
const events = cli('show', 'letter', '--events').events;
await browse({ url: pathToFileURL(file).href, origin: 'null' }, async (page) => {
  await page.locator('.bar[data-node="write"]').click();
  await page.locator('.panel h2', { hasText: 'write' }).waitFor();
  await page.locator('.panel .node-call .markdown', { hasText: 'We are sorry' }).first().waitFor();
  assert.equal(Number(await page.locator('.scrub input[type=range]').getAttribute('max')), events.length);
  const n = events.find((event) => event.kind === 'node_finished' && event.node === 'judge').n;
  await page.locator('.scrub-n input').fill(String(n));
  await page.locator('.scrub-n input').press('Enter');
  await page.locator('.bar[data-node="write"].is-future').waitFor();
  // What it had used by then, as the engine folds it; nothing that came later.
  const then = cli('show', 'letter', '--at', String(n)).usage;
  await page.locator('.run-facts', { hasText: `${then.input_tokens + then.output_tokens} tokens` }).waitFor();
  await page.locator('.panel.beside .facts div', { hasText: 'Model calls' }).locator('dd', { hasText: /^2$/ }).waitFor({ state: 'attached' });
  assert.equal(await page.getByText('The postage comes back').count(), 0);
  await page.locator('.threads [role=tab]', { hasText: 'advice' }).click();
  await page.locator('.thread .message', { hasText: 'Refund the postage' }).first().waitFor();
  // Which of a node's calls was shown a message.
  await page.locator('.bar[data-node="judge"]').click();
  await page.locator('.thread .message .seen.calls').first().waitFor();
  assert.equal(await page.locator('.run-acts').count(), 0, 'nothing can be done to it');
  await accessible(page, 'a run in a file');
});
