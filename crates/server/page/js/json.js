/** A value as a tree that folds: every part of it is text. */
import { html, Text, useState } from './ui.js';
import { t } from './words.js';

const MOST = 100;

/** A long text that folds. @param {{of: string, lines?: number, mono?: boolean}} props */
export function Long({ of, lines = 14, mono = true }) {
  const [open, setOpen] = useState(false);
  const text = String(of ?? '');
  const long = text.length > lines * 110 || text.split('\n', lines + 1).length > lines;
  const shown = open || !long ? text.slice(0, 200_000) : text.split('\n').slice(0, lines).join('\n').slice(0, lines * 110);
  return html`<div class=${`long${mono ? ' mono' : ''}`}><span class="as-is"><${Text} of=${shown} />${long && !open ? '…' : ''}</span>
    ${long && html`<button type="button" class="more" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? t('less') : t('all-of', { n: text.length })}</button>`}
    ${open && text.length > 200_000 && html`<p class="muted">${t('cut', { n: text.length - 200_000 })}</p>`}</div>`;
}

/** @param {{of: any, depth?: number, open?: number}} props */
export function Json({ of, depth = 0, open = 2 }) {
  const [unfolded, setOpen] = useState(depth < open);
  const [all, setAll] = useState(false);
  if (of === null || of === undefined) return html`<span class="j-null">null</span>`;
  if (typeof of === 'string') return depth ? html`<span class="j-text">"<${JsonText} of=${of} />"</span>` : html`<${Long} of=${of} />`;
  if (typeof of !== 'object') return html`<span class="j-num">${String(of)}</span>`;
  const list = Array.isArray(of);
  const entries = list ? of.map((value, i) => [i, value]) : Object.entries(of);
  const [before, after] = list ? ['[', ']'] : ['{', '}'];
  if (!entries.length) return html`<span class="muted">${before + after}</span>`;
  if (list && entries.length <= 8 && entries.every(([, value]) => typeof value !== 'object' && String(value).length < 18))
    return html`<span class="json">[${entries.map(([i, value]) => html`${i ? ', ' : ''}<${Json} of=${value} depth=${depth + 1} />`)}]</span>`;
  return html`<div class=${`json${depth ? '' : ' top'}`}>
    <button type="button" class="twist" aria-expanded=${String(unfolded)} onClick=${() => setOpen(!unfolded)}><i aria-hidden="true">${unfolded ? '▾' : '▸'}</i> <span class="muted">${before}${unfolded ? '' : ` ${entries.length} ${after}`}</span></button>
    ${unfolded && html`<ul>${entries.slice(0, all ? 5000 : MOST).map(([key, value]) => html`<li>${!list && html`<b class="j-key"><${Text} of=${key} max=${200} /></b>: `}<${Json} of=${value} depth=${depth + 1} open=${open} /></li>`)}
      ${entries.length > MOST && !all && html`<li><button type="button" class="more" onClick=${() => setAll(true)}>${t('all-of', { n: entries.length })}</button></li>`}</ul>
      <span class="muted">${after}</span>`}
  </div>`;
}

/** A text in a tree. @param {{of: string}} props */
function JsonText({ of }) {
  const [open, setOpen] = useState(false);
  if (of.length <= 300) return html`<${Text} of=${of} />`;
  return html`<${Text} of=${open ? of.slice(0, 200_000) : of.slice(0, 280)} /><button type="button" class="more" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? t('less') : t('all-of', { n: of.length })}</button>`;
}
