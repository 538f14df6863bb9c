// S-28: hostile text in every view neither runs nor loads anything nor misleads.
import { assert, browse, cli, fits, serve, write } from './harness.mjs';

const evil = `<img src="http://127.0.0.1:9/x" onerror="alert(1)"><script>alert(2)</script> [click](javascript:alert(3)) ![pic](http://127.0.0.1:9/y) \u001b[31mred\u0007 user\u202Etxt.exe\u200b \u{e0041} "><svg onload=alert(4)>`;
const document = write('evil.json', {
  task: evil,
  nodes: [
    { node_type: 'llm-first', node_id: 'a', node_name: evil, thread_id: 'main', task_prompt: evil + ' ' + 'x'.repeat(20_000) },
    { node_type: 'llm-first', node_id: 'b', node_name: 'b', thread_id: 'side', task_prompt: 'Again: {{a.output}}' },
  ],
});
const script = write('evil.yaml', `- when: {}\n  reply: { text: ${JSON.stringify(evil + '\n\n```\n' + evil + '\n```\n\n| a | b |\n|---|---|\n| ' + evil.replaceAll('|', '') + ' | 2 |\n').replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))} }\n`);
cli('run', document, '--script', script, '--run-id', 'evil');
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  for (const [hash, sign] of [['#/runs', 'a.run-row'], ['#/run/evil?node=b&tab=side', '.thread .message'], ['#/run/evil?tab=%3D', '.result'], ['#/diff?a=evil&b=evil', '.compare']]) {
    await page.goto(`${server.origin}/${hash}`);
    await page.locator(sign).first().waitFor();
    await page.waitForLoadState('networkidle').catch(() => {});
    const made = await page.evaluate(() => ({ elements: document.querySelectorAll('main img, main script, main iframe, main object, main [onload], main [onerror]').length, links: [...document.querySelectorAll('a')].filter((a) => /^(javascript|data|vbscript):/i.test(a.href)).length }));
    assert.deepEqual(made, { elements: 0, links: 0 }, `${hash} makes elements of a text`);
    await fits(page, hash);
  }
  await page.goto(`${server.origin}/#/run/evil?tab=side`);
  await page.locator('.message .odd').first().waitFor();
  const odd = await page.locator('.message .odd').allTextContents();
  for (const sign of ['ESC', 'BEL', 'RLO', 'ZWSP', 'U+E0041']) assert.ok(odd.includes(sign), `${sign} is shown: ${odd}`);
});
await server.stop();
