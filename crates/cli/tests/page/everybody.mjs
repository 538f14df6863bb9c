// S-29: every view in light and dark, from 360 px to 4K, in English and Chinese: nothing serious for axe-core, nothing to scroll sideways for.
import { accessible, assert, browse, cli, fits, letter, replies, serve, write } from './harness.mjs';
import fs from 'node:fs';
import path from 'node:path';

const work = process.env.WORK;
const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
// Code in long lines, and a table that is wider than the window.
const long = `x = ${'many + '.repeat(60)}1`;
const columns = (cell) => `|${`${cell}|`.repeat(40)}`;
const wide = write('wide.yaml', `- when: {}\n  reply: { text: ${JSON.stringify(['```', long, '```', '', columns('head'), columns('---'), columns('cell'), '', '| one | two |', '|---|', '| is no table |'].join('\n'))} }\n`);
cli('run', write('wide.json', { task: 'wide', nodes: [{ node_type: 'llm-first', node_id: 'one', node_name: 'One', thread_id: 'main', task_prompt: 'Say it.' }] }), '--script', wide, '--run-id', 'wide');
fs.cpSync(path.join(process.env.EXAMPLES, 'release-notes'), path.join(work, 'notes'), { recursive: true });
fs.mkdirSync(path.join(work, 'notes/out'), { recursive: true });
cli('run', 'notes/flow.json', '--script', 'notes/script.yaml', '--allow-write', 'notes/out', '--run-id', 'notes');
fs.cpSync(path.join(process.env.EXAMPLES, 'dates'), path.join(work, 'dates'), { recursive: true });
cli('run', 'dates/agent.json', '--script', 'dates/script.yaml', '--run-id', 'dates');
const wordsOf = (language) => import(`data:text/javascript,${encodeURIComponent(fs.readFileSync(new URL(`../../../server/page/js/${language}.js`, import.meta.url), 'utf8'))}`);
const server = await serve(['--script', script]);
const views = [['#/runs', 'a.run-row'], ['#/run/letter?node=judge&tab=facts', '.panel .node-call'], ['#/run/letter?at=9', '.tag.then'], ['#/run/notes', '.ask'], ['#/run/dates', '.bar.open'], ['#/run/wide', '.markdown table'], ['#/inbox', '.ask'], ['#/start', '.editor'], ['#/library', '.library'], ['#/library/parse_date', '.tool'], ['#/evolution', 'main'], ['#/diff?a=letter&b=notes', '.compare']];
for (const [width, height, scheme, language] of [[1280, 900, 'light', 'en'], [360, 780, 'dark', 'zh'], [3840, 2160, 'dark', 'en']]) {
  await browse(server, async (page) => {
    if (language === 'zh') await page.locator('.topbar .ghost').first().click();
    assert.equal(await page.locator('html').getAttribute('lang'), language);
    // Chinese has all words, with the same things in them, and its own punctuation.
    const { english, chinese } = Object.assign({}, ...(await Promise.all(['english', 'chinese'].map(wordsOf))));
    assert.deepEqual(Object.keys(english).filter((key) => !chinese[key]), []);
    for (const [key, text] of Object.entries(chinese)) {
      const gaps = (words) => [...new Set(words.match(/\{\w+\}/g))].sort();
      assert.deepEqual(gaps(text), gaps(english[key] ?? ''), key);
      assert.doesNotMatch(text, /[\u4e00-\u9fff}][,:;?!()]|[,:;?!()][\u4e00-\u9fff{]/, key);
    }
    for (const [hash, sign] of views) {
      await page.goto(`${server.origin}/${hash}`);
      await page.locator(sign).first().waitFor();
      await fits(page, `${hash} at ${width}`);
      if (hash === '#/run/wide') {
        const code = page.locator('.thread .markdown pre').first();
        assert.ok(await code.evaluate((pre) => pre.scrollWidth <= pre.clientWidth), 'a long line of code is seen whole');
        assert.equal(await page.locator('.thread .markdown').filter({ has: page.locator('table') }).locator('table').count(), 1, 'a head and rules of different length are no table');
      }
      // What the server has a word for is said in the language of the page.
      if (hash.endsWith('at=9') && language === 'zh') await page.locator('.scrub-said', { hasText: /[\u4e00-\u9fff]/ }).waitFor();
      await accessible(page, `${hash} in ${scheme} at ${width}`);
    }
  }, { width, height, scheme });
}
await server.stop();
