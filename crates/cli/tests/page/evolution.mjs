// S-27, V-11: an evolution's measures, with their intervals, by batch; what it began is listed for it, and not among the runs that people began.
import { accessible, assert, browse, cli, fits, serve, until } from './harness.mjs';
import fs from 'node:fs';
import path from 'node:path';

const root = path.join(process.env.EXAMPLES, 'evolve');
fs.cpSync(root, path.join(process.env.WORK, 'evolve'), { recursive: true });
const tasks = fs.readFileSync(path.join(root, 'tasks.jsonl'), 'utf8').trim().split('\n').slice(0, 8);
fs.writeFileSync(path.join(process.env.WORK, 'evolve/few.jsonl'), tasks.join('\n') + '\n');
cli('evolve', 'evolve/few.jsonl', '--script', 'evolve/script.yaml', '--batch-size', '4', '--concurrency', '2', '--score', 'numeric', '--out', 'evolved');
const measures = fs.readFileSync(path.join(process.env.WORK, 'evolved/measures.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
assert.equal(measures.length, 2);
const percent = (value) => `${(value * 100).toFixed(1)} %`;
const server = await serve();
await browse(server, async (page) => {
  await until('the two batches, and no task of theirs', async () => (await page.locator('a.run-row').count()) === 2);
  await page.goto(`${server.origin}/#/evolution`);
  const rows = page.locator('.batches tbody tr');
  await until('both batches are shown', async () => (await rows.count()) === 2);
  const total = measures[1].total;
  const accuracy = page.locator('.chart').first();
  await until('the accuracy of all, with its interval', async () => {
    const said = await accessibleText(accuracy);
    return [total.accuracy.value, total.accuracy.low, total.accuracy.high].every((value) => said.includes(percent(value)));
  });
  await page.locator('.chart', { hasText: 'EGL' }).locator('.num', { hasText: total.egl.toFixed(3) }).waitFor();
  await page.locator('.chart', { hasText: 'Success' }).locator('.num', { hasText: percent(total.succeeded / total.calls) }).waitFor();
  const cells = await rows.first().locator('td').allTextContents();
  const own = measures[0].own;
  assert.deepEqual(cells.slice(3, 7).map(Number), [own.tools.created, own.tools.reused, own.tools.enhanced, own.tools.merged]);
  await accessible(page, 'an evolution');
  await fits(page, 'an evolution');
  await rows.first().locator('td a').click();
  await until('the tasks of the first batch', async () => (await page.locator('a.run-row').count()) === own.done);
});
await server.stop();

async function accessibleText(chart) {
  return (await chart.locator('figcaption').textContent()) ?? '';
}
