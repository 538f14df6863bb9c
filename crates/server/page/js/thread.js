/** A thread as a conversation: who said each message, where it came from, and who saw it (S-23). */
import { html, Text, useAsked, useEffect, useMemo, useRef, useState } from './ui.js';
import { Virtual } from './virtual.js';
import { LONGEST, Markdown } from './markdown.js';
import { Json, Long } from './json.js';
import { source } from './source.js';
import { t } from './words.js';
import { isShown, plain } from './text.js';
import { count } from './format.js';

const PAGE = 100;
/** So few known messages of a page are read once more with what is new. */
const FEW = 20;
/** Pages that are kept on either side of those that are seen. */
const BESIDE = 5;

/** @param {string} text */
function asJson(text) {
  const first = text.trimStart()[0];
  if ((first !== '{' && first !== '[') || text.length > 400_000) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a message says: data as a tree, prose as Markdown. */
export function Content({ of, prose }) {
  const text = typeof of === 'string' ? of : of === null || of === undefined ? '' : JSON.stringify(of);
  const data = useMemo(() => asJson(text), [text]);
  const [open, setOpen] = useState(false);
  if (!text) return null;
  if (data !== undefined) return html`<${Json} of=${data} open=${1} />`;
  if (!prose || text.length > LONGEST) return html`<${Long} of=${text} lines=${10} mono=${!prose} />`;
  const long = text.length > 3000;
  return html`<${Markdown} of=${long && !open ? text.slice(0, 2400) + '…' : text} />
    ${long && html`<button type="button" class="more" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? t('less') : t('all-of', { n: text.length })}</button>`}`;
}

/** A call of a tool, with what came back below it where it is known. */
export function ToolCall({ call }) {
  return html`<div class="call k-tool"><span class="call-name"><i aria-hidden="true">⚒</i> <${Text} of=${call.name} /></span>
    <${Json} of=${call.arguments ?? {}} depth=${0} open=${1} /></div>`;
}

/** Which calls were shown a message, counted from 1. @param {{effect: string, shown: [number, number][]}[] | undefined} saw @param {any} message */
const callsOf = (saw, message) =>
  (saw ?? []).flatMap((call, i) => (isShown(call.shown, message) ? [{ n: i + 1, effect: call.effect }] : []));

