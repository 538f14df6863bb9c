// S-24: a node's request as it was sent, and what came back.
import { assert, browse, cli, letter, replies, serve, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/run/letter`);
  await page.locator('.bar[data-node="write"]').click();
  const panel = page.locator('.panel');
  await panel.locator('h2', { hasText: 'write' }).waitFor();
  await panel.getByText('Request as sent').click();
  await panel.locator('.json', { hasText: 'Our view: Refund the postage.' }).first().waitFor();
  await panel.locator('.node-call .markdown', { hasText: 'We are sorry' }).first().waitFor();
  // From node to node, by the keyboard as well.
  await page.locator('.lanes-box').focus();
  await page.keyboard.press('ArrowUp');
  await panel.locator('h2', { hasText: 'judge' }).waitFor();
  assert.match(page.url(), /node=judge/);
  await page.keyboard.press('Escape');
  await panel.locator('h2').waitFor({ state: 'detached' });
});
await server.stop();
