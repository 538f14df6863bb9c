// E-43: a person tells an agent something while it works, and it hears that before its next step.
import { accessible, assert, browse, cli, serve, write } from './harness.mjs';

write('selvedge.toml', `[tools.command.slow]
description = "d"
command = ["sh", "-c", "while [ ! -e go ]; do sleep 0.1; done"]
input_schema = {type = "object"}
effects = "read"
`);
write('agent.json', JSON.stringify({ query: 'Which month is it about?', tools: ['slow'] }));
write('script.yaml', `
- {when: {node: manager}, reply: {json: {required_tool_names: [], tool_usage_guidance: "", tool_requests: []}}}
- {when: {node: executor, contains: it is April}, reply: {text: It is about April.}}
- {when: {node: executor, nth: 1}, reply: {tool_calls: [{name: slow, arguments: {}}]}}
- {when: {node: executor}, reply: {text: It is about March.}}
- {when: {node: judge}, reply: {json: {status: FINISH, reason: a month}}}
- {when: {node: integrate, contains: about April}, reply: {json: {final_answer: April, reasoning_summary: ""}}}
- {when: {node: integrate}, reply: {json: {final_answer: March, reasoning_summary: ""}}}
`);
const server = await serve(['--script', 'script.yaml', '--documents', '.']);
await browse(server, async (page) => {
  await page.locator('.filters, main').first().waitFor();
  const status = await page.evaluate(async () => (await fetch('/v1/documents/agent/runs', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"run_id":"month"}' })).status);
  assert.equal(status, 201);
  await page.goto(`${server.origin}/#/run/month`);
  const form = page.locator('form.say');
  await form.locator('input').fill('No, it is April.');
  await accessible(page, 'a run that hears messages');
  await form.locator('button').click();
  await page.waitForFunction(() => document.querySelector('form.say input')?.value === '');
  write('go', '');
  await page.locator('.run-title .status.is-completed').waitFor();
  await form.waitFor({ state: 'detached' });
  await page.goto(`${server.origin}/#/run/month?tab=executor`);
  await page.locator('section.threads').getByText('No, it is April.').first().waitFor();
});
assert.equal(cli('show', 'month').output, 'April');
await server.stop();
