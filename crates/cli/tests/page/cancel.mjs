// S-41: the page asks before it cancels, says what is lost, and offers what is possible afterwards. C-31: what runs is counted as on the command line.
import { accessible, assert, browse, cli, fits, serve, until, write } from './harness.mjs';
import { spawnSync } from 'node:child_process';

const script = write('slow.yaml', "- when: { node: slow }\n  reply: { text: 'late', delay_ms: 240000 }\n- when: {}\n  reply: { text: 'Said.' }\n");
const flow = (name, nodes, edges) => ({ name, nodes, edges: edges.map(([from, to, when]) => ({ from, to, ...(when ? { when } : {}) })) });
const loop = flow('rounds', [
  { id: 'start', type: 'START' }, { id: 'each', type: 'LOOP_START', config: { over: [1, 2], limit: 2 } }, { id: 'sure', type: 'USER_INTERACTION', config: { kind: 'approve', prompt: 'Go on?' } },
  { id: 'each_end', type: 'LOOP_END', config: { loop: 'each' } }, { id: 'end', type: 'END' },
], [['start', 'each'], ['each', 'sure'], ['sure', 'each_end'], ['each_end', 'end']]);
const branch = flow('branch', [
  { id: 'start', type: 'START' }, { id: 'set', type: 'VARIABLE', config: { name: 'n', value: 1 } }, { id: 'low', type: 'VARIABLE', config: { name: 'm', value: 1 } }, { id: 'high', type: 'VARIABLE', config: { name: 'm', value: 2 } }, { id: 'end', type: 'END' },
], [['start', 'set'], ['set', 'high', 'n > 1'], ['set', 'low'], ['low', 'end'], ['high', 'end']]);
cli('run', write('loop.json', loop), '--run-id', 'loop');
cli('run', write('branch.json', branch), '--run-id', 'branch');
const page = (run) => spawnSync(process.env.SELVEDGE, ['show', run], { cwd: process.env.WORK, encoding: 'utf8' }).stdout;
const server = await serve(['--script', script]);
const counts = (page) => page.locator('.run-facts .counts').innerText();

await browse(server, async (at) => {
  // A loop in which a person is asked waits, and is not counted beside the question.
  await at.goto(`${server.origin}/#/run/loop`);
  const bar = at.locator('.bar[data-node="each"]');
  await bar.waitFor();
  assert.match(await bar.getAttribute('class'), /is-asks/);
  await until('the question is counted once', async () => /^1 waiting for you\s+1 ran$/.test((await counts(at)).trim()));
  assert.match(page('loop'), /1 node ran, 1 asks a person, 1 not started/);
  // The keyboard alone: the first step asks, Escape and the second button leave the run.
  const cancel = at.locator('.run-acts').getByText('Cancel', { exact: true });
  await cancel.focus();
  await at.keyboard.press('Enter');
  const sure = at.locator('.sure');
  await sure.getByText('Open questions that close: 1.').waitFor();
  await accessible(at, 'the second step of a cancel');
  await at.keyboard.press('Escape');
  await sure.waitFor({ state: 'detached' });
  assert.ok(await cancel.evaluate((one) => document.activeElement === one), 'the focus is back');
  await at.keyboard.press('Enter');
  await sure.waitFor();
  await at.keyboard.press('Enter');
  await sure.waitFor({ state: 'detached' });
  assert.equal(cli('show', 'loop').status, 'waiting', 'nothing has happened yet');
  await at.keyboard.press('Enter');
  await sure.waitFor();
  await at.keyboard.press('Shift+Tab');
  await at.keyboard.press('Enter');
  await at.locator('.run-title .status.is-cancelled').waitFor();
  // What the API refuses is not offered, and nobody is waited for.
  await at.locator('.run-acts button.primary', { hasText: 'Fork' }).waitFor();
  assert.equal(await at.locator('.run-acts').getByText('Resume').count(), 0);
  assert.equal(await at.locator('.run-acts').getByText('Cancel').count(), 0);
  assert.equal(await at.locator('.ask').count(), 0);
  await until('no question is counted', async () => !(await counts(at)).includes('waiting'));
  await at.locator('.badge').waitFor({ state: 'detached' });
  assert.match(page('loop'), /1 node ran, 1 not started, 1 cancelled/);
  // A branch that was not taken is called so.
  await at.goto(`${server.origin}/#/run/branch`);
  await until('the branch is told of', async () => /1 on branches not taken\s+4 ran/.test(await counts(at)));
  assert.match(page('branch'), /4 nodes ran, 1 on a branch not taken/);
});
assert.equal(cli('show', 'loop').status, 'cancelled');

// Calls under way are told of, also in a small window.
await browse(server, async (at) => {
  const document = { task: 'Wait.', nodes: [{ node_type: 'llm-first', node_id: 'slow', node_name: 'slow', thread_id: 'main', task_prompt: 'Begin.' }] };
  await at.evaluate(async (body) => (await fetch('/v1/runs', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json(), { document: JSON.stringify(document), run_id: 'slow' });
  await at.goto(`${server.origin}/#/run/slow`);
  await at.locator('.run-acts').getByText('Cancel', { exact: true }).click();
  await at.locator('.sure').getByText('Calls under way, whose results are lost: 1.').waitFor();
  await fits(at, 'the second step of a cancel');
  await at.locator('.sure button.danger').click();
  await at.locator('.run-title .status.is-cancelled').waitFor();
  await until('nothing runs', async () => !(await counts(at)).includes('running'));
}, { width: 360, height: 640 });
await server.stop();
