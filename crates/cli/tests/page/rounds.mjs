// S-26: two runs side by side list what ran again in every iteration. S-23: whose models were shown a message does not depend on the picture.
import { assert, browse, cli, serve, until, write } from './harness.mjs';

const script = write('replies.yaml', "- when: {}\n  reply: { text: 'Said.' }\n");
const loop = {
  name: 'rounds',
  nodes: [
    { id: 'start', type: 'START' }, { id: 'each', type: 'LOOP_START', config: { over: ['a', 'b', 'c', 'd'], limit: 4 } }, { id: 'say', type: 'LLM', config: { prompt: 'Say {{item}}.' } },
    { id: 'each_end', type: 'LOOP_END', config: { loop: 'each' } }, { id: 'end', type: 'END' },
  ],
  edges: [['start', 'each'], ['each', 'say'], ['say', 'each_end'], ['each_end', 'end']].map(([from, to]) => ({ from, to })),
};
cli('run', write('rounds.json', loop), '--script', script, '--run-id', 'rounds');
const said = cli('show', 'rounds', '--events').events.filter((event) => event.kind === 'appended')[1].n;
cli('fork', 'rounds', '--set-message', `${said}=Said otherwise.`, '--script', script, '--run-id', 'edited');
const nodes = Array.from({ length: 130 }, (_, i) => ({ node_type: 'llm-first', node_id: `n${i}`, node_name: `n${i}`, thread_id: 'main', task_prompt: `Do ${i}.` }));
cli('run', write('long.json', { task: 'All.', nodes }), '--script', script, '--run-id', 'long');
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/diff?a=rounds&b=edited`);
  const again = page.locator('.diff .waits li b');
  await until('all that ran again is listed', async () => (await again.count()) === 3);
  assert.deepEqual(await again.allTextContents(), ['each#1/say', 'each#2/say', 'each#3/say']);

  await page.goto(`${server.origin}/#/run/long?tab=main`);
  const message = page.locator('.thread .message', { hasText: 'Do 0.' }).first();
  await message.waitFor();
  const seen = message.locator('.seen');
  await until('all readers are counted', async () => /^seen by n1, n2, n3, n4 \+125$/.test((await seen.textContent()) ?? ''));
  for (let i = 0; i < 6; i++) await page.getByLabel('Zoom in').click();
  await page.waitForTimeout(1500);
  assert.equal(await seen.textContent(), 'seen by n1, n2, n3, n4 +125');
});
await server.stop();