function Message({ message, at, chooseNode, edit, chosen, seen, adopted, calls }) {
  const role = ['user', 'assistant', 'system', 'tool'].includes(message.role) ? message.role : 'user';
  const from = message.node;
  const name = role === 'tool' ? message.name ?? t('tool') : t(`role-${role}`);
  return html`<article class=${`message r-${role}${chosen ? ' chosen' : ''}`} aria-label=${`${name} ${at}`}>
    <header>
      <span class="who">${role === 'tool' ? html`<i aria-hidden="true">⚒</i> ` : ''}<${Text} of=${name} max=${80} /></span>
      ${from ? html`<button type="button" class="from" title=${t('from-node-why')} onClick=${() => chooseNode(from)}><${Text} of=${from} max=${80} /></button>` : role === 'user' && html`<span class="from task">${t('the-task')}</span>`}
      ${adopted && html`<span class="tag" title=${t('adopted-why')}>↳ <${Text} of=${adopted} max=${60} /></span>`}
      <span class="grow"></span>
      ${seen?.of > 0 && html`<span class="seen" title=${t('seen-why')}>${t('seen-by')} ${seen.nodes.slice(0, 4).map((node, i) => html`${i ? ', ' : ''}<button type="button" onClick=${() => chooseNode(node)}><${Text} of=${node} max=${30} /></button>`)}${seen.of > 4 ? ` +${seen.of - 4}` : ''}</span>`}
      ${calls.length > 0 && html`<span class="seen calls" title=${plain(calls.map((/** @type {any} */ call) => call.effect).join(', '))}>◉ ${t('shown-to', { calls: calls.length > 6 ? `${calls[0].n}–${calls[calls.length - 1].n}` : calls.map((/** @type {any} */ call) => call.n).join(', ') })}</span>`}
      ${message.n && html`<span class="muted mono n" title=${t('event')}>#${message.n}</span>`}
      ${edit && message.content && html`<button type="button" class="ghost small" title=${t('edit-fork-why')} onClick=${() => edit(message)}>${t('edit-fork')}</button>`}
    </header>
    <${Content} of=${message.content} prose=${role !== 'tool'} />
    ${message.tool_calls?.map((call) => html`<${ToolCall} call=${call} />`)}
  </article>`;
}

/**
 * @param {{run: string, thread: string, n: number, total: number, mark?: string, live: boolean, chooseNode: (node: string) => void, edit?: (message: any) => void,
 *   at: number | null, streamed?: {node: string, text: string}[], beat: string,
 *   saw?: {effect: string, shown: [number, number][]}[], adopted?: {from: string, count: number} | null}} props  `mark` stands for which messages it has, `beat` for when it is
 *   asked again whose models were shown them
 */
export function Thread({ run, thread, n, total, mark, live, chooseNode, edit, at, streamed = [], beat, saw, adopted }) {
  const [, again] = useState(0);
  const [trouble, setTrouble] = useState(null);
  /**
   * What was read of it, page by page: how the thread stood when a page was asked for, and how many of its messages are known, with the thread's mark up to there.
   * @typedef {{key: string, messages: any[], asked: Map<number, string>, known: Map<number, {count: number, mark?: string}>, turn: number}} Pages
   */
  const pages = useRef(/** @type {Pages} */ ({ key: '', messages: [], asked: new Map(), known: new Map(), turn: 0 }));
  const key = `${run}/${thread}/${at ?? ''}`;
  if (pages.current.key !== key) pages.current = { key, messages: [], asked: new Map(), known: new Map(), turn: 0 };
  const kept = pages.current;
  const stand = `${total} ${mark}`;
  const read = (/** @type {number} */ page) => {
    const first = page * PAGE;
    const whole = Math.min(PAGE, total - first);
    if (whole <= 0 || kept.asked.get(page) === stand) return;
    kept.asked.set(page, stand);
    // What is known is not read once more, unless it is little: the mark before what follows tells whether it still holds.
    const known = kept.known.get(page);
    const count = known && known.count > FEW && known.count <= whole ? known.count : 0;
    source.thread(run, thread, { from: first + count, limit: Math.max(1, whole - count), at }).then(
      (got) => {
        if (pages.current !== kept) return;
        setTrouble(null);
        if (count && got.before !== known?.mark) {
          // Something was taken away from the thread (E-09): all is read anew.
          kept.known.delete(page);
          kept.asked.delete(page);
          kept.turn++;
        } else {
          const more = got.messages.slice(0, whole - count);
          more.forEach((/** @type {any} */ message, /** @type {number} */ i) => (kept.messages[first + count + i] = message));
          kept.known.set(page, { count: count + more.length, mark: more.length ? got.mark : got.before });
        }
        again((v) => v + 1);
      },
      (error) => {
        if (pages.current !== kept) return;
        kept.asked.delete(page);
        setTrouble(error);
      },
    );
  };
  const [range, setRange] = useState(/** @type {[number, number]} */ ([0, 0]));
  const { value: readers } = useAsked(() => (total ? source.readers(run, thread, { from: range[0] * PAGE, limit: (range[1] - range[0] + 1) * PAGE, at }).then((/** @type {any} */ got) => ({ ...got, key })) : Promise.resolve(undefined)), [key, total > 0, ...range, beat]);
  const readersOf = (/** @type {number} */ i) => (readers?.key === key ? readers.readers[i - readers.from] : undefined);
  const need = (/** @type {number} */ from, /** @type {number} */ to) => {
    const [low, high] = [Math.floor(from / PAGE), Math.floor(Math.max(from, to) / PAGE)];
    setRange((was) => (was[0] === low && was[1] === high ? was : [low, Math.min(high, low + 9)]));
    for (const page of kept.asked.keys()) {
      if (page >= low - BESIDE && page <= high + BESIDE) continue;
      kept.asked.delete(page);
      kept.known.delete(page);
      kept.messages.fill(undefined, page * PAGE, (page + 1) * PAGE);
    }
    for (let page = low; page <= high; page++) read(page);
  };
  useEffect(() => setTrouble(null), [key]);
  const extra = live ? streamed.filter((one) => one.text) : [];
  return html`${trouble && html`<p class="problem" role="alert"><${Text} of=${trouble.detail ?? trouble.title} /></p>`}
    <${Virtual} key=${`${run}/${thread}`} class="thread" count=${total + extra.length} guess=${110} label=${t('thread-of', { name: thread, n: count(total) })} follow=${live} need=${need} of=${`${key} ${stand} ${kept.turn}`}
      row=${(i) => {
        if (i >= total) {
          const one = extra[i - total];
          return html`<article class="message r-assistant streaming" aria-live="off"><header><span class="who">${t('role-assistant')}</span><button type="button" class="from" onClick=${() => chooseNode(one.node)}><${Text} of=${one.node} /></button><span class="tag">${t('writes')}</span></header>
            <${Long} of=${one.text.slice(-6000)} lines=${60} mono=${false} /></article>`;
        }
        const message = kept.messages[i];
        return message ? html`<${Message} message=${message} at=${i + 1} chooseNode=${chooseNode} edit=${edit} chosen=${message.n === n} seen=${readersOf(i)} calls=${callsOf(saw, message)} adopted=${i < (adopted?.count ?? 0) ? adopted?.from : ''} />` : html`<div class="message empty" aria-hidden="true"></div>`;
      }} />`;
}
