// S-21: the list of runs is searched, filtered, and opened by the keyboard; a run that comes shows by itself.
import { spawn } from 'node:child_process';
import { accessible, assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'first');
cli('run', document, '--script', script, '--run-id', 'second');
const failing = write('failing.yaml', `- when: {}\n  reply: { error: { status: 400, message: 'no such thing, ${'and nobody knows why, '.repeat(20)}' } }\n`);
cli('run', document, '--script', failing, '--run-id', 'third');
// One whose process was killed: it goes on by itself, but nobody drives it.
const child = spawn(process.env.SELVEDGE, ['run', document, '--script', write('slow.yaml', replies(600_000)), '--run-id', 'cut-off'], { cwd: process.env.WORK, stdio: 'ignore' });
const ended = new Promise((end) => child.on('exit', end));
await until('it goes on', () => cli('runs').runs.some((run) => run.run_id === 'cut-off'));
child.kill('SIGKILL');
await ended;
const server = await serve(['--script', script, '--no-resume']);
await browse(server, async (page) => {
  const rows = page.locator('a.run-row');
  await until('four runs', async () => (await rows.count()) === 4);
  const cut = page.locator('a.run-row', { hasText: 'cut-off' });
  await cut.locator('.is-stopped').waitFor();
  assert.equal((await cut.locator('.run-took').textContent()).trim(), '–', 'nobody knows how long it took');
  await accessible(page, 'the list of runs');
  const third = page.locator('a.run-row', { hasText: 'third' });
  await third.locator('.is-failed').waitFor();
  for (const name of await third.locator('.run-name b, .run-name .mono').all())
    assert.ok(await name.evaluate((shown) => shown.scrollWidth <= shown.clientWidth + 1), 'a long fault leaves names their room');
  await page.keyboard.press('/');
  await page.keyboard.type('econ');
  await until('one run is found', async () => (await rows.count()) === 1);
  // A search can be passed on.
  await page.waitForURL(/text=econ/);
  await page.locator('input[type=search]').fill('');
  await until('all runs again', async () => (await rows.count()) === 4);
  await page.locator('.filter select').first().selectOption('failed');
  await until('the failed one', async () => (await rows.count()) === 1 && (await rows.first().textContent()).includes('third'));
  await page.locator('.filter select').first().selectOption('');
  await until('all runs again', async () => (await rows.count()) === 4);
  // Where nothing fits, one way leads back to all.
  await page.locator('input[type=search]').fill('no such run');
  await page.locator('.nothing button').click();
  await until('all runs again', async () => (await rows.count()) === 4);
  cli('run', document, '--script', script, '--run-id', 'fifth');
  await until('a run that comes shows by itself', async () => (await rows.count()) === 5);
  await page.locator('h1').click();
  await page.keyboard.press('ArrowDown');
  await until('the second row is chosen', async () => (await rows.nth(1).getAttribute('class')).includes('chosen'));
  const chosen = await page.locator('a.run-row.chosen .mono').textContent();
  await page.keyboard.press('Enter');
  await until('it is opened', () => page.url().includes(`#/run/${chosen.trim()}`));
  await page.goto(`${server.origin}/#/run/cut-off`);
  await page.locator('.run-title .status.is-stopped').waitFor();
  assert.deepEqual(await page.locator('.bar.coming').first().evaluate((bar) => [getComputedStyle(bar).borderTopWidth, getComputedStyle(bar).borderTopStyle]), ['1px', 'dashed']);
  // What failed has no output, and is not waited for.
  await page.goto(`${server.origin}/#/run/third?tab=%3D`);
  await page.locator('.result', { hasText: 'It failed, so there is none' }).first().waitFor();
  assert.equal(await page.getByText('No output yet').count(), 0);
  // An address that names nothing says so, and leads on.
  for (const nothing of ['constructor', 'nonsense']) {
    await page.goto(`${server.origin}/#/${nothing}`);
    await page.locator('.nothing', { hasText: nothing }).filter({ hasText: 'There is no such page' }).waitFor();
  }
  await accessible(page, 'an address that names nothing');
  await page.locator('.nothing a').click();
  await rows.first().waitFor();
});
// Whom the server does not know sees where the token goes, and nothing else.
await browse({ url: server.origin, origin: server.origin }, async (page) => {
  await page.locator('main form input[type=password]').waitFor();
  assert.equal(await page.locator('.problem, .banner, nav, a.button').count(), 0);
  await accessible(page, 'the form for the token');
  await page.locator('main form input').fill(server.url);
  await page.locator('main form button').click();
  await page.locator('a.run-row').first().waitFor();
}, { quiet: ['Failed to load resource'] });
await server.stop();
