/** Two runs side by side: what they have in common, what differs, what was reused and what that saved (S-26). */
import { html, Text, Status, Problem, useAsked, useState, useStore } from './ui.js';
import { Json } from './json.js';
import { Content } from './thread.js';
import { because } from './node.js';
import { source } from './source.js';
import { route, link, adjust } from './route.js';
import { statusOf } from './model.js';
import { t } from './words.js';
import { plain } from './text.js';
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

/** Two texts beside each other, each below the name of the run that it is of. @param {{a: any, b: any, names: string[]}} props */
export function Sides({ a, b, names }) {
  const as = (/** @type {any} */ value) => (value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  const both = marked(as(a), as(b));
  const side = (/** @type {any[]} */ parts, /** @type {string} */ which) => html`<div class=${`side s-${which}`}><small class="mono muted side-name"><${Text} of=${names[which === 'a' ? 0 : 1] || t('not-there')} max=${60} /></small>${parts.map((part) => (part.only ? (which === 'a' ? html`<del><${Text} of=${part.text} /></del>` : html`<ins><${Text} of=${part.text} /></ins>`) : html`<${Text} of=${part.text} />`))}</div>`;
  return html`<div class="sides as-is">${side(both.a, 'a')}${side(both.b, 'b')}</div>`;
}

/** What a message says, its calls included. */
function words(/** @type {any} */ message) {
  if (!message) return '';
  const calls = (message.tool_calls ?? []).map((/** @type {any} */ call) => `${call.name}(${JSON.stringify(call.arguments)})`).join('\n');
  return [message.content ?? '', calls].filter(Boolean).join('\n');
}

/** Who said something, and where it stands. */
function Said({ message, at }) {
  return html`<span class="muted"><span class="mono">#${at + 1}</span> ${t(`role-${message.role}`)}${message.node && html` · <span class="mono"><${Text} of=${message.node} max=${40} /></span>`}</span>`;
}

/** Messages that are the same in both runs: there when they are asked for. @param {{run: string, thread: string, from: number, count: number}} props */
function Same({ run, thread, from, count: n }) {
  const [open, setOpen] = useState(false);
  const { value, error } = useAsked(() => (open ? source.thread(run, thread, { from, limit: Math.min(n, MOST) }) : Promise.resolve(undefined)), [run, thread, from, n, open]);
  return html`<button type="button" class="more" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${t(n === 1 ? 'same-message' : 'same-messages', { n })}</button><${Problem} of=${error} />
    ${open && value?.messages.map((/** @type {any} */ message, /** @type {number} */ i) => html`<div class="diff-message"><${Said} message=${message} at=${from + i} /><div class="side as-is"><${Text} of=${words(message)} /></div></div>`)}
    ${open && n > MOST && html`<p class="muted">${t('of-calls', { n: MOST, of: n })}</p>`}`;
}

/** The most nodes that ran again that are listed. */
const RERUNS = 200;

/** The most equal messages that are shown at once, and the most that differ. */
const MOST = 100;

/** A thread of both runs: what differs as the server has found it, what is the same folded. @param {{a: string, b: string, of: any}} props */
function ThreadDiff({ a, b, of }) {
  const { thread, changes } = of;
  const head = (/** @type {any} */ more) => html`<h3><${Text} of=${thread} max=${80} /> <small class="muted">${more}</small></h3>`;
  if (of.is === 'only_a' || of.is === 'only_b') {
    const [run, n] = of.is === 'only_a' ? [a, of.messages.a] : [b, of.messages.b];
    return html`<section class="thread-diff flat">${head(t('only-in', { run: plain(run) }))}<${Same} run=${run} thread=${thread} from=${0} count=${n} /></section>`;
  }
  if (!changes.length) return html`<section class="thread-diff flat">${head(t('same'))}<${Same} run=${a} thread=${thread} from=${0} count=${of.messages.a} /></section>`;
  const out = [];
  let [i, j] = [0, 0];
  const same = (/** @type {number} */ n) => n > 0 && out.push(html`<${Same} key=${`s${i}`} run=${a} thread=${thread} from=${i} count=${n} />`);
  for (const change of changes.slice(0, MOST)) {
    const n = change.a ? change.a.at - i : change.b.at - j;
    same(n);
    [i, j] = [i + n, j + n];
    out.push(html`<div class="diff-message" key=${`c${i}.${j}`}><${Said} message=${change.a ?? change.b} at=${change.a ? i : j} /><${Sides} a=${words(change.a)} b=${words(change.b)} names=${[change.a ? a : '', change.b ? b : '']} /></div>`);
    if (change.a) i++;
    if (change.b) j++;
  }
  if (changes.length > MOST) out.push(html`<p class="muted">${t('of-calls', { n: MOST, of: changes.length })}</p>`);
  else same(of.messages.a - i);
  return html`<section class="thread-diff">${head(t(changes.length === 1 ? 'message-differs' : 'messages-differ', { n: changes.length }))}${out}</section>`;
}

/** Ids of runs to choose from. */
function Known() {
  const { value } = useAsked(() => source.runs({ limit: 100 }), []);
  return html`<datalist id="known-runs">${(value?.runs ?? []).map((/** @type {any} */ run) => html`<option value=${run.run_id}>${plain(run.name ?? '')}</option>`)}</datalist>`;
}

export function Diff() {
  const { query } = useStore(route);
  const { a = '', b = '' } = query;
  const { value, error } = useAsked(() => (a && b ? source.diff(a, b) : Promise.resolve(undefined)), [a, b]);
  const runs = useAsked(() => Promise.all([a, b].map((run) => (run ? source.run(run, { brief: 'yes' }) : null))), [a, b]);
  const [x, y] = runs.value ?? [];
  const pick = (/** @type {'a' | 'b'} */ which) => html`<label class="field">${which === 'a' ? t('one-run') : t('other-run')} <input type="text" class="mono" list="known-runs" placeholder=${t('run-id')} value=${query[which] ?? ''} onChange=${(event) => adjust({ [which]: event.target.value || undefined })} /></label>`;
  const took = (/** @type {any} */ run) => duration(moment(run.ended) - moment(run.started));
  const rows = x && y ? [
    [t('status'), html`<${Status} of=${statusOf(x)} />`, html`<${Status} of=${statusOf(y)} />`], [t('took'), took(x), took(y)],
    [t('model-calls'), count(x.usage?.model_calls), count(y.usage?.model_calls)], [t('tool-calls'), count(x.usage?.tool_calls), count(y.usage?.tool_calls)],
    [t('tokens'), count(tokens(x.usage)), count(tokens(y.usage))], [t('cost'), cost(x.usage?.cost), cost(y.usage?.cost)],
  ] : [];
  const nodes = value?.results ?? [];
  // Why something ran again, only a fork can say.
  const afresh = useAsked(() => (value?.b.fork_of ? source.reruns(b) : Promise.resolve(undefined)), [value, b]).value?.nodes ?? [];
  const reused = nodes.filter((/** @type {any} */ node) => node.usage?.b?.reused_from);
  const differs = nodes.filter((/** @type {any} */ node) => node.is !== 'same');
  return html`<main class="page diff" id="main"><h1>${t('compare')}</h1>
    <p class="muted">${t('compare-why')}</p><div class="row picks">${pick('a')}${pick('b')}</div><${Known} /><${Problem} of=${error ?? runs.error} />
    ${rows.length > 0 && html`<div class="scroll-x"><table class="compare"><thead><tr><td></td>${[a, b].map((run) => html`<th><a href=${link('run', run)}><${Text} of=${run} max=${60} /></a></th>`)}</tr></thead>
      <tbody>${rows.map(([name, p, q]) => html`<tr><th scope="row">${name}</th><td>${p}</td><td>${q}</td></tr>`)}</tbody></table></div>`}
    ${y?.saved && html`<p class="is-reused saved">↺ ${t('saves', { calls: (y.saved.model_calls ?? 0) + (y.saved.tool_calls ?? 0), tokens: count(tokens(y.saved)), time: duration(y.saved.worked_ms ?? 0) })}</p>`}
    ${reused.length > 0 && html`<p>${t('nodes-reused')} ${reused.slice(0, 40).map((/** @type {any} */ node) => html`<span class="tag is-reused"><${Text} of=${node.node} max=${50} /></span> `)}${reused.length > 40 ? `+${reused.length - 40}` : ''}</p>`}
    ${differs.length > 0 && html`<p>${t('nodes-differ')} ${differs.slice(0, 40).map((/** @type {any} */ node) => html`<a class="tag" href=${link('run', node.is === 'only_a' ? a : b, { node: node.node })}><${Text} of=${node.node} max=${50} /></a> `)}${differs.length > 40 ? `+${differs.length - 40}` : ''}</p>`}
    ${afresh.length > 0 && html`<h2>${t('afresh')}</h2><ul class="waits">${afresh.slice(0, RERUNS).map((/** @type {any} */ node) => html`<li><b><${Text} of=${node.node} max=${60} /></b> <span class="muted">${because(node.afresh[0], node.node)}</span></li>`)}</ul>
      ${afresh.length > RERUNS && html`<p class="muted">${t('of-calls', { n: RERUNS, of: afresh.length })}</p>`}`}
    ${x && y && html`<h2>${t('output')}</h2>${JSON.stringify(x.output) === JSON.stringify(y.output) ? html`<p class="muted">${t('same')}</p>${x.output !== null && html`<div class="side"><${Content} of=${x.output} prose=${true} /></div>`}` : html`<${Sides} a=${x.output} b=${y.output} names=${[a, b]} />`}`}
    ${value && html`<h2>${t('threads')}</h2>${value.threads.map((/** @type {any} */ one) => html`<${ThreadDiff} key=${one.thread} a=${a} b=${b} of=${one} />`)}`}
    ${value && html`<details><summary class="h3">${t('whole-diff')}</summary><${Json} of=${value} open=${1} /></details>`}
  </main>`;
}
