// S-26: a fork with an edited message, what it would cost, and both runs side by side.
import { accessible, assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  await page.goto(`${server.origin}/#/run/letter?tab=facts`);
  const said = page.locator('.thread .message', { hasText: 'The parcel left on the 3rd' });
  await said.getByText('Edit').click();
  const dialog = page.locator('dialog');
  const text = dialog.locator('textarea').first();
  await text.waitFor();
  await text.fill('The parcel left on the 3rd and came on the 4th.');
  await dialog.getByText('What would run?').click();
  await dialog.locator('.plan .w-run').first().waitFor();
  assert.equal(cli('runs').runs.length, 1, 'nothing is recorded by a look');
  await accessible(page, 'the dialog of a fork');
  await dialog.locator('button.primary').click();
  await until('the fork is shown', () => /#\/run\//.test(page.url()) && !page.url().includes('#/run/letter'));
  await page.locator('.run-title .status.is-completed').waitFor();
  await page.locator('.run-facts a', { hasText: 'Compare' }).click();
  await page.locator('.diff ins', { hasText: 'checked' }).first().waitFor();
  await page.locator('.diff del', { hasText: 'sorry' }).first().waitFor();
  await accessible(page, 'two runs side by side');
});
assert.equal(cli('runs').runs.length, 2);
await server.stop();
