// S-25, S-26: what a document or a question requires is not sent empty; what nobody fills in and need not be is left out.
import { accessible, assert, browse, cli, serve, until, write } from './harness.mjs';

const script = write('replies.yaml', "- when: {}\n  reply: { text: 'Said.' }\n");
const inputs = { place: { type: 'string' }, nights: { type: 'integer' }, note: { type: 'string', default: 'none' } };
write('documents/travel.json', { task: 'Plan.', inputs, nodes: [{ node_type: 'llm-first', node_id: 'a', node_name: 'a', thread_id: 'main', task_prompt: 'Where: {{place}}, {{nights}}' }] });
const schema = { type: 'object', properties: { place: { type: 'string' }, rail: { type: 'object', properties: { seat: { type: 'string' } }, required: ['seat'] } }, required: ['place'] };
const asks = { name: 'asks', nodes: [{ id: 'start', type: 'START' }, { id: 'where', type: 'USER_INTERACTION', config: { kind: 'answer', prompt: 'Where?', schema } }, { id: 'end', type: 'END' }], edges: [{ from: 'start', to: 'where' }, { from: 'where', to: 'end' }] };
cli('run', write('asks.json', asks), '--run-id', 'asks');
const server = await serve(['--script', script, '--documents', 'documents']);
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/start?document=travel`);
  const start = page.locator('.start-form button.primary');
  await page.locator('.start-inputs input').nth(2).waitFor();
  await page.locator('.start-form button.primary:enabled').waitFor();
  await start.click();
  const missing = page.locator('.start-inputs input:invalid');
  assert.equal(await missing.count(), 2, 'two inputs are required');
  assert.equal(await page.evaluate(() => document.activeElement?.matches('.start-inputs input:invalid')), true, 'the first that is missing has the focus');
  await accessible(page, 'a form with what is required');
  assert.equal(cli('runs').runs.length, 1, 'nothing is begun without it');
  await page.getByLabel('place').fill('Nordhafen');
  await page.getByLabel('nights').fill('3');
  await start.click();
  await until('the run is shown', () => /#\/run\//.test(page.url()));
  await page.locator('.thread .message, .result').getByText('Where: Nordhafen, 3').first().waitFor();
  // The same of a question; what it does not require is not made up.
  await page.goto(`${server.origin}/#/inbox`);
  const send = page.locator('.ask button.primary');
  await send.click();
  assert.equal(await page.locator('.ask input:invalid').count(), 1);
  await page.locator('.ask').getByLabel('place').fill('Nordhafen');
  await send.click();
  await page.locator('.nothing').waitFor();
});
await until('it is answered', () => cli('show', 'asks').status !== 'waiting');
await server.stop();
