/** All runs: live, searched, filtered, by keyboard; a page at a time, however many there are (S-21). */
import { html, Text, Status, Problem, useEffect, useMemo, useRef, useState, useStore } from './ui.js';
import { asks } from './inbox.js';
import { Virtual } from './virtual.js';
import { source } from './source.js';
import { route, adjust, go, link } from './route.js';
import { statusOf } from './model.js';
import { t } from './words.js';
import { plain } from './text.js';
import { when, exactly, duration, count, cost, tokens, moment } from './format.js';

const PAGE = 100;
const STATUSES = ['running', 'waiting', 'completed', 'failed', 'cancelled'];
const DIALECTS = ['plan', 'steps', 'workflow', 'agent', 'evolve'];

function Row({ run, at, chosen, choose, waits }) {
  const took = moment(run.ended) - moment(run.started);
  return html`<a class=${`run-row${chosen ? ' chosen' : ''}`} href=${link('run', run.run_id)} id=${`run-${at}`} onMouseEnter=${() => choose(at)} tabindex="-1">
    <${Status} of=${statusOf(run)} why=${statusOf(run) === 'stopped' ? t('stopped-why') : ''} />
    <span class="run-what"><span class="run-name"><b><${Text} of=${run.name ?? run.run_id} max=${100} /></b> <span class="mono muted"><${Text} of=${run.run_id} max=${60} /></span>
      ${waits > 0 && html`<span class="tag is-asks">◆ ${t('n-ask', { n: waits })}</span>`}</span>
      ${run.fault && html`<span class="run-fault" title=${plain(run.fault.message ?? run.fault.kind).slice(0, 600)}><${Text} of=${run.fault.message ?? run.fault.kind} max=${300} /></span>`}</span>
    <span class="run-dialect">${run.dialect ? t(`dialect-${run.dialect}`) : ''}</span>
    <span class="run-when" title=${exactly(run.started)}>${when(run.started)}</span>
    <span class="run-took num">${Number.isNaN(took) ? (statusOf(run) === 'running' ? duration(Date.now() - moment(run.started)) : '–') : duration(took)}</span>
    <span class="run-tokens num" title=${t('tokens')}>${tokens(run.usage) ? count(tokens(run.usage)) : '–'}</span>
    <span class="run-cost num" title=${t('cost')}>${cost(run.usage?.cost)}</span>
  </a>`;
}

