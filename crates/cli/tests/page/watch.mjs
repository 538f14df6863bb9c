// S-22, S-26: a document with a mistake is mended at its place and started; the run is watched while it goes on.
import { accessible, assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const script = write('replies.yaml', replies(1500));
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.keyboard.press('n');
  const text = page.locator('.editor textarea');
  const wrong = JSON.stringify(letter, null, 2).replace('"task_prompt": "Who', '"task_promt": "Who');
  const line = wrong.slice(0, wrong.indexOf('task_promt')).split('\n').length;
  await text.fill(wrong);
  const finding = page.locator('.found .at-error').first();
  await finding.waitFor();
  const place = await finding.locator('.mono').first().textContent();
  assert.match(place, new RegExp(`^${line}:\\d+$`), 'the finding stands at its line');
  await finding.locator('button').click();
  const at = await text.evaluate((area) => area.value.slice(0, area.selectionStart).split('\n').length);
  assert.equal(at, line, 'choosing it leads to its line');
  await text.fill(JSON.stringify(letter, null, 2));
  await page.locator('.found').waitFor({ state: 'detached' });
  await page.locator('.start-form button.primary').click();
  await until('the run is shown', () => /#\/run\//.test(page.url()));
  const run = decodeURIComponent(/#\/run\/([^?]+)/.exec(page.url())[1]);
  await page.locator('.bar.is-running[data-node="gather"]').waitFor();
  await page.locator('.run-title .status.is-running').waitFor();
  await page.locator('.bar.is-running[data-node="write"]').waitFor();
  await page.locator('.run-title .status.is-completed').waitFor();
  const events = cli('show', run, '--events').events.length;
  await until('the page has all events', async () => Number(await page.locator('.scrub input[type=range]').getAttribute('max')) === events);
  assert.equal(await page.locator('.lane-label').allTextContents().then((all) => all.map((one) => one.trim()).join()), 'facts,advice,letter');
  await page.locator('.bar[data-node="write"]').click();
  await page.locator('.panel').getByText('Request as sent').waitFor();
  await accessible(page, 'a run');
});
await server.stop();
