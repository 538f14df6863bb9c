// A film: a run that is watched, whose server is killed, and which goes on when it is started again. Frames are pictures of the page; what
// changed from one to the next is all that the file has of it.
import fs from 'node:fs';
import path from 'node:path';
import { inWork, launch, pause, serve } from './shared.mjs';

const [WIDTH, HEIGHT, BELOW] = [960, 600, 44];
fs.mkdirSync(inWork('documents'));
fs.copyFileSync(path.join(process.env.PICTURES, 'letter.json'), inWork('documents/letter.json'));
fs.copyFileSync(path.join(process.env.PICTURES, 'letter.yaml'), inWork('letter.yaml'));
fs.writeFileSync(inWork('token'), 'a-token-for-a-film');
const args = ['--script', 'letter.yaml', '--token-file', 'token', '--documents', 'documents'];
let server = await serve(args);
const { port } = new URL(server.url);
const browser = await launch();
const context = await browser.newContext({ viewport: { width: WIDTH, height: HEIGHT }, colorScheme: 'light', locale: 'en-US' });
const page = await context.newPage();
page.setDefaultTimeout(120_000);
const cutter = await (await browser.newContext()).newPage();
await page.goto(server.url);
await page.locator('main').first().waitFor();
await page.evaluate(() => fetch('/v1/documents/letter/runs', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ run_id: 'night' }) }));

/** @type {{data: Buffer, caption: string, ms: number}[]} */
const shots = [];
let caption = '$ selvedge serve';
const client = await context.newCDPSession(page);
const shoot = async (ms) => shots.push({ data: Buffer.from((await client.send('Page.captureScreenshot', { format: 'png' })).data, 'base64'), caption, ms });
/** Takes pictures for so long. */
const watch = async (ms, every = 250) => {
  for (const end = Date.now() + ms; Date.now() < end; ) {
    const began = Date.now();
    await shoot(every);
    await pause(Math.max(0, every - (Date.now() - began)));
  }
};

await page.goto(`${server.origin}/#/run/night`);
await page.locator('.bar.is-running').first().waitFor();
await watch(3100);
server.stop();
caption = '$ kill -9 …                    the server is gone, in the middle of a model call';
await page.locator('.banner').waitFor();
await watch(1600, 400);
server = await serve(args, `127.0.0.1:${port}`);
caption = '$ selvedge serve               what had answered is not asked again; the run goes on';
await page.locator('.banner').waitFor({ state: 'detached' });
await watch(6500);
await page.locator('.run-title .status.is-completed').waitFor();
caption = 'The run, at any event, as the engine folds it';
await watch(1200, 400);
const most = Number(await page.locator('.scrub input[type=range]').getAttribute('max'));
for (let n = most; n > most / 3; n -= 2) {
  await page.evaluate((to) => (location.hash = `#/run/night?at=${to}`), n);
  await pause(160);
  await shoot(110);
}
await watch(1800, 600);

// What changed since the frame before, with its place; even numbers, as the format has it.
const cut = await cutter.evaluateHandle(() => ({ before: null }));
const frames = [];
for (const shot of shots) {
  const frame = await cutter.evaluate(async ({ state, png, caption, w, h, below }) => {
    const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const canvas = new OffscreenCanvas(w, h + below);
    const draw = canvas.getContext('2d', { willReadFrequently: true });
    draw.drawImage(picture, 0, 0);
    draw.fillStyle = '#1d1c19';
    draw.fillRect(0, h, w, below);
    draw.fillStyle = '#f6f5f1';
    draw.font = '15px "DejaVu Sans Mono", monospace';
    draw.fillText(caption, 18, h + 28);
    const now = draw.getImageData(0, 0, w, h + below);
    const [a, b] = [new Uint32Array(now.data.buffer), state.before && new Uint32Array(state.before.data.buffer)];
    let [left, top, right, bottom] = b ? [w, h + below, -1, -1] : [0, 0, w - 1, h + below - 1];
    if (b) for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) {
      const [x, y] = [i % w, (i / w) | 0];
      left = Math.min(left, x), right = Math.max(right, x), top = Math.min(top, y), bottom = Math.max(bottom, y);
    }
    state.before = now;
    if (right < 0) return null;
    left &= ~1, top &= ~1;
    const part = new OffscreenCanvas(right - left + 1, bottom - top + 1);
    part.getContext('2d').drawImage(canvas, -left, -top);
    const blob = await part.convertToBlob({ type: 'image/webp', quality: 0.72 });
    const bytes = new Uint8Array(await blob.arrayBuffer());
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return { left, top, width: part.width, height: part.height, data: btoa(text) };
  }, { state: cut, png: shot.data.toString('base64'), caption: shot.caption, w: WIDTH, h: HEIGHT, below: BELOW });
  if (frame) frames.push({ ...frame, ms: shot.ms });
  else frames[frames.length - 1].ms += shot.ms;
}
await browser.close();
server.stop();

// An animated WebP: https://developers.google.com/speed/webp/docs/riff_container
const three = (n) => Buffer.from([n & 255, (n >> 8) & 255, (n >> 16) & 255]);
const chunk = (name, data) => {
  const head = Buffer.alloc(8);
  head.write(name, 'latin1');
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
};
const whole = [chunk('VP8X', Buffer.concat([Buffer.from([2, 0, 0, 0]), three(WIDTH - 1), three(HEIGHT + BELOW - 1)])), chunk('ANIM', Buffer.alloc(6))];
for (const frame of frames) {
  const file = Buffer.from(frame.data, 'base64');
  // Without the head of the file, and what is no picture in it.
  const inside = [];
  for (let at = 12; at < file.length; ) {
    const size = 8 + file.readUInt32LE(at + 4);
    const name = file.toString('latin1', at, at + 4);
    if (['VP8 ', 'VP8L', 'ALPH'].includes(name)) inside.push(file.subarray(at, at + size + (size % 2)));
    at += size + (size % 2);
  }
  // Not blended: what is there takes the place of what was.
  whole.push(chunk('ANMF', Buffer.concat([three(frame.left / 2), three(frame.top / 2), three(frame.width - 1), three(frame.height - 1), three(frame.ms), Buffer.from([2]), ...inside])));
}
const body = Buffer.concat([Buffer.from('WEBP', 'latin1'), ...whole]);
const head = Buffer.alloc(8);
head.write('RIFF', 'latin1');
head.writeUInt32LE(body.length, 4);
fs.writeFileSync(path.join(process.env.OUT, 'killed-and-resumed.webp'), Buffer.concat([head, body]));
process.exit(0);