export function Runs() {
  const { query } = useStore(route);
  // Who waits for a person: the open questions, by run.
  const open = useStore(asks);
  const waiting = useMemo(() => {
    const all = new Map();
    for (const ask of open) all.set(ask.run_id, (all.get(ask.run_id) ?? 0) + 1);
    return all;
  }, [open]);
  const [list, setList] = useState(/** @type {{key: string, runs: any[], next: string | null, error: any, busy: boolean}} */ ({ key: '', runs: [], next: null, error: null, busy: true }));
  const [at, setAt] = useState(0);
  const [typed, setTyped] = useState(query.text ?? '');
  const search = useRef(/** @type {any} */ (null));
  // What other runs began, such as the tasks of an evolution, is found by a search, and listed for the run that began it.
  const asked = { status: query.status, dialect: query.dialect, text: query.text, ...(query.parent ? { parent: query.parent } : query.text ? {} : { children: 'no' }) };
  const key = JSON.stringify(asked);
  const now = useRef(key);
  now.current = key;
  const busy = useRef(false);

  const more = async (/** @type {string | null} */ cursor) => {
    if (busy.current) return;
    busy.current = true;
    try {
      const got = await source.runs({ ...asked, limit: PAGE, cursor });
      if (now.current === key) setList((was) => ({ key, runs: cursor && was.key === key ? was.runs.concat(got.runs) : got.runs, next: got.next ?? null, error: null, busy: false }));
    } catch (error) {
      if (now.current === key) setList((was) => ({ ...was, key, error, busy: false }));
    }
    busy.current = false;
  };
  /** The first page again: what is new goes before, what has changed takes its place. */
  const fresh = async () => {
    if (busy.current || document.hidden) return;
    try {
      const got = await source.runs({ ...asked, limit: PAGE });
      if (now.current !== key) return;
      setList((was) => {
        if (was.key !== key || !was.runs.length) return { key, runs: got.runs, next: got.next ?? null, error: null, busy: false };
        const ids = new Set(got.runs.map((/** @type {any} */ run) => run.run_id));
        const last = got.runs.at(-1);
        const from = last ? was.runs.findIndex((run) => run.run_id === last.run_id) : -1;
        const rest = from >= 0 ? was.runs.slice(from + 1) : was.runs.slice(PAGE);
        return { ...was, error: null, runs: got.runs.concat(rest.filter((run) => !ids.has(run.run_id))) };
      });
    } catch {
      // The banner says that the server is away.
    }
  };
  useEffect(() => {
    busy.current = false;
    setAt(0);
    more(null);
    const timer = setInterval(fresh, 2000);
    return () => clearInterval(timer);
  }, [key]);
  useEffect(() => {
    const timer = setTimeout(() => typed !== (query.text ?? '') && adjust({ text: typed || undefined }), 200);
    return () => clearTimeout(timer);
  }, [typed]);
  // Keys mean what is seen when they are pressed: effects come a moment after that.
  const seen = useRef({ list, at });
  seen.current = { list, at };
  useEffect(() => {
    const keys = (/** @type {KeyboardEvent} */ event) => {
      const { list, at } = seen.current;
      const typing = /** @type {any} */ (event.target).closest?.('input,textarea,select,dialog');
      if (event.key === '/' && !typing) return event.preventDefault(), search.current?.focus();
      if (typing && typing !== search.current) return undefined;
      const step = { ArrowDown: 1, ArrowUp: -1, j: typing ? 0 : 1, k: typing ? 0 : -1, PageDown: 12, PageUp: -12 }[event.key];
      if (step) {
        event.preventDefault();
        setAt((was) => Math.max(0, Math.min(list.runs.length - 1, was + step)));
      } else if (event.key === 'Enter' && list.runs[at] && (typing || event.target === document.body || /** @type {any} */ (event.target).classList?.contains('virtual'))) {
        go('run', list.runs[at].run_id);
      }
      return undefined;
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, []);
  const filter = (/** @type {string} */ name, /** @type {string[]} */ all, /** @type {(one: string) => string} */ word) => html`<label class="filter"><span class="unseen">${t(name)}</span>
    <select value=${query[name] ?? ''} onChange=${(event) => adjust({ [name]: event.target.value || undefined })}><option value="">${t(`any-${name}`)}</option>${all.map((one) => html`<option value=${one}>${word(one)}</option>`)}</select></label>`;
  const narrowed = Boolean(query.text || query.status || query.dialect);
  return html`<main class="page runs" id="main">
    <div class="page-head"><h1>${t('runs')}</h1>${query.parent && html`<span class="tag">${t('begun-by')} <${Text} of=${query.parent} max=${60} /> <button type="button" class="ghost small" aria-label=${t('all-runs')} onClick=${() => adjust({ parent: undefined })}>✕</button></span>`}
      <input ref=${search} type="search" class="grow" aria-label=${t('search-runs')} placeholder=${t('search-runs')} value=${typed} onInput=${(event) => setTyped(event.target.value)} />
      ${filter('status', STATUSES, (one) => t(one))}${filter('dialect', DIALECTS, (one) => t(`dialect-${one}`))}
      ${!source.sealed && html`<a class="button primary" href=${link('start')}>${t('start-run')}</a>`}</div>
    <${Problem} of=${list.error} />
    ${list.runs.length > 0 && html`<div class="run-row head" aria-hidden="true"><span>${t('status')}</span><span>${t('name')}</span><span class="run-dialect">${t('dialect')}</span><span class="run-when">${t('started')}</span><span class="num run-took">${t('took')}</span><span class="num run-tokens">${t('tokens')}</span><span class="num run-cost">${t('cost')}</span></div>
    <${Virtual} class="run-list" count=${list.runs.length} guess=${46} label=${t('runs-keys')} keyOf=${(i) => list.runs[i]?.run_id ?? i} to=${at}
      need=${(_, last) => list.next && last > list.runs.length - 30 && more(list.next)}
      row=${(i) => html`<${Row} run=${list.runs[i]} at=${i} chosen=${i === at} choose=${() => {}} waits=${waiting.get(list.runs[i]?.run_id) ?? 0} />`} />`}
    ${!list.runs.length && !list.busy && !list.error && html`<div class="nothing"><b>${narrowed ? t('no-runs-fit') : t('no-runs')}</b>${narrowed ? html`<p><button type="button" onClick=${() => (setTyped(''), adjust({ text: undefined, status: undefined, dialect: undefined }))}>${t('show-all')}</button></p>` : html`<p class="muted">${t('no-runs-why')}</p><pre class="mono">selvedge run examples/squares/task.json</pre>`}</div>`}
  </main>`;
}
