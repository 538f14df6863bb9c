/** Two runs side by side: what they have in common, what differs, what was reused and what that saved (S-26). */
import { html, Text, Status, Problem, useAsked, useState, useStore } from './ui.js';
import { Json, Long } from './json.js';
import { source } from './source.js';
import { route, link, adjust } from './route.js';
import { t } from './words.js';
import { count, cost, duration, moment, tokens } from './format.js';

/** Words of two texts, those of only one of them marked. @param {string} a @param {string} b */
export function marked(a, b) {
  const split = (/** @type {string} */ text) => text.match(/\s+|[^\s]+/g) ?? [];
  const [x, y] = [split(a), split(b)];
  if (x.length * y.length > 1_000_000) return { a: [{ text: a, only: true }], b: [{ text: b, only: true }] };
  const rows = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--) rows[i][j] = x[i] === y[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1]);
  /** @type {{a: {text: string, only: boolean}[], b: {text: string, only: boolean}[]}} */
  const out = { a: [], b: [] };
  const put = (/** @type {{text: string, only: boolean}[]} */ list, /** @type {string} */ text, /** @type {boolean} */ only) => {
    const last = list.at(-1);
    if (last && last.only === only) last.text += text;
    else list.push({ text, only });
  };
  let [i, j] = [0, 0];
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      put(out.a, x[i++], false);
      put(out.b, y[j++], false);
    } else if (j >= y.length || (i < x.length && rows[i + 1][j] >= rows[i][j + 1])) put(out.a, x[i++], true);
    else put(out.b, y[j++], true);
  }
  return out;
}

