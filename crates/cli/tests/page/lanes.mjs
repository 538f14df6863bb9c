// S-22: names of lanes and times of the axis have the room that there is, and no time is said twice.
import { assert, browse, cli, serve, until, write } from './harness.mjs';
import fs from 'node:fs';
import path from 'node:path';

const names = ['the-complaint-of-the-customer', 'what-the-terms-of-trade-say', 'and-a-third-one'];
const nodes = names.flatMap((thread, i) => [0, 1].map((k) => ({ node_type: 'llm-first', node_id: `n${i}${k}`, node_name: 'Node', thread_id: thread, task_prompt: `Say ${i}${k}.` })));
const script = write('replies.yaml', "- when: {}\n  reply: { text: 'Said.' }\n");
cli('run', write('lanes.json', { task: 'Say.', nodes }), '--script', script, '--run-id', 'lanes');
const seers = ['b', 'c', 'd'].map((id) => ({ node_type: 'llm-first', node_id: id, node_name: id, thread_id: 'main', task_prompt: `Say ${id}.` }));
cli('run', write('seen.json', { task: 'Say.', nodes: seers }), '--script', script, '--run-id', 'seen');
const flow = [
  ['start', 'START', {}], ['each', 'LOOP_START', { count: 3, limit: 3 }], ['split', 'FORK', { forkStrategy: 'parallel', forkPathIds: ['left', 'right'], childNodeIds: ['a', 'b'] }],
  ['a', 'LLM', { prompt: 'Left.' }], ['b', 'LLM', { prompt: 'Right.' }], ['joined', 'JOIN', { forkPathIds: ['left', 'right'], joinStrategy: 'ALL_COMPLETED', mainPathId: 'left' }],
  ['each_end', 'LOOP_END', { loop: 'each' }], ['end', 'END', {}],
].map(([id, type, config]) => ({ id, type, config }));
const edges = [['start', 'each'], ['each', 'split'], ['a', 'joined'], ['b', 'joined'], ['joined', 'each_end'], ['each_end', 'end']].map(([from, to]) => ({ from, to }));
cli('run', write('rounds.json', { name: 'rounds', nodes: flow, edges }), '--script', script, '--run-id', 'rounds');
const apart = ([id, type, config]) => ({ id, type, config: type === 'LLM' ? { ...config, thread: `notes of ${id}` } : config });
const once = flow.filter(({ type }) => !type.startsWith('LOOP')).map(({ id, type, config }) => apart([id, type, config]));
cli('run', write('apart.json', { name: 'apart', nodes: once, edges: [['start', 'split'], ['a', 'joined'], ['b', 'joined'], ['joined', 'end']].map(([from, to]) => ({ from, to })) }), '--script', script, '--run-id', 'apart');
const server = await serve();
fs.cpSync(path.join(process.env.EXAMPLES, 'dates'), path.join(process.env.WORK, 'dates'), { recursive: true });
cli('run', 'dates/agent.json', '--script', 'dates/script.yaml', '--run-id', 'dates');
await browse(server, async (page) => {
  // Paths are those of a bar's own visit, and not of all iterations of the loop around it.
  await page.goto(`${server.origin}/#/run/dates`);
  await page.locator('.bar .fill').first().waitFor();
  const titles = await page.locator('.bar').evaluateAll((all) => all.map((bar) => bar.title));
  const joins = titles.flatMap((title) => [...title.matchAll(/(\d+) of the (\d+) paths that its join takes \(of (\d+)\)/g)]);
  assert.ok(joins.length > 1);
  for (const [said, n, , of] of joins) assert.ok(Number(n) <= Number(of), said);
  // Paths of a fork leave it in each round of the loop around it, and come back in each: the main one as the conversation, the other with what it gave.
  await page.goto(`${server.origin}/#/run/rounds`);
  const arrows = async (kind) => page.locator(`.flow .arrow.a-${kind}`).count();
  await until('each round has its arrows', async () => (await arrows('sent')) === 3);
  // Six to the paths and three from the main one; two are the loop's own.
  assert.equal(await arrows('taken'), 3 * 3 + 2);
  // So do paths that say all they say in threads of their own: the lane of the path is where its conversation would go on.
  await page.goto(`${server.origin}/#/run/apart`);
  await until('paths without a word in their conversation have arrows', async () => (await arrows('taken')) === 3 && (await arrows('sent')) === 1);
  await page.goto(`${server.origin}/#/run/lanes`);
  await page.locator('.lane-label').nth(2).waitFor();
  const labels = await page.locator('.lane-label span').evaluateAll((all) => all.map((one) => [one.textContent, one.scrollWidth <= one.clientWidth]));
  assert.deepEqual(labels, names.map((name) => [name, true]), 'no name is cut where there is room');
  for (const scale of ['Time', 'Steps']) {
    await page.locator('.lanes-tools .seg button', { hasText: scale }).click();
    await page.locator('.lanes-tools .seg button[aria-pressed=true]', { hasText: scale }).waitFor();
    const times = await page.locator('.axis-in span').allTextContents();
    assert.equal(times[0], '0');
    times.reduce((before, time) => (assert.notEqual(time, before, `${scale} says ${times}`), time));
  }
  // Names stay where they are when lanes are zoomed and moved, and what was in the middle stays there.
  await page.getByLabel('Zoom in').click();
  const box = page.locator('.lanes-box');
  await until('it can be moved', () => box.evaluate((element) => element.scrollWidth > element.clientWidth + 50 && element.scrollLeft > 20));
  await box.evaluate((element) => (element.scrollLeft = element.scrollWidth));
  await until('names stay', async () => {
    const [edge, label] = [await box.boundingBox(), await page.locator('.lane-label').first().boundingBox()];
    return Math.abs(label.x - edge.x) < 3 && (await page.locator('.lane-label span').first().isVisible());
  });
  // Nothing stands before a comma.
  await page.goto(`${server.origin}/#/run/seen?tab=main`);
  const seen = page.locator('.thread .seen', { hasText: ',' }).first();
  await until('it is said who saw a message', async () => (await seen.count()) === 1);
  const gap = await seen.evaluate((line) => {
    const comma = [...line.childNodes].find((node) => node.nodeType === 3 && node.data.startsWith(','));
    const range = document.createRange();
    range.selectNode(comma);
    return range.getBoundingClientRect().left - comma.previousSibling.getBoundingClientRect().right;
  });
  assert.ok(gap < 1.5, `a comma stands ${gap} px behind its word`);
});
await server.stop();
