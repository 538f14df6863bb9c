// S-30: of a large run only what is seen is there, and bars too narrow to be told apart are one.
import { assert, browse, cli, serve, until, write } from './harness.mjs';

// Five lanes with so many bars that none has room, whatever each takes, and forty more.
const many = 3000;
const nodes = Array.from({ length: many }, (_, i) => ({ node_type: 'tool-first', node_id: `n${i}`, node_name: `N${i}`, thread_id: `t${i < many - 40 ? i % 5 : i - many + 45}`, initial_tool_name: 'list_files', initial_tool_args: { path: '.' } }));
const document = write('large.json', { task: 'much', nodes });
const done = cli('run', document, '--run-id', 'large');
assert.equal(done.status, 'completed', JSON.stringify(done.fault));
const server = await serve();
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/run/large`);
  await page.locator('.heap').first().waitFor();
  const there = await page.locator('.bar, .heap').count();
  assert.ok(there < 1500, `${there} bars are there`);
  assert.ok((await page.locator('.lane').count()) < 40, 'lanes that are not seen are not there');
  const scrubber = page.locator('.scrub input[type=range]');
  const most = Number(await scrubber.getAttribute('max'));
  await page.locator('.scrub-n input').fill(String(Math.floor(most / 2)));
  await page.locator('.scrub-n input').press('Enter');
  await page.locator('.heap.is-future').first().waitFor();
  await page.locator('.lanes-box').evaluate((box) => (box.scrollTop = box.scrollHeight));
  await until('the last lane', async () => (await page.locator('.lane-label', { hasText: 't44' }).count()) === 1);
});
await server.stop();