/** Two texts beside each other. */
export function Sides({ a, b }) {
  const as = (/** @type {any} */ value) => (value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  const both = marked(as(a), as(b));
  const side = (/** @type {any[]} */ parts, /** @type {string} */ which) => html`<div class=${`side s-${which}`}>${parts.map((part) => (part.only ? (which === 'a' ? html`<del><${Text} of=${part.text} /></del>` : html`<ins><${Text} of=${part.text} /></ins>`) : html`<${Text} of=${part.text} />`))}</div>`;
  return html`<div class="sides as-is">${side(both.a, 'a')}${side(both.b, 'b')}</div>`;
}

/** What a message says, its calls included. */
function words(/** @type {any} */ message) {
  if (!message) return '';
  const calls = (message.tool_calls ?? []).map((/** @type {any} */ call) => `${call.name}(${JSON.stringify(call.arguments)})`).join('\n');
  return [message.content ?? '', calls].filter(Boolean).join('\n');
}

/** A thread of both runs, or of one of them. @param {{a: string, b: string, thread: string, has: boolean[]}} props */
function ThreadDiff({ a, b, thread, has }) {
  const { value, error } = useAsked(() => Promise.all([a, b].map((run, i) => (has[i] ? source.thread(run, thread, { from: 0, limit: 1000 }) : { messages: [], of: 0 }))), [a, b, thread, ...has]);
  const [all, setAll] = useState(false);
  if (!value) return html`<${Problem} of=${error} />`;
  const [x, y] = value.map((/** @type {any} */ got) => got.messages);
  const most = Math.max(x.length, y.length);
  let same = 0;
  while (same < most && words(x[same]) === words(y[same])) same++;
  const from = all ? 0 : Math.max(0, same);
  return html`<section class="thread-diff"><h3><${Text} of=${thread} max=${80} /> <small class="muted">${t('messages-in', { a: value[0].of, b: value[1].of })}</small></h3>
    ${same > 0 && html`<button type="button" class="ghost" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>${t('same-messages', { n: same })}</button>`}
    ${Array.from({ length: most - from }, (_, i) => {
      const [p, q] = [x[from + i], y[from + i]];
      return html`<div class="diff-message"><span class="muted mono">${from + i + 1} · ${t(`role-${(p ?? q).role}`)} ${(p ?? q).node && html`<${Text} of=${(p ?? q).node} max=${40} />`}</span><${Sides} a=${words(p)} b=${words(q)} /></div>`;
    })}</section>`;
}

export function Diff() {
  const { query } = useStore(route);
  const { a = '', b = '' } = query;
  const { value, error } = useAsked(() => (a && b ? source.diff(a, b) : Promise.resolve(undefined)), [a, b]);
  const runs = useAsked(() => Promise.all([a, b].map((run) => (run ? source.run(run, { brief: 'yes' }) : null))), [a, b]);
  const explained = useAsked(() => (b ? source.explain(b) : Promise.resolve(undefined)), [b]).value;
  const [x, y] = runs.value ?? [];
  const pick = (/** @type {'a' | 'b'} */ which) => html`<label class="field">${which === 'a' ? t('one-run') : t('other-run')} <input type="text" class="mono" value=${query[which] ?? ''} onChange=${(event) => adjust({ [which]: event.target.value || undefined })} /></label>`;
  const took = (/** @type {any} */ run) => duration(moment(run.ended) - moment(run.started));
  const rows = x && y ? [
    [t('status'), html`<${Status} of=${x.status} />`, html`<${Status} of=${y.status} />`], [t('took'), took(x), took(y)],
    [t('model-calls'), count(x.usage?.model_calls), count(y.usage?.model_calls)], [t('tool-calls'), count(x.usage?.tool_calls), count(y.usage?.tool_calls)],
    [t('tokens'), count(tokens(x.usage)), count(tokens(y.usage))], [t('cost'), cost(x.usage?.cost), cost(y.usage?.cost)],
  ] : [];
  const threads = useAsked(() => Promise.all([a, b].map((run) => (run ? source.threads(run) : { threads: [] }))), [a, b]).value ?? [];
  const names = [...new Set(threads.flatMap((/** @type {any} */ one) => one.threads.map((/** @type {any} */ thread) => thread.name)))];
  const reused = (explained?.nodes ?? []).filter((/** @type {any} */ node) => node.reused_from);
  const afresh = (explained?.nodes ?? []).filter((/** @type {any} */ node) => node.afresh?.length);
  return html`<main class="page diff" id="main"><h1>${t('compare')}</h1>
    <div class="row">${pick('a')}${pick('b')}</div><${Problem} of=${error ?? runs.error} />
    ${rows.length > 0 && html`<div class="scroll-x"><table class="compare"><thead><tr><td></td>${[a, b].map((run) => html`<th><a href=${link('run', run)}><${Text} of=${run} max=${60} /></a></th>`)}</tr></thead>
      <tbody>${rows.map(([name, p, q]) => html`<tr><th scope="row">${name}</th><td>${p}</td><td>${q}</td></tr>`)}</tbody></table></div>`}
    ${y?.saved && html`<p class="is-reused saved">↺ ${t('saves', { calls: (y.saved.model_calls ?? 0) + (y.saved.tool_calls ?? 0), tokens: count(tokens(y.saved)), time: duration(y.saved.worked_ms ?? 0) })}</p>`}
    ${reused.length > 0 && html`<p>${t('reused')}: ${reused.slice(0, 40).map((/** @type {any} */ node) => html`<span class="tag is-reused"><${Text} of=${node.node} max=${50} /></span> `)}</p>`}
    ${afresh.length > 0 && html`<h2>${t('afresh')}</h2><ul class="waits">${afresh.slice(0, 40).map((/** @type {any} */ node) => html`<li><b><${Text} of=${node.node} max=${60} /></b> <span class="muted"><${Text} of=${node.afresh[0].why} max=${200} /></span></li>`)}</ul>`}
    ${x && y && html`<h2>${t('output')}</h2>${JSON.stringify(x.output) === JSON.stringify(y.output) ? html`<p class="muted">${t('same')}</p><${Long} of=${typeof x.output === 'string' ? x.output : JSON.stringify(x.output, null, 2)} />` : html`<${Sides} a=${x.output} b=${y.output} />`}
      <h2>${t('threads')}</h2>${names.map((name) => html`<${ThreadDiff} key=${name} a=${a} b=${b} thread=${name} has=${threads.map((/** @type {any} */ one) => one.threads.some((/** @type {any} */ thread) => thread.name === name))} />`)}`}
    ${value && html`<details><summary class="h3">${t('whole-diff')}</summary><${Json} of=${value} open=${1} /></details>`}
  </main>`;
}
