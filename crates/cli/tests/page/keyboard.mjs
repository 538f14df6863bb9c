// S-29: no pointer is needed: a run is found, looked at as of an event, a node chosen, its message edited, and a fork made of it.
import { assert, browse, cli, letter, replies, serve, until, write } from './harness.mjs';

const document = write('letter.json', letter);
const script = write('replies.yaml', replies());
cli('run', document, '--script', script, '--run-id', 'letter');
const server = await serve(['--script', script]);
await browse(server, async (page) => {
  /** Tab, until what has the focus is wanted. */
  const tabTo = async (what, key = 'Tab') => {
    for (let i = 0; i < 200; i++) {
      if (await page.evaluate((selector) => document.activeElement?.matches(selector), what)) return;
      await page.keyboard.press(key);
    }
    throw new Error(`Tab never comes to ${what}`);
  };
  await page.locator('a.run-row').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('letter');
  await page.keyboard.press('Enter');
  await page.locator('.bar[data-node="write"]').waitFor();
  await tabTo('.lanes-box');
  await page.keyboard.press('ArrowDown');
  await page.locator('.panel h2', { hasText: 'gather' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.locator('.panel h2', { hasText: 'judge' }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.className), 'lanes-box', 'the lanes keep the focus');
  await page.keyboard.press('[');
  await page.locator('.tag.then').waitFor();
  await page.keyboard.press('l');
  await page.locator('.tag.then').waitFor({ state: 'detached' });
  await tabTo('[role=tab]');
  const chosen = () => page.locator('[role=tab][aria-selected=true]').textContent();
  for (let i = 0; i < 8 && !(await chosen()).includes('facts'); i++) {
    const was = await chosen();
    await page.keyboard.press('ArrowRight');
    await until('another tab', async () => (await chosen()) !== was);
  }
  await page.locator('.thread .message', { hasText: 'The parcel left on the 3rd' }).waitFor();
  // The last message that can be edited is what the model said.
  await tabTo('.thread .message.r-assistant button.ghost');
  await page.keyboard.press('Enter');
  await page.locator('dialog textarea').first().waitFor();
  await tabTo('dialog textarea');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('The parcel came on the 4th.');
  await tabTo('dialog button.primary');
  await page.keyboard.press('Enter');
  await until('the fork is shown', () => /#\/run\//.test(page.url()) && !page.url().includes('#/run/letter'));
  await page.locator('.run-title .status.is-completed').waitFor();
});
assert.equal(cli('runs').runs.length, 2);
await server.stop();
