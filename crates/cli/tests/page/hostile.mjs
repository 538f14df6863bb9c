// S-28: hostile text in every field of every view neither runs nor loads anything nor misleads.
import { assert, browse, cli, fits, serve, until, write } from './harness.mjs';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const work = process.env.WORK;
const evil = `<img src="http://127.0.0.1:9/x" onerror="alert(1)"><script>alert(2)</script> [click](javascript:alert(3)) ![pic](http://127.0.0.1:9/y) \u001b[31mred\u0007 user\u202Etxt.exe\u200b \u{e0041} "><svg onload=alert(4)>`;
/** As a text of YAML that any reader takes. */
const quoted = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const document = write('evil.json', {
  task: evil,
  inputs: { [evil.slice(0, 60)]: { type: 'string', description: evil, default: evil } },
  nodes: [
    { node_type: 'llm-first', node_id: 'a', node_name: evil, thread_id: 'main', task_prompt: evil + ' ' + 'x'.repeat(20_000) },
    { node_type: 'llm-first', node_id: 'b', node_name: 'b', thread_id: 'side', task_prompt: 'Again: {{a.output}}' },
  ],
});
const script = write('evil.yaml', `- when: { node: refused }\n  reply: { error: { status: 400, message: ${quoted(evil)} } }\n- when: {}\n  reply: { text: ${quoted(evil + '\n\n```\n' + evil + '\n```\n\n| a | b |\n|---|---|\n| ' + evil.replaceAll('|', '') + ' | 2 |\n')} }\n`);
cli('run', document, '--script', script, '--run-id', 'evil');
// A question with hostile words, and a run that fails with them.
const asks = write('asks.json', {
  name: evil,
  description: evil,
  nodes: [
    { id: 'start', type: 'START' },
    { id: 'ask', type: 'USER_INTERACTION', config: { kind: 'edit', prompt: evil, value: evil, schema: { type: 'string', title: evil, description: evil } } },
    { id: 'end', type: 'END' },
  ],
  edges: [{ from: 'start', to: 'ask' }, { from: 'ask', to: 'end' }],
});
cli('run', asks, '--run-id', 'asks');
const fails = write('fails.json', { task: evil, nodes: [{ node_type: 'llm-first', node_id: 'refused', node_name: evil, thread_id: 'main', task_prompt: evil }] });
assert.equal(cli('run', fails, '--script', script, '--run-id', 'fails').status, 'failed');
// A million letters in one line: what was asked, and what came of it.
const long = write('long.json', { task: 't', nodes: [{ node_type: 'llm-first', node_id: 'long', node_name: 'long', thread_id: 'main', task_prompt: 'W'.repeat(1_000_000) }] });
cli('run', long, '--script', write('long.yaml', `- when: {}\n  reply: { text: ${'A'.repeat(1_000_000)} }\n`), '--run-id', 'long');
// A tool that a model wrote, with hostile words in all that it says of itself.
fs.cpSync(path.join(process.env.EXAMPLES, 'dates'), path.join(work, 'dates'), { recursive: true });
const dates = fs.readFileSync(path.join(work, 'dates/script.yaml'), 'utf8');
fs.writeFileSync(path.join(work, 'dates/evil.yaml'), dates.replaceAll('Reads a date', '<img src=http://127.0.0.1:9/z onerror=alert(5)> Reads a date'));
cli('run', 'dates/agent.json', '--script', 'dates/evil.yaml', '--run-id', 'tools');
// A document whose name is hostile, as far as a file can have it.
const named = '<img src=x onerror=alert(6)>.json';
fs.mkdirSync(path.join(work, 'documents'));
fs.copyFileSync(document, path.join(work, 'documents', named));

