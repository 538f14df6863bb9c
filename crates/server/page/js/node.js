/** A node: what it is, what it asked for as it was sent, what came back, and why it waited (S-24). */
import { html, Text, Status, Problem, useAsked } from './ui.js';
import { Json, Long } from './json.js';
import { Content, ToolCall } from './thread.js';
import { standing, visitAt } from './model.js';
import { source } from './source.js';
import { t, wordOf } from './words.js';
import { plain } from './text.js';
import { duration, count } from './format.js';

/** What a model said: its words, its calls, and the rest as data. */
function Reply({ of }) {
  if (!of || typeof of !== 'object') return html`<${Json} of=${of} />`;
  const { text, tool_calls, tokens, ...rest } = of;
  const more = Object.fromEntries(Object.entries({ ...rest, tokens }).filter(([, value]) => value !== null && value !== undefined));
  return html`${typeof text === 'string' && text && html`<${Content} of=${text} prose=${true} />`}${(Array.isArray(tool_calls) ? tool_calls : []).map((call) => html`<${ToolCall} call=${call} />`)}
    ${Object.keys(more).length > 0 && html`<${Json} of=${more} open=${0} />`}`;
}

/** One call with what was sent and what came of it. */
function Call({ call, at }) {
  const bad = call.fault !== undefined && call.fault !== null;
  return html`<details class=${`node-call k-${call.tool ? 'tool' : 'model'}`} open=${at < 2}>
    <summary><b><${Text} of=${call.tool ?? t('model')} max=${80} /></b> <span class="mono muted"><${Text} of=${call.effect} max=${60} /></span>
      ${call.reused_from && html` <span class="tag is-reused">↺ <${Text} of=${call.reused_from.run ?? call.reused_from} max=${60} /></span>`}
      ${bad && html` <${Status} of="failed" />`} ${call.took_ms !== undefined && html`<span class="muted">${duration(call.took_ms)}</span>`}</summary>
    ${call.arguments !== undefined && html`<h4>${t('arguments')}</h4><${Json} of=${call.arguments} />`}
    ${call.request !== undefined && call.request !== null && html`<details><summary class="h4">${t('request-as-sent')}</summary><${Json} of=${call.request} open=${call.request.messages?.length > 12 ? 2 : 4} /></details>`}
    ${call.reply !== undefined && html`<h4>${t('reply')}</h4><${Reply} of=${call.reply} />`}
    ${call.output !== undefined && html`<h4>${t('output')}</h4><${Json} of=${call.output} />`}
    ${bad && html`<h4>${t('fault')}</h4><${Fault} of=${call.fault} />`}
    ${call.printed && html`<h4>${t('printed')}</h4><${Long} of=${typeof call.printed === 'string' ? call.printed : JSON.stringify(call.printed, null, 1)} />`}
  </details>`;
}

/** A fault: its kind, what it says, and what is behind it. */
export function Fault({ of }) {
  if (!of) return null;
  const { kind, message, ...rest } = typeof of === 'string' ? { kind: '', message: of } : of;
  return html`<div class="fault"><b class="mono"><${Text} of=${kind} /></b> <${Long} of=${message ?? ''} mono=${false} />${Object.keys(rest).length > 0 && html`<details><summary class="muted">${t('details')}</summary><${Json} of=${rest} open=${4} /></details>`}</div>`;
}

/** Why a call was made again in a fork, or after a resume (E-29): of the node `own`. @param {any} one @param {string} own */
export function because(one, own) {
  if (!one?.why) return '';
  const other = one.node && one.node !== own;
  return t(`afresh-${one.why}${one.node ? (other ? '-of' : '-own') : ''}`, { node: plain(one.node ?? ''), tool: plain(one.tool ?? '') });
}

/** Whom it waited for, and why. */
function Waits({ of, title, choose }) {
  if (!of?.length) return null;
  return html`<h3>${title}</h3><ul class="waits">${of.slice(0, 60).map((one) => html`<li><button type="button" class="from" onClick=${() => choose(one.node)}><${Text} of=${one.node} max=${80} /></button> <span class="muted"><${Text} of=${one.why} max=${300} /></span></li>`)}</ul>`;
}

