// What the pictures and the film have in common: the server, the browser, and how a picture is packed.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { SELVEDGE, MODULES, CHROMIUM, WORK, OUT } = process.env;
const { chromium } = createRequire(path.join(MODULES, 'package.json'))('playwright-core');

export const inWork = (name) => path.join(WORK, name);
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The command line in a folder of the work; what it says stays unseen unless it fails. */
export function cli(folder, ...args) {
  const done = spawnSync(SELVEDGE, args, { cwd: inWork(folder), encoding: 'utf8' });
  if (![0, 3].includes(done.status)) console.error(`selvedge ${args.join(' ')}: ${done.status}\n${done.stderr}`);
}

export async function serve(args, listen = '127.0.0.1:0') {
  const child = spawn(SELVEDGE, ['serve', '--listen', listen, ...args], { cwd: WORK, stdio: ['ignore', 'pipe', 'ignore'] });
  const url = await new Promise((found, failed) => {
    let out = '';
    child.stdout.on('data', (bytes) => {
      out += bytes;
      const line = /(http:\/\/\S+)\n/.exec(out);
      if (line) found(line[1]);
    });
    child.on('exit', (code) => failed(new Error(`the server has ended with ${code}`)));
  });
  process.on('exit', () => child.kill('SIGKILL'));
  return { url, origin: new URL(url).origin, stop: () => child.kill('SIGKILL') };
}

export const launch = () => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'] });

/** What the page shows, as a WebP file. */
export async function picture(page, name, quality = 82) {
  const client = await page.context().newCDPSession(page);
  const { data } = await client.send('Page.captureScreenshot', { format: 'webp', quality });
  fs.writeFileSync(path.join(OUT, `${name}.webp`), Buffer.from(data, 'base64'));
}
