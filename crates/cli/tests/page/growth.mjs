// S-30: a run that goes on takes the memory of what is known of it, and of no picture that was drawn before.
import { assert, browse, serve, until, write } from './harness.mjs';

// What a page knows of an event takes 130 to 230 bytes; where it kept each picture that was 1,300 to 1,900, and ten elements a second.
const BYTES = 600;
const ELEMENTS = 60;
const script = write('fine.yaml', '- when: {}\n  reply: { text: "fine", delay_ms: 40 }\n');
const nodes = [
  { id: 'start', type: 'START' },
  { id: 'round', type: 'LOOP_START', config: { while: 'true', limit: 10000 } },
  { id: 'write', type: 'LLM', config: { prompt: 'Round {{index}}: write.' } },
  { id: 'empty', type: 'CONTEXT', config: { op: 'clear' } },
  { id: 'good', type: 'LOOP_END', config: { loop: 'round' } },
  { id: 'end', type: 'END', config: { output: 'done' } },
];
const edges = nodes.slice(1).map((node, i) => ({ from: nodes[i].id, to: node.id }));
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.goto(server.origin);
  const body = { document: JSON.stringify({ name: 'loop', task: 'Go round.', nodes, edges }), run_id: 'loop' };
  const made = await page.evaluate(async (body) => (await fetch('/v1/runs', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json(), body);
  assert.equal(made.run_id, 'loop', JSON.stringify(made));
  await page.goto(`${server.origin}/#/run/loop`);
  const browser = await page.context().newCDPSession(page);
  await browser.send('Performance.enable');
  await browser.send('HeapProfiler.enable');
  const scrubber = page.locator('.scrub input[type=range]');
  const events = async () => Number(await scrubber.getAttribute('max'));
  /** What there is once all that nobody holds is gone. */
  const taken = async (from) => {
    await until(`${from} events are shown`, async () => (await events()) >= from);
    await browser.send('HeapProfiler.collectGarbage');
    await browser.send('HeapProfiler.collectGarbage');
    const { metrics } = await browser.send('Performance.getMetrics');
    const of = (name) => metrics.find((one) => one.name === name).value;
    return { events: await events(), bytes: of('JSHeapUsedSize'), elements: of('Nodes') };
  };
  const first = await taken(2000);
  const then = await taken(first.events + 3000);
  const grown = (then.bytes - first.bytes) / (then.events - first.events);
  assert.ok(grown < BYTES, `each event took ${grown.toFixed(0)} bytes`);
  assert.ok(then.elements - first.elements < ELEMENTS, `${first.elements} elements became ${then.elements}`);
  // A thread that is emptied in each round shows what it says now, though it has no more messages than before (E-09).
  const rounds = async () => Number(/Round (\d+): write/.exec(await page.locator('.thread .message').first().textContent())?.[1]);
  await until('the thread has what is said now', async () => (await rounds()) > then.events / 20);
});
await server.stop();
