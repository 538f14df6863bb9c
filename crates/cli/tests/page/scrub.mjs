// S-22, S-23, S-24: the scrubber goes to an event, and everything shows that moment as the engine folds it; a thread is read.
import { assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
const events = cli('show', 'letter', '--events').events;
const two = ['gather', 'write'].map((id) => ({ node_type: 'llm-first', node_id: id, node_name: id, thread_id: 'main', task_prompt: `Do: ${id}` }));
cli('run', write('two.json', { task: 'two', nodes: two }), '--script', script, '--run-id', 'two');
const gathered = cli('show', 'two', '--events').events.find((event) => event.kind === 'node_finished' && event.node === 'gather').n;
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.locator('.run-row', { hasText: 'letter' }).first().click();
  const scrubber = page.locator('.scrub input[type=range]');
  await scrubber.waitFor();
  assert.equal(Number(await scrubber.getAttribute('max')), events.length);
  for (const wanted of ['completed', 'appended', 'node_finished']) {
    const { n } = events.filter((event) => event.kind === wanted && event.node === 'judge').at(-1);
    await page.locator('.scrub-n input').fill(String(n));
    await page.locator('.scrub-n input').press('Enter');
    await page.locator('.tag.then', { hasText: String(n) }).waitFor();
    const then = cli('show', 'letter', '--at', String(n));
    for (const [name, messages] of Object.entries(then.threads)) {
      if (!messages.length) continue;
      await until(`thread ${name} has ${messages.length} messages at event ${n}`, async () =>
        (await page.locator('.threads [role=tab]', { hasText: name }).locator('small').textContent().catch(() => '')) === String(messages.length));
    }
    const judged = events.some((event) => event.kind === 'node_finished' && event.node === 'judge' && event.n <= n);
    await page.locator(`.bar[data-node="judge"].is-${judged ? 'ran' : 'running'}`).waitFor();
    await page.locator('.bar[data-node="write"].is-future').waitFor();
  }
  // What is typed stays, whatever is drawn meanwhile.
  await page.locator('.scrub-n input').fill('9');
  await scrubber.evaluate((range) => {
    range.value = '7';
    range.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await page.locator('.tag.then', { hasText: '7' }).waitFor();
  assert.equal(await page.locator('.scrub-n input').inputValue(), '9');
  await page.locator('.scrub-n input').press('Enter');
  await page.locator('.tag.then', { hasText: '9' }).waitFor();
  // By the keyboard, a step at a time.
  const before = Number(await scrubber.inputValue());
  await page.locator('.run-title h1').click();
  await page.keyboard.press('[');
  await until('one event less', async () => Number(await scrubber.inputValue()) === before - 1);
  await page.keyboard.press('l');
  await page.locator('.tag.then').waitFor({ state: 'detached' });
  await page.locator('.threads [role=tab]', { hasText: 'letter' }).click();
  const said = page.locator('.thread .message', { hasText: 'We are sorry' });
  await said.waitFor();
  assert.equal((await said.locator('.from').textContent()).trim(), 'write', 'a message says which node said it');
  await said.locator('.from').click();
  await page.locator('.panel h2', { hasText: 'write' }).waitFor();
  await page.locator('.panel .node-call').first().waitFor();
  await page.locator('.panel').getByText('Request as sent').click();
  await page.locator('.panel .json', { hasText: 'Our view: Refund the postage.' }).first().waitFor();
  // What a node has used is known when it is done.
  const done = events.find((event) => event.kind === 'node_finished' && event.node === 'judge').n;
  const used = page.locator('.panel:not(.beside) .facts div', { hasText: 'tokens' });
  await page.goto(`${server.origin}/#/run/letter?node=judge&at=${done}`);
  await used.locator('dd', { hasText: '63' }).waitFor();
  await page.goto(`${server.origin}/#/run/letter?node=judge&at=${done - 1}`);
  await page.locator('.panel .status.is-running').waitFor();
  assert.equal(await used.count(), 0);
  // Who has seen a message is said of that moment, too; and a message is its head with what it says below.
  const seers = async (/** @type {string} */ at) => {
    await page.goto(`${server.origin}/#/run/two?tab=main${at}`);
    await page.locator('.thread .message').first().waitFor();
    return page.locator('.thread .seen button').allTextContents();
  };
  await until('in the end it is said who has seen it', async () => (await seers('')).includes('write'));
  await until('at an earlier moment nobody has who had not begun', async () => !(await seers(`&at=${gathered}`)).includes('write'));
  const [head, text] = await page.locator('.thread .message').first().evaluate((message) => [...message.children].slice(0, 2).map((child) => child.getBoundingClientRect().toJSON()));
  assert.ok(text.top >= head.bottom - 1 && Math.abs(text.left - head.left) < 2, 'what a message says stands below its head');
});
await server.stop();