/** Nothing was made of a text but text. */
const holds = async (page, where) => {
  const made = await page.evaluate(() => ({ elements: document.querySelectorAll('main img, main script, main iframe, main object, main embed, main [onload], main [onerror], dialog img, dialog script').length, links: [...document.querySelectorAll('a')].filter((a) => /^(javascript|data|vbscript):/i.test(a.href)).length }));
  assert.deepEqual(made, { elements: 0, links: 0 }, `${where} makes elements of a text`);
  await fits(page, where);
};
const server = await serve(['--script', script, '--documents', 'documents']);
const views = [
  ['#/runs', 'a.run-row .run-fault'], ['#/run/evil?node=a&tab=main', '.panel .node-call'], ['#/run/evil?node=b&tab=side', '.thread .message'], ['#/run/evil?tab=%3D', '.result'], ['#/run/evil?at=9', '.tag.then'], ['#/run/fails?node=refused', '.panel .fault'],
  ['#/run/asks', '.ask textarea'], ['#/inbox', '.ask textarea'], ['#/library', '.tool-list a'], ['#/library/parse_date', '.tool'], ['#/evolution', 'main'], ['#/diff?a=evil&b=fails', '.diff-message'],
  ['#/run/long?tab=%3D', '.result .more'], ['#/run/long?node=long&tab=main', '.panel .node-call'], ['#/run/long?tab=main', '.thread .message .more'], ['#/diff?a=evil&b=long', '.diff-message'],
];
for (const [width, scheme] of [[1280, 'light'], [360, 'dark']]) {
  await browse(server, async (page) => {
    for (const [hash, sign] of views) {
      await page.goto(`${server.origin}/${hash}`);
      await page.locator(sign).first().waitFor();
      await holds(page, `${hash} at ${width}`);
    }
    // What is folded, too: a page that lays out for minutes has no place for anything.
    await page.goto(`${server.origin}/#/run/long?tab=%3D`);
    await page.locator('.result .more').click();
    await holds(page, 'a million letters');
    await page.goto(`${server.origin}/#/run/evil?node=a`);
    await page.locator('.panel').getByText('Request as sent').click();
    await page.locator('.panel').getByText('Definition').click();
    await holds(page, 'a request');
    await page.goto(`${server.origin}/#/run/evil?tab=side`);
    await page.locator('.message .odd').first().waitFor();
    const odd = await page.locator('.message .odd').allTextContents();
    for (const sign of ['ESC', 'BEL', 'RLO', 'ZWSP', 'U+E0041']) assert.ok(odd.includes(sign), `${sign} is shown: ${odd}`);
    // A fork's dialog with the text to edit, and what it would run.
    await page.locator('.thread .message', { hasText: 'Again:' }).getByText('Edit').first().click();
    await page.locator('dialog textarea').first().waitFor();
    await page.locator('dialog').getByText('What would run?').click();
    await page.locator('dialog .plan, dialog .problem').first().waitFor();
    await holds(page, 'a fork');
    await page.keyboard.press('Escape');
    // A document, by its name and as it is written, with its findings and its form.
    await page.goto(`${server.origin}/#/start`);
    const names = page.locator('main select').first();
    await until('the document is there', async () => (await names.locator('option').count()) === 2);
    await names.selectOption({ index: 1 });
    await until('its text is there', async () => (await page.locator('.editor textarea').inputValue()).includes('node_type'));
    await page.locator('.start-inputs .fields .field').first().waitFor();
    await holds(page, 'a form');
    await page.locator('.editor textarea').fill(`{ "task": ${JSON.stringify(evil)}, "nodes": [ { "node_id": ${JSON.stringify(evil)} } ], ${JSON.stringify(evil)}: 1 }`);
    await page.locator('.found .at-error').first().waitFor();
    await holds(page, 'findings');
  }, { width, scheme });
}
await server.stop();
// And in a file.
const file = `${work}/evil.html`;
cli('export', 'evil', '--html', file);
await browse({ url: pathToFileURL(file).href, origin: 'null' }, async (page) => {
  await page.locator('.thread .message').first().waitFor();
  await holds(page, 'a run in a file');
});
