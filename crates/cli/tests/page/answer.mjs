// S-25: a person edits a text in place and approves a write; both while the server drives the run.
import { accessible, assert, browse, cli, serve } from './harness.mjs';
import fs from 'node:fs';
import path from 'node:path';

const work = process.env.WORK;
const root = process.env.EXAMPLES;
for (const file of fs.readdirSync(path.join(root, 'release-notes'))) {
  const from = path.join(root, 'release-notes', file);
  if (fs.statSync(from).isFile()) fs.copyFileSync(from, path.join(work, file));
}
fs.mkdirSync(path.join(work, 'out'), { recursive: true });
cli('run', 'flow.json', '--script', 'script.yaml', '--allow-write', 'out', '--run-id', 'notes');
const server = await serve(['--script', 'script.yaml', '--allow-write', 'out']);
await browse(server, async (page) => {
  await page.locator('.badge').waitFor();
  await page.locator('a.run-row .tag.is-asks', { hasText: '1' }).waitFor();
  await page.keyboard.press('i');
  const ask = page.locator('.ask').first();
  await ask.locator('textarea').waitFor();
  await accessible(page, 'the inbox');
  await ask.locator('textarea').fill('- Edited on the page.');
  await ask.locator('button.primary').click();
  const approval = page.locator('.ask.k-approve');
  await approval.waitFor();
  await approval.getByText('Edited on the page.').first().waitFor();
  await approval.locator('button.primary').click();
  await page.locator('.nothing').waitFor();
  await page.goto(`${server.origin}/#/run/notes`);
  await page.locator('.run-title .status.is-completed').waitFor();
});
assert.equal(cli('show', 'notes').status, 'completed');
assert.match(fs.readFileSync(path.join(work, 'out/NOTES.md'), 'utf8'), /Edited on the page\./);
await server.stop();
