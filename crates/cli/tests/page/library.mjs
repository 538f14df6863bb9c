// S-27: a tool with its code, its tests and its versions, and what names of tools mean here.
import { accessible, assert, browse, cli, serve } from './harness.mjs';
import fs from 'node:fs';
import path from 'node:path';

const work = process.env.WORK;
fs.cpSync(path.join(process.env.EXAMPLES, 'dates'), path.join(work, 'dates'), { recursive: true });
cli('run', 'dates/agent.json', '--script', 'dates/script.yaml');
const versions = cli('tools', 'history', 'parse_date').versions.length;
const server = await serve();
await browse(server, async (page) => {
  await page.keyboard.press('b');
  await page.locator('.tool-list a', { hasText: 'parse_date' }).click();
  await page.locator('.tool', { hasText: 'class InputModel' }).waitFor();
  await page.locator('.tool [role=tab]', { hasText: 'Versions' }).click();
  await page.locator('.lineage li').nth(versions - 1).waitFor();
  // Why each is there, in words, and of the chosen one whole.
  const why = await page.locator('.lineage small').allTextContents();
  assert.ok(why.every((one) => one && !one.includes('{')) && why.some((one) => /^mends [0-9a-f]{12}$/.test(one)), `${why}`);
  const reason = cli('tools', 'history', 'parse_date').versions.find((one) => one.reason.length > 100).reason;
  await page.locator('.lineage li button', { hasText: reason.slice(0, 40) }).click();
  await page.locator('.lineage-why', { hasText: reason }).waitFor();
  await page.locator('.lineage li button').first().click();
  await page.locator('.lineage-why', { hasText: why[0] }).waitFor();
  await accessible(page, 'a tool');
  await page.locator('.tool [role=tab]', { hasText: 'Changes' }).click();
  await page.locator('.unified .add').first().waitFor();
  await page.locator('.tool [role=tab]', { hasText: 'Tests' }).click();
  await page.locator('.tool .node-call', { hasText: 'Output' }).first().waitFor();
  await accessible(page, 'the tests of a tool');
  await page.getByRole('link', { name: 'Catalogue' }).click();
  await page.locator('.catalogue tr', { hasText: 'parse_date' }).filter({ hasText: 'library' }).waitFor();
  await page.locator('.catalogue tr', { hasText: 'read_file' }).filter({ hasText: 'built-in' }).waitFor();
  await accessible(page, 'the catalogue');
});
await server.stop();
