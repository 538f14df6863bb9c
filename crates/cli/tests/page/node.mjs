// S-24, S-23: a node's request as it was sent, what came back, whom it waited for and whose messages it saw; and who saw a message.
import { assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
const both = write('both.json', { task: 'Say it twice.', nodes: ['first', 'second'].map((id) => ({ node_type: 'llm-first', node_id: id, node_name: id, thread_id: 'main', task_prompt: `The ${id} time.` })) });
cli('run', both, '--script', write('both.yaml', "- when: {}\n  reply: { text: 'Said.' }\n"), '--run-id', 'both');
assert.deepEqual(cli('explain', 'both', '--node', 'second').nodes[0].messages_from, ['first']);
// What a node sends into another thread is another message there, and whoever has seen that one has not seen this one.
const sent = write('sent.json', { task: 'Judge, and answer.', nodes: [
  { node_type: 'llm-first', node_id: 'judge', node_name: 'Judge', thread_id: 'side', task_prompt: 'Who is right?', data_out: true, data_out_thread: 'main', data_out_description: 'Our view: ' },
  { node_type: 'llm-first', node_id: 'draft', node_name: 'Draft', thread_id: 'main', task_prompt: 'Write it.' },
] });
cli('run', sent, '--script', script, '--run-id', 'sent');
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/run/letter`);
  await page.locator('.bar[data-node="write"]').click();
  const panel = page.locator('.panel:not(.beside)');
  await panel.locator('h2', { hasText: 'write' }).waitFor();
  await panel.getByText('Request as sent').click();
  await panel.locator('.json', { hasText: 'Our view: Refund the postage.' }).first().waitFor();
  await panel.locator('.node-call .markdown', { hasText: 'We are sorry' }).first().waitFor();
  // Where the document defines it.
  await panel.locator('.definition .place', { hasText: /letter\.json:\d+/ }).waitFor();
  // As `explain` has it.
  const told = cli('explain', 'letter', '--node', 'write').nodes[0];
  assert.ok(told.waited_for.length > 0);
  const waits = await panel.locator('.waits li').allTextContents();
  for (const { node, why } of told.waited_for) assert.ok(waits.some((text) => text.includes(node) && text.includes(why)), `it waited for ${node}: ${waits}`);
  await page.locator('.flow .arrow.a-read.near').first().waitFor({ state: 'attached' });
  // Which of its calls was shown a message: all that stands before its own reply.
  const seen = page.locator('.thread .message', { has: page.locator('.seen.calls') });
  await seen.first().waitFor();
  assert.ok((await seen.allTextContents()).every((text) => !text.includes('We are sorry')), 'its own reply it was not shown');
  // From node to node, by the keyboard as well.
  await page.locator('.lanes-box').focus();
  await page.keyboard.press('ArrowUp');
  await panel.locator('h2', { hasText: 'judge' }).waitFor();
  await page.waitForURL(/node=judge/);
  await page.keyboard.press('Escape');
  await panel.locator('h2').waitFor({ state: 'detached' });
  // Where no node is chosen, going to an event asks nothing about whom nodes waited for; where one is, about that one.
  await page.goto(`${server.origin}/#/run/letter`);
  await page.locator('.flow .arrow.a-read').first().waitFor({ state: 'attached' });
  const asked = [];
  page.on('request', (request) => request.url().includes('/explain') && asked.push(new URL(request.url()).searchParams));
  const goTo = async (event) => {
    const shown = page.waitForResponse((response) => response.url().includes('/events?') && response.url().includes(`after=${event - 1}`));
    await page.locator('.scrub-n input').fill(String(event));
    await page.locator('.scrub-n input').press('Enter');
    await shown;
  };
  await goTo(12);
  assert.deepEqual(asked.map(String), []);
  await page.locator('.bar[data-node="judge"]').click();
  await until('the chosen node is asked about', () => asked.length > 0);
  await goTo(14);
  await until('it is asked about as of the event', () => asked.some((one) => one.get('at') === '14'));
  for (const one of asked) assert.deepEqual(one.getAll('node'), ['judge']);
  await page.goto(`${server.origin}/#/run/both`);
  await page.locator('.thread .message', { hasText: 'Said.' }).first().locator('.seen button', { hasText: 'second' }).waitFor();
  // Who has seen a message is told message by message, as `explain` says what each call was shown.
  const shown = ['judge', 'draft'].map((node) => ({ node, shown: cli('explain', 'sent', '--node', node).nodes[0].saw.flatMap((call) => call.shown) }));
  const all = [];
  for (const thread of ['side', 'main']) {
    await page.goto(`${server.origin}/#/run/sent?tab=${thread}`);
    const { messages } = await page.evaluate(async (name) => (await fetch(`/v1/runs/sent/threads/${name}`)).json(), thread);
    const expected = messages.map((message) => shown.filter((one) => one.node !== message.node && one.shown.some(([from, to]) => from <= message.number && message.number <= to)).map((one) => one.node));
    await until(`the messages of ${thread} were seen by ${JSON.stringify(expected)}`, async () => {
      const seen = await page.locator('.thread .message').evaluateAll((all) => all.map((one) => [...one.querySelectorAll('.seen:not(.calls) button')].map((button) => button.textContent)));
      return JSON.stringify(seen) === JSON.stringify(expected);
    });
    all.push(...messages.map((message, i) => `${thread} ${message.node ?? 'task'} ${expected[i]}`));
  }
  assert.ok(all.includes('side judge ') && all.includes('main judge draft'), `${all}`);
});
await server.stop();
