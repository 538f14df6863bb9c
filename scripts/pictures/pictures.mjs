// Pictures of the page, each in light and dark.
import fs from 'node:fs';
import path from 'node:path';
import { cli, inWork, launch, pause, picture, serve } from './shared.mjs';

const here = process.env.PICTURES;
for (const file of ['letter.json', 'letter.yaml']) fs.copyFileSync(path.join(here, file), inWork(file));
cli('.', 'run', 'letter.json', '--script', 'letter.yaml', '--run-id', 'letter');
cli('examples/debate', 'run', 'flow.json', '--tools', 'tools', '--script', 'script.yaml', '--allow-read', '../../docs', '--input', 'passages=6', '--run-id', 'debate');
cli('.', 'evolve', 'examples/evolve/tasks.jsonl', '--script', 'examples/evolve/script.yaml', '--batch-size', '10', '--concurrency', '2', '--score', 'numeric', '--tool-enhance-interval', '1', '--out', 'evolved');
const server = await serve(['--script', 'letter.yaml']);
const browser = await launch();
const views = {
  run: ['#/run/letter?node=judge', '.panel .node-call', 1200, 780],
  scrub: ['#/run/debate?at=60', '.tag.then', 1200, 780],
  evolution: ['#/evolution', '.chart', 1200, 640],
};
for (const scheme of ['light', 'dark']) {
  const context = await browser.newContext({ colorScheme: scheme, locale: 'en-US', reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(server.url);
  // The token of the address has been traded for a cookie.
  await page.locator('main').first().waitFor();
  for (const [name, [hash, sign, width, height]] of Object.entries(views)) {
    await page.setViewportSize({ width, height });
    await page.goto(`${server.origin}/${hash}`);
    await page.locator(sign).first().waitFor();
    await pause(800);
    await picture(page, `${name}-${scheme}`);
  }
  await context.close();
}
await browser.close();
server.stop();
process.exit(0);
