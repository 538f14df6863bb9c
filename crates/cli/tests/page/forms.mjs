// S-40: a form sends what it shows, and nothing while a field of it is invalid; a default stands in its field. S-25: cards of the inbox are told apart.
import { accessible, assert, browse, cli, fits, serve, until, write } from './harness.mjs';

const script = write('replies.yaml', "- when: {}\n  reply: { text: 'Said.' }\n");
const inputs = { topic: { type: 'string' }, sources: { type: 'array', default: ['wiki', 'gov', 'news', 'papers', 'blogs', 'books'] }, depth: { type: 'integer', default: 3 }, note: { type: 'string', default: 'none' } };
write('documents/research.json', { task: 'Research.', inputs, nodes: [{ node_type: 'llm-first', node_id: 'a', node_name: 'a', thread_id: 'main', task_prompt: 'About {{topic}}, from {{sources}}, {{depth}}, {{note}}.' }] });
const properties = { name: { type: 'string' }, age: { type: 'integer', minimum: 0 }, tags: { type: 'array' }, member: { type: 'boolean' }, share: { type: 'number' } };
const asks = { name: 'asks', nodes: [{ id: 'start', type: 'START' }, { id: 'who', type: 'USER_INTERACTION', config: { kind: 'answer', prompt: 'Who are you?', schema: { type: 'object', properties, required: ['name'], additionalProperties: false } } }, { id: 'end', type: 'END', config: { output: '{{who.output}}' } }], edges: [{ from: 'start', to: 'who' }, { from: 'who', to: 'end' }] };
const value = { steps: ['one', 'two'] };
const edits = { name: 'edits', nodes: [{ id: 'start', type: 'START' }, { id: 'text', type: 'USER_INTERACTION', config: { kind: 'edit', prompt: 'Right?', value } }, { id: 'end', type: 'END', config: { output: '{{text.output}}' } }], edges: [{ from: 'start', to: 'text' }, { from: 'text', to: 'end' }] };
for (const id of ['first', 'second']) cli('run', write('asks.json', asks), '--run-id', id);
cli('run', write('edits.json', edits), '--run-id', 'edits');
const server = await serve(['--script', script, '--documents', 'documents']);
const isFocused = (page, field) => until('the invalid field has the focus', () => field.evaluate((one) => document.activeElement === one));

await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/start?document=research`);
  const sources = page.getByLabel('sources');
  const depth = page.getByLabel('depth');
  const start = page.locator('.start-form button.primary');
  await page.locator('.start-form button.primary:enabled').waitFor();
  assert.deepEqual(JSON.parse(await sources.inputValue()), inputs.sources.default, 'the default stands in its field');
  assert.deepEqual([await depth.inputValue(), await page.getByLabel('note').inputValue()], ['3', 'none']);
  await page.getByLabel('topic').fill('Tides');
  for (const [typed, why] of [['[ "wiki", "gov"', 'not valid JSON'], ['{"a": 1}', 'JSON list'], ['[{"a": 1, "a": 2}]', 'occurs twice'], ['[9007199254740993]', 'too many digits']]) {
    await sources.fill(typed);
    await page.locator('.field', { has: sources }).getByText(why).waitFor();
    await start.click();
    await isFocused(page, sources);
    assert.equal(await sources.getAttribute('aria-invalid'), 'true');
    assert.equal(await sources.inputValue(), typed, 'it stays as it was typed');
  }
  await accessible(page, 'a form with an invalid field');
  await sources.fill('[ "wiki", "gov" ]');
  // A default that is taken away is not sent behind the person's back.
  await depth.fill('');
  await start.click();
  await isFocused(page, depth);
  await depth.fill('1.5');
  await start.click();
  await isFocused(page, depth);
  assert.equal(cli('runs').runs.length, 3, 'nothing is begun while something is invalid');
  await depth.fill('4');
  await page.getByLabel('note').fill('');
  await start.click();
  await until('the run is shown', () => /#\/run\//.test(page.url()));
  await page.locator('.thread .message, .result').getByText('About Tides, from ["wiki","gov"], 4, .').first().waitFor();

  // An optional field that is invalid is not left out in silence; what nobody filled in is.
  await page.goto(`${server.origin}/#/run/first`);
  const tags = page.getByLabel('tags');
  const share = page.getByLabel('share');
  await page.getByLabel('name').fill('Ann');
  await share.pressSequentially('1.05');
  assert.equal(await share.inputValue(), '1.05', 'what is typed stays');
  await tags.fill('["a", ');
  const send = page.locator('.ask button.primary');
  await send.click();
  await isFocused(page, tags);
  await tags.fill('["a", "b"]');
  await send.click();
  await page.locator('.run-title .status.is-completed').waitFor();
  assert.deepEqual(cli('show', 'first').output, { name: 'Ann', tags: ['a', 'b'], share: 1.05 });

  // A value that is edited stays of its type, and goes back to what it was.
  await page.goto(`${server.origin}/#/run/edits`);
  const text = page.locator('.ask textarea');
  assert.deepEqual(JSON.parse(await text.inputValue()), value);
  await text.fill('{');
  await send.click();
  await isFocused(page, text);
  await page.locator('.ask').getByText('As it was').click();
  await until('it is as it was', async () => JSON.stringify(JSON.parse(await text.inputValue())) === JSON.stringify(value));
  await text.fill('{"steps": []}');
  await send.click();
  await page.locator('.run-title .status.is-completed').waitFor();
  assert.deepEqual(cli('show', 'edits').output, { steps: [] });
});

// S-25: the form is not clipped, and its button is in reach, in large and in small windows.
cli('run', 'asks.json', '--run-id', 'third');
for (const [width, height] of [[1440, 900], [1024, 500], [360, 640]])
  await browse(server, async (page) => {
    await page.goto(`${server.origin}/#/run/third`);
    const send = page.locator('.ask button.primary');
    await send.waitFor();
    const room = async (which) => page.locator(which).evaluate((one) => ((box) => [box.top, box.bottom])(one.getBoundingClientRect()));
    await until('the button is in the window', async () => ((box) => box[0] >= 0 && box[1] <= height)(await room('.ask button.primary')));
    assert.ok(await send.evaluate((one) => ((box) => one.contains(document.elementFromPoint(box.left + 5, box.top + 5)))(one.getBoundingClientRect())), 'nothing lies above the button');
    if (height === 900) {
      const [[, end], [, last]] = [await room('.run-asks'), await room('.ask .fields')];
      assert.ok(last <= end, `all of the form is seen: ${last} of ${end}`);
    }
    await fits(page, `a form in a window of ${width}`);
    await page.goto(`${server.origin}/#/inbox`);
    for (const run of ['second', 'third']) await page.locator('.ask-run', { hasText: run }).getByText('workflow').waitFor();
    assert.equal(await page.locator('.ask header', { hasText: 'asked' }).count(), 2, 'each says when it was asked');
    await fits(page, `the inbox in a window of ${width}`);
  }, { width, height });
await server.stop();
