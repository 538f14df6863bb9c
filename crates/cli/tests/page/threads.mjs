// S-23: a long thread is read: only what is seen is there, all of it can be reached, calls have their results.
import { assert, browse, cli, serve, until, write } from './harness.mjs';

const many = 400;
write('tools/count_on.py', `
from pydantic import BaseModel

__TOOL_META__ = {"name": "count_on", "description": "Says the number again.", "dependencies": [], "effects": "pure"}


class InputModel(BaseModel):
    number: int


def run(input):
    return {"said": "number %d" % input.number}
`);
const nodes = Array.from({ length: many }, (_, i) => ({ node_type: 'tool-first', node_id: `n${i}`, node_name: `N${i}`, thread_id: 'long', initial_tool_name: 'count_on', initial_tool_args: { number: i } }));
const document = write('long.json', { task: 'count', nodes });
const done = cli('run', document, '--tools', 'tools', '--run-id', 'long');
assert.equal(done.status, 'completed', JSON.stringify(done.fault));
const messages = done.threads.long.length;
assert.ok(messages >= 2 * many);
const server = await serve();
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/run/long?tab=long`);
  await page.locator('.thread .message', { hasText: 'count' }).first().waitFor();
  assert.ok((await page.locator('.thread .v-row').count()) < 60, 'only what is seen is there');
  const box = page.locator('.virtual.thread');
  await until('the end is reached', async () => {
    await box.evaluate((element) => (element.scrollTop = element.scrollHeight));
    return (await page.locator('.thread .message.r-tool', { hasText: `number ${many - 1}` }).count()) > 0;
  });
  const last = page.locator('.thread .message.r-tool', { hasText: `number ${many - 1}` }).last();
  assert.equal((await last.locator('.from').textContent()).trim(), `n${many - 1}`);
  assert.ok((await page.locator('.thread .v-row').count()) < 60, 'only what is seen is there');
  await page.locator('.thread .message .call', { hasText: 'count_on' }).last().waitFor();
  // What is far from what is seen is not kept, and there again when it is seen.
  await until('the beginning is reached again', async () => {
    await box.evaluate((element) => (element.scrollTop = 0));
    return (await page.locator('.thread .message.r-tool', { hasText: 'number 0"' }).count()) > 0;
  });
});
await server.stop();
