// S-26: a fork with an edited message, what it would cost, and both runs side by side.
import { accessible, assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
// Two runs in which an equal message follows one that is not, and a fork that was made while a call was under way.
const both = ['gather', 'write'].map((id) => ({ node_type: 'llm-first', node_id: id, node_name: id, thread_id: 'main', task_prompt: `Do: ${id}` }));
cli('run', write('both.json', { task: 'both', nodes: both }), '--script', script, '--run-id', 'both');
const said = cli('show', 'both', '--events').events.filter((event) => event.kind === 'appended' && event.node === 'gather').at(-1).n;
cli('fork', 'both', '--set-message', `${said}=It came on the 4th.`, '--script', script, '--run-id', 'both-edited');
const asked = cli('show', 'letter', '--events').events.find((event) => event.kind === 'requested' && event.node === 'gather').n;
cli('fork', 'letter', '--at', String(asked), '--script', script, '--run-id', 'cut');
const before = cli('runs').runs.length;
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/run/letter?tab=facts`);
  const message = page.locator('.thread .message', { hasText: 'The parcel left on the 3rd' });
  await message.getByText('Edit').click();
  const dialog = page.locator('dialog');
  const text = dialog.locator('textarea').first();
  await text.waitFor();
  await text.fill('The parcel left on the 3rd and came on the 4th.');
  await dialog.getByText('What would run?').click();
  await dialog.locator('.plan .w-run').first().waitFor();
  assert.equal(cli('runs').runs.length, before, 'nothing is recorded by a look');
  await accessible(page, 'the dialog of a fork');
  await dialog.locator('button.primary').click();
  await until('the fork is shown', () => /#\/run\//.test(page.url()) && !page.url().includes('#/run/letter'));
  await page.locator('.run-title .status.is-completed').waitFor();
  await page.locator('.run-facts a', { hasText: 'Compare' }).click();
  await page.locator('.diff ins', { hasText: 'checked' }).first().waitFor();
  await page.locator('.diff del', { hasText: 'sorry' }).first().waitFor();
  await accessible(page, 'two runs side by side');
  // An equal message is none that differs, whatever stands before it; columns say whose they are.
  await page.goto(`${server.origin}/#/diff?a=both&b=both-edited`);
  const differs = page.locator('.thread-diff .diff-message');
  await until('one message differs', async () => (await differs.count()) === 1);
  assert.deepEqual(await differs.locator('.side-name').allTextContents(), ['both', 'both-edited']);
  await differs.locator('ins', { hasText: '4th' }).waitFor();
  const equal = page.locator('.thread-diff .more');
  assert.equal(await equal.count(), 2, 'what is equal before it, and behind it');
  await equal.last().click();
  await page.locator('.diff-message', { hasText: 'Do: write' }).waitFor();
  // A node that was cut off has ended where it began anew.
  await page.goto(`${server.origin}/#/run/cut`);
  const bars = page.locator('.bar[data-node="gather"]');
  await until('it began twice', async () => (await bars.count()) === 2);
  const [first, second] = await bars.evaluateAll((all) => all.map((bar) => ({ is: bar.className, left: bar.getBoundingClientRect().left, right: bar.getBoundingClientRect().right })));
  assert.match(first.is, /is-stopped/);
  assert.ok(first.right <= second.left + 1, `${first.right} is before ${second.left}`);
  // Another document begins anew, so that no event is asked for.
  await page.locator('.run-acts').getByText('Fork').click();
  const from = dialog.getByLabel('From event');
  await from.waitFor();
  await dialog.getByText('Another document').click();
  await from.waitFor({ state: 'detached' });
  await dialog.getByText('The same document after all').click();
  await from.waitFor();
});
assert.equal(cli('runs').runs.length, before + 1);
await server.stop();
