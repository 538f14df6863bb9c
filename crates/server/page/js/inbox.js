/** All questions of all runs to people; they are answered here, also while a run goes on (S-25). */
import { html, Text, Problem, useEffect, useState, useStore, store, said } from './ui.js';
import { Field, initial } from './form.js';
import { Json } from './json.js';
import { Markdown } from './markdown.js';
import { source, connection } from './source.js';
import { link } from './route.js';
import { t } from './words.js';
import { exactly, when } from './format.js';

/** The questions that are open, of all runs. */
export const asks = store(/** @type {any[]} */ ([]));

/** Looks again. */
export async function look() {
  try {
    const got = await source.asks();
    const before = asks.get().length;
    asks.set(got.asks);
    if (got.asks.length > before) said.set(t('new-asks', { n: got.asks.length }));
  } catch {
    // It is said elsewhere that the server can't be reached.
  }
}

/** One question, with what answers it. @param {{ask: any, run: string, done?: () => void, named?: boolean}} props */
export function Ask({ ask, run, done, named = false }) {
  const viewer = useStore(connection).role === 'viewer' || Boolean(source.sealed);
  const kind = ask.kind;
  const [value, set] = useState(() => (kind === 'edit' ? ask.value : ask.schema ? initial(ask.schema) : ''));
  const [why, setWhy] = useState('');
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState(null);
  const [gone, setGone] = useState(false);
  const answer = async (/** @type {any} */ body) => {
    setBusy(true);
    setTrouble(null);
    try {
      await source.answer(run, ask.ask, body);
      setGone(true);
      said.set(t('answered'));
      asks.set(asks.get().filter((one) => !(one.run_id === run && one.ask === ask.ask)));
      done?.();
    } catch (error) {
      setTrouble(error);
    }
    setBusy(false);
  };
  const [turn, setTurn] = useState(0);
  // A value that is edited stays of its type, if nothing else is said.
  const schema = ask.schema ?? (kind === 'edit' && typeof ask.value !== 'string' ? { type: Array.isArray(ask.value) ? 'array' : typeof ask.value } : { type: 'string' });
  return html`<form class=${`ask k-${kind}${gone ? ' gone' : ''}`} onSubmit=${(event) => (event.preventDefault(), answer({ answer: value }))} aria-label=${t('ask-of', { node: ask.node })}>
    <header><span class="ask-kind">${t(`ask-${kind}`)}</span>
      ${named && html`<a href=${link('run', run, { node: ask.node })}><${Text} of=${ask.run_name ?? run} max=${60} /></a>`}
      <span class="muted"><${Text} of=${ask.node} max=${60} /></span><span class="grow"></span>
      ${named && ask.asked && html`<span class="muted" title=${exactly(ask.asked)}>${t('asked')} ${when(ask.asked)}</span>`}${ask.until && html`<span class=${ask.expired ? 'tag' : 'muted'}>${t(ask.expired ? 'expired' : 'until')} ${when(ask.until)}</span>`}</header>
    ${named && html`<p class="ask-run muted"><span class="mono"><${Text} of=${run} max=${80} /></span>${ask.dialect && html` · ${t(`dialect-${ask.dialect}`)}`}${ask.started && html` · <span title=${exactly(ask.started)}>${t('begun')} ${when(ask.started)}</span>`}</p>`}
    <div class="ask-prompt"><${Markdown} of=${String(ask.prompt ?? '')} /></div>
    ${ask.tool && html`<div class="call k-tool"><span class="call-name">⚒ <${Text} of=${ask.tool} /></span><${Json} of=${ask.arguments ?? {}} open=${4} /></div>`}
    ${kind !== 'edit' && ask.value !== undefined && ask.value !== null && html`<div class="ask-value"><${Json} of=${ask.value} open=${4} /></div>`}
    ${ask.expired && html`<p class="muted">${t('expired-why')}</p>`}
    ${!viewer && !gone && !ask.expired && (kind === 'approve'
      ? html`<div class="ask-acts"><button type="button" class="primary" disabled=${busy} onClick=${() => answer({ answer: 'yes' })}>${t('approve')}</button>
          <input type="text" aria-label=${t('why-not')} placeholder=${t('why-not')} value=${why} onInput=${(event) => setWhy(event.target.value)} />
          <button type="button" class="danger" disabled=${busy} onClick=${() => answer({ answer: 'no', ...(why ? { why } : {}) })}>${t('refuse')}</button></div>`
      : html`<${Field} key=${turn} schema=${schema} value=${value} set=${set} top=${true} required=${kind !== 'edit'} name=${kind === 'edit' ? t('edit-text') : t('your-answer')} />
          <div class="ask-acts"><button class="primary" disabled=${busy}>${t('send-answer')}</button>${kind === 'edit' && html`<button type="button" disabled=${busy} onClick=${() => (set(ask.value), setTurn(turn + 1))}>${t('as-it-was')}</button>`}</div>`)}
    ${gone && html`<p class="status is-ran">✓ ${t('answered')}</p>`}
    <${Problem} of=${trouble} />
  </form>`;
}

export function Inbox() {
  const all = useStore(asks);
  useEffect(() => void look(), []);
  return html`<main class="page narrow" id="main"><h1>${t('inbox')}</h1><p class="muted">${all.length ? t('inbox-why', { n: all.length }) : ''}</p>
    ${all.map((ask) => html`<${Ask} key=${`${ask.run_id}/${ask.ask}`} ask=${ask} run=${ask.run_id} named=${true} />`)}
    ${!all.length && html`<div class="nothing"><b>${t('inbox-empty')}</b><p class="muted">${t('inbox-empty-why')}</p></div>`}</main>`;
}
