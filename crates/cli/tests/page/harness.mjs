// What all tests of the page share: the real binary's server, a real browser, and what must hold whatever is tested.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { SELVEDGE, MODULES, CHROMIUM, WORK } = process.env;
const require = createRequire(path.join(MODULES, 'package.json'));
const { chromium } = require('playwright-core');
export const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export { assert };

/** Nothing here is slower than this, on whatever machine. */
export const PATIENCE = Number(process.env.PATIENCE ?? 90_000);

/** Writes a file into the folder of the test. */
export function write(name, text) {
  const file = path.join(WORK, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, typeof text === 'string' ? text : JSON.stringify(text, null, 2));
  return file;
}

/** The command line, with what it says as JSON. */
export function cli(...args) {
  const done = spawnSync(SELVEDGE, [...args, '--json'], { cwd: WORK, encoding: 'utf8', maxBuffer: 1 << 28 });
  assert.ok(done.stdout.trim(), `selvedge ${args.join(' ')} printed nothing: ${done.stderr}`);
  return JSON.parse(done.stdout);
}

/** Starts a server; `stop` ends it at once, as a crash does. */
export async function serve(args = [], listen = '127.0.0.1:0') {
  const child = spawn(SELVEDGE, ['serve', '--listen', listen, ...args], { cwd: WORK, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (bytes) => (said += bytes));
  const url = await new Promise((found, failed) => {
    let out = '';
    const timer = setTimeout(() => failed(new Error(`the server prints no address: ${out}${said}`)), PATIENCE);
    child.stdout.on('data', (bytes) => {
      out += bytes;
      const line = /(http:\/\/\S+)\n/.exec(out);
      if (line) clearTimeout(timer), found(line[1]);
    });
    child.on('exit', (code) => (clearTimeout(timer), failed(new Error(`the server has ended with ${code}: ${said}`))));
  });
  const ended = new Promise((end) => child.on('exit', end));
  process.on('exit', () => child.kill('SIGKILL'));
  return { url, origin: new URL(url).origin, stop: () => (child.kill('SIGKILL'), ended) };
}

/** Looks until something holds. */
export async function until(what, holds) {
  const end = Date.now() + PATIENCE;
  let last;
  while (Date.now() < end) {
    last = await holds();
    if (last) return last;
    await new Promise((wait) => setTimeout(wait, 100));
  }
  throw new Error(`it never came to: ${what}`);
}

/**
 * A browser at the server's page. At the end nothing may have failed in it, nothing may have been asked of anybody else, and nothing may have been
 * refused by the policy of the page.
 */
export async function browse(server, test, { width = 1280, height = 900, scheme = 'light', quiet = [] } = {}) {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  try {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, locale: 'en-US', reducedMotion: 'reduce' });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const wrong = [];
    page.on('pageerror', (error) => wrong.push(`error: ${error.stack}`));
    page.on('dialog', (dialog) => (wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
    page.on('console', (message) => {
      const text = message.text();
      const policy = /content security policy/i.test(text);
      if (policy || (message.type() === 'error' && !quiet.some((known) => text.includes(known)))) wrong.push(`console: ${text}`);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol !== 'data:' && url.origin !== server.origin && url.protocol !== 'file:') wrong.push(`asked of somebody else: ${url}`);
    });
    await page.goto(server.url);
    await page.waitForSelector('main');
    await test(page);
    assert.deepEqual(wrong, []);
  } finally {
    await browser.close();
  }
}

/** axe-core's findings of weight, of what is shown now. */
export async function accessible(page, what) {
  // By the protocol of the browser: the page's own policy lets no script in.
  const client = await page.context().newCDPSession(page);
  await client.send('Runtime.evaluate', { expression: axe });
  const { result } = await client.send('Runtime.evaluate', {
    expression: `axe.run(document, {resultTypes: ['violations'], preload: false}).then((found) => JSON.stringify(found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
      .map((one) => ({rule: one.id, where: one.nodes.slice(0, 4).map((node) => node.html.slice(0, 200) + ' :: ' + (node.any[0]?.message ?? node.all[0]?.message ?? ''))}))))`,
    awaitPromise: true, returnByValue: true,
  });
  assert.deepEqual(JSON.parse(result.value), [], `axe-core finds something serious in ${what}`);
}

/** Whether the page is as wide as the window: nothing has to be scrolled sideways to be read. */
export async function fits(page, what) {
  const [is, may] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(is <= may, `${what} is ${is} px wide in a window of ${may}`);
}

/** A letter that three nodes write, and a model that answers it. */
export const letter = {
  task: 'Answer the complaint about order 118.',
  nodes: [
    { node_type: 'llm-first', node_id: 'gather', node_name: 'Gather', thread_id: 'facts', task_prompt: 'List the facts.' },
    { node_type: 'llm-first', node_id: 'judge', node_name: 'Judge', thread_id: 'advice', task_prompt: 'Who is right? The facts: {{gather.output}}' },
    { node_type: 'llm-first', node_id: 'write', node_name: 'Write', thread_id: 'letter', task_prompt: 'Write two lines. Our view: {{judge.output}}' },
  ],
};

/** The replies; each takes `delay` milliseconds. */
export const replies = (delay = 0) => `
- when: { node: gather }
  reply: { text: "The parcel left on the 3rd and came on the 9th.", delay_ms: ${delay}, usage: { input_tokens: 40, output_tokens: 14 } }
- when: { node: judge, contains: "on the 4th" }
  reply: { text: "Nothing is owed.", delay_ms: ${delay}, usage: { input_tokens: 52, output_tokens: 9 } }
- when: { node: judge }
  reply: { text: "Refund the postage.", delay_ms: ${delay}, usage: { input_tokens: 52, output_tokens: 11 } }
- when: { node: write, contains: "Nothing is owed" }
  reply: { text: "We have checked. It came in time.", delay_ms: ${delay}, usage: { input_tokens: 48, output_tokens: 12 } }
- when: { node: write }
  reply: { text: "We are sorry. The postage comes back.", delay_ms: ${delay}, usage: { input_tokens: 48, output_tokens: 14 } }
`;
