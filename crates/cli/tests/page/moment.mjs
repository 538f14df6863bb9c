// S-22: at an earlier event nothing is told that came later, and what is said in a loop is said in the thread of the frame around it.
import { assert, browse, cli, serve, write } from './harness.mjs';

const nodes = [
  { id: 'start', type: 'START' },
  { id: 'f', type: 'FORK', config: { forkStrategy: 'parallel', forkPathIds: ['a', 'b'], childNodeIds: ['slow', 'round'] } },
  { id: 'slow', type: 'LLM', config: { prompt: 'Slowly.' } },
  { id: 'round', type: 'LOOP_START', config: { count: 2, limit: 2 } },
  { id: 'say', type: 'LLM', config: { prompt: 'Round {{index}}.' } },
  { id: 'over', type: 'LOOP_END', config: { loop: 'round' } },
  { id: 'j', type: 'JOIN', config: { forkPathIds: ['a', 'b'], joinStrategy: 'ANY_COMPLETED' } },
  { id: 'end', type: 'END' },
];
const edges = [['start', 'f'], ['f', 'slow'], ['f', 'round'], ['slow', 'j'], ['round', 'say'], ['say', 'over'], ['over', 'j'], ['j', 'end']].map(([from, to]) => ({ from, to }));
const script = write('replies.yaml', '- when: {node: slow}\n  reply: { text: "Late.", delay_ms: 60000 }\n- when: {}\n  reply: { text: "Said." }\n');
const run = cli('run', write('moment.json', { name: 'moment', task: 'Go.', nodes, edges }), '--script', script, '--run-id', 'moment');
assert.equal(run.status, 'completed', JSON.stringify(run.fault));
const said = cli('show', 'moment', '--events').events.find((event) => event.kind === 'node_finished' && /round#1/.test(event.node));
const server = await serve();
await browse(server, async (page) => {
  const at = (query) => page.goto(`${server.origin}/#/run/moment?${query}`);
  await at(`node=${encodeURIComponent(said.node)}`);
  await page.locator('.panel .node-call').first().waitFor();
  await page.locator('.threads [role=tab][aria-selected=true]', { hasText: 'f[b]/main' }).waitFor();
  await page.locator('.lane-label small', { hasText: 'cancelled' }).waitFor();
  // Fresh, and gone back to.
  for (const fresh of [true, false]) {
    if (fresh) await page.goto('about:blank');
    await at(`at=2&node=${encodeURIComponent(said.node)}`);
    await page.locator('.tag.then').waitFor();
    await page.locator('.panel .definition').waitFor();
    assert.equal(await page.locator('.panel .node-call, .panel .problem, .lane-label small').count(), 0, 'nothing came yet');
    await at(`node=${encodeURIComponent(said.node)}`);
    await page.locator('.panel .node-call').first().waitFor();
  }
});
await server.stop();