/** @param {{model: any, run: string, node: string, n: number, at: number | null, explain: any, choose: (node: string | null) => void, edit?: (what: any) => void}} props */
export function NodePanel({ model, run, node, n, at, explain, choose }) {
  const told = model.nodes.find((one) => one?.node === node);
  const visit = told && visitAt(told, n);
  const word = visit ? standing(told, visit, n, model) : told?.skipped ? 'skipped' : 'waits';
  const moved = `${word}/${visit?.calls.length}/${visit?.ended?.[0]}`;
  // What had not begun is asked for as it is now, which is known of it in any case, and nothing that came later is shown.
  const then = at !== null && told && visitAt(told, at) ? at : null;
  const { value, error } = useAsked(() => source.node(run, node, { at: then }), [run, node, then, moved]);
  const mine = value && (value.node === node || !value.node) ? value : undefined;
  const time = explain && at === null ? explain : null;
  const recovery = (model.recovery ?? []).filter((rung) => rung.node === node && rung.n <= n);
  return html`<div class="panel-in">
    <header class="panel-head"><div><h2><${Text} of=${node} max=${120} /></h2>${told?.name && told.name !== told.id && html`<p class="muted"><${Text} of=${told.name} max=${200} /></p>`}</div>
      ${told && html`<${Status} of=${word} />`}<button type="button" class="ghost" aria-label=${t('close')} onClick=${() => choose(null)}>✕</button></header>
    <dl class="facts">
      ${told?.thread && html`<div><dt>${t('thread')}</dt><dd><${Text} of=${told.thread} /></dd></div>`}
      ${visit?.started && html`<div><dt>${t('took')}</dt><dd>${visit.ended && visit.ended[0] <= n ? duration(visit.ended[1] - visit.started[1]) : t('goes-on')}</dd></div>`}
      ${time?.worked_ms > 0 && html`<div><dt>${t('worked')}</dt><dd>${duration(time.worked_ms)}</dd></div>`}
      ${time?.queued_ms > 0 && html`<div><dt>${t('queued')}</dt><dd>${duration(time.queued_ms)}</dd></div>`}
      ${time?.waited?.person_ms > 0 && html`<div><dt>${t('waited-person')}</dt><dd>${duration(time.waited.person_ms)}</dd></div>`}
      ${time?.waited?.retry_ms > 0 && html`<div><dt>${t('waited-retry')}</dt><dd>${duration(time.waited.retry_ms)}</dd></div>`}
      ${visit?.tokens > 0 && (n >= model.events || visit.ended?.[0] <= n) && html`<div><dt>${t('tokens')}</dt><dd>${count(visit.tokens)}</dd></div>`}
      ${visit && told.visits.indexOf(visit) > 0 && html`<div><dt>${t('visits')}</dt><dd>${told.visits.indexOf(visit) + 1}</dd></div>`}
    </dl>
    ${visit?.fault && word === 'failed' && html`<h3>${t('fault')}</h3><${Fault} of=${visit.fault} />`}
    ${recovery.length > 0 && html`<h3>${t('recovery')}</h3><ol class="rungs">${recovery.map((rung) => html`<li><span class="mono muted">#${rung.n}</span> <b><${Text} of=${wordOf('action', rung.action ?? rung.what)} /></b> <${Text} of=${rung.reason ?? rung.because ?? rung.fault?.message ?? ''} max=${400} /></li>`)}</ol>`}
    <${Waits} of=${explain?.waited_for} title=${t(visit?.started ? 'waited-for' : 'waits-for')} choose=${choose} />
    ${explain?.messages_from?.length > 0 && html`<h3>${t('messages-from')}</h3><p>${explain.messages_from.slice(-24).map((from) => html`<button type="button" class="from" onClick=${() => choose(from)}><${Text} of=${from} max=${60} /></button> `)}${explain.messages_from.length > 24 ? html`<span class="muted">+${explain.messages_from.length - 24}</span>` : ''}</p>`}
    ${explain?.afresh?.length > 0 && html`<h3>${t('afresh')}</h3><ul class="waits">${explain.afresh.map((one) => html`<li><span class="mono"><${Text} of=${one.call ?? one.effect} max=${80} /></span> <span class="muted">${because(one, node)}</span></li>`)}</ul>`}
    <${Problem} of=${error} />
    ${visit && mine?.calls?.length > 0 && html`<h3>${t('calls-of')}</h3>${mine.calls.map((call, i) => html`<${Call} key=${call.effect} call=${call} at=${i} />`)}`}
    ${visit && mine?.answers?.length > 0 && html`<h3>${t('answers')}</h3>${mine.answers.map((one) => html`<div class="long"><b><${Text} of=${one.by ?? ''} /></b><${Json} of=${one.answer} /></div>`)}`}
    ${mine?.definition && html`<details class="definition"><summary class="h3">${t('definition')}${mine.place && html` <span class="muted mono place" title=${t(mine.place.changed ? 'place-changed' : 'place-why')}><${Text} of=${`${mine.place.file}:${mine.place.line}`} max=${160} />${mine.place.changed ? ' ≠' : ''}</span>`}</summary><${Json} of=${mine.definition} /></details>`}
  </div>`;
}
