/** How an evolution goes: its batches are runs, and each gives its measures when it is done (S-27, V-11). */
import { html, Text, Status, Problem, useAsked, useEffect, useMemo, useState } from './ui.js';
import { source } from './source.js';
import { link } from './route.js';
import { statusOf } from './model.js';
import { t } from './words.js';
import { count, cost, duration, when } from './format.js';

/** The evolution that a batch is of: ids of its batches end with their numbers. @param {string} id */
export const evolutionOf = (id) => id.replace(/-\d+$/, '');
const number = (/** @type {string} */ id) => Number(/-(\d+)$/.exec(id)?.[1] ?? 0);
const whole = (/** @type {number} */ value) => `${Math.round(value * 100)} %`;
const percent = (/** @type {number | null | undefined} */ value) => (value === null || value === undefined ? '–' : `${(value * 100).toFixed(1)} %`);

/** What a batch that is done has given; kept, as it changes no more. @type {Map<string, any>} */
const kept = new Map();

/** A batch with its measures, or with how far it has come. @param {any} run */
async function measured(run) {
  if (run.status === 'completed') {
    if (!kept.has(run.run_id)) kept.set(run.run_id, (await source.run(run.run_id, { brief: 'yes' })).output);
    return { run, ...kept.get(run.run_id) };
  }
  const got = await source.runs({ parent: run.run_id, limit: 500 });
  return { run, begun: got.runs.length, ended: got.runs.filter((/** @type {any} */ one) => one.ended).length };
}

/** All of the list's pages. @param {any} asked */
async function all(asked) {
  const out = [];
  for (let cursor = null; ; ) {
    const got = await source.runs({ ...asked, limit: 500, cursor });
    out.push(...got.runs);
    cursor = got.next;
    if (!cursor || out.length >= 5000) return out;
  }
}

/** The same, looked at again every two seconds. @template T @param {() => Promise<T>} ask @param {any[]} of */
function useFresh(ask, of) {
  const [beat, setBeat] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setBeat((was) => was + 1), 2000);
    return () => clearInterval(timer);
  }, []);
  return useAsked(ask, [...of, beat]);
}

/**
 * A measure over the batches: a line, with its interval as a band.
 * @param {{title: string, why: string, points: {x: number, y: number, low?: number, high?: number}[], most?: number, say: (value: number) => string,
 *   axis?: (value: number) => string}} props
 */
function Chart({ title, why, points, most = 0, say, axis = say }) {
  const [w, h, left, bottom, top] = [300, 140, 38, 20, 8];
  const xs = points.map((point) => point.x);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const high = most || Math.max(...points.map((point) => point.high ?? point.y), 0) || 1;
  const X = (/** @type {number} */ x) => left + 8 + ((w - left - 20) * (last > first ? (x - first) / (last - first) : 0.5));
  const Y = (/** @type {number} */ y) => top + (h - bottom - top) * (1 - Math.min(1, y / high));
  const at = (/** @type {number} */ x, /** @type {number} */ y) => `${X(x).toFixed(1)} ${Y(y).toFixed(1)}`;
  const line = points.map((point) => at(point.x, point.y)).join('L');
  const banded = points.filter((point) => point.low !== undefined);
  const band = banded.length > 1 ? `M${banded.map((point) => at(point.x, point.high ?? point.y)).join('L')}L${banded.slice().reverse().map((point) => at(point.x, point.low ?? point.y)).join('L')}Z` : '';
  const now = points[points.length - 1];
  const every = Math.ceil(points.length / 8);
  return html`<figure class="chart"><figcaption><b>${title}</b> <span class="num">${now ? say(now.y) : '–'}</span>${now?.low !== undefined && html` <small class="muted">${t('interval', { low: say(now.low), high: say(now.high ?? now.y) })}</small>`}<small class="muted">${why}</small></figcaption>
    <svg viewBox=${`0 0 ${w} ${h}`} role="img" aria-label=${`${title}: ${points.map((point) => `${t('batch')} ${point.x} ${say(point.y)}`).join(', ')}`}>
      ${[0, 0.5, 1].map((part) => html`<path class="grid" d=${`M${left} ${Y(high * part)}H${w}`} /><text x=${left - 6} y=${Y(high * part) + 3.5} text-anchor="end">${axis(high * part)}</text>`)}
      ${band && html`<path class="band" d=${band} />`}${points.length > 1 && html`<path class="line" d=${`M${line}`} />`}
      ${points.map((point, i) => html`${point.low !== undefined && html`<path class="whisker" d=${`M${at(point.x, point.low)}L${at(point.x, point.high ?? point.y)}`} />`}<circle cx=${X(point.x)} cy=${Y(point.y)} r="3"><title>${`${t('batch')} ${point.x}: ${say(point.y)}`}</title></circle>${i % every === 0 && html`<text x=${X(point.x)} y=${h - 5} text-anchor="middle">${point.x}</text>`}`)}
    </svg></figure>`;
}

/** Sums of all roles. @param {any} measures @param {(role: any) => number} of */
const sum = (measures, of) => Object.values(measures.roles ?? {}).reduce((/** @type {number} */ all, /** @type {any} */ role) => all + of(role), 0);
const tokensOf = (/** @type {any} */ measures) => sum(measures, (role) => role.input + role.output);
const costOf = (/** @type {any} */ measures) => sum(measures, (role) => role.cost);

/** One evolution: its measures over its batches, and each batch. @param {{id: string}} props */
function Evolution({ id }) {
  const { value, error } = useFresh(async () => {
    const runs = (await all({ dialect: 'evolve', text: id })).filter((run) => evolutionOf(run.run_id) === id);
    return Promise.all(runs.sort((a, b) => number(a.run_id) - number(b.run_id)).map(measured));
  }, [id]);
  const batches = value ?? [];
  const done = useMemo(() => batches.filter((batch) => batch.own), [value]);
  const points = (/** @type {(batch: any) => number | null | undefined} */ of) => done.map((batch) => ({ x: batch.batch, y: of(batch) ?? NaN })).filter((point) => Number.isFinite(point.y));
  const scored = done.filter((batch) => batch.total.accuracy).map((batch) => ({ x: batch.batch, y: batch.total.accuracy.value, low: batch.total.accuracy.low, high: batch.total.accuracy.high }));
  const rate = (/** @type {any} */ measures) => (measures.calls ? measures.succeeded / measures.calls : null);
  const total = done.at(-1)?.total;
  const name = batches[0]?.run.name?.replace(/ batch \d+$/, '') ?? id;
  return html`<section class="evolution"><header class="panel-head"><div><h2><${Text} of=${name} max=${100} /> <small class="mono muted"><${Text} of=${id} max=${60} /></small></h2>
      ${total && html`<p class="muted">${t('evolution-sums', { batches: done.length, done: total.done, right: total.right, scored: total.scored })}</p>`}</div>${batches.length > 0 && html`<${Status} of=${statusOf(batches.at(-1).run)} />`}</header>
    <${Problem} of=${error} />
    ${value && !batches.length && html`<p class="muted">${t('no-evolution')}</p>`}
    ${done.length > 0 && html`<div class="charts">
      ${scored.length > 0 && html`<${Chart} title=${t('accuracy')} why=${t('accuracy-why')} points=${scored} most=${1} say=${percent} axis=${whole} />`}
      <${Chart} title="EGL" why=${t('egl-why')} points=${points((batch) => batch.total.egl)} say=${(/** @type {number} */ value) => value.toFixed(3)} />
      <${Chart} title=${t('success')} why=${t('success-why')} points=${points((batch) => rate(batch.total))} most=${1} say=${percent} axis=${whole} />
      ${costOf(total) > 0 ? html`<${Chart} title=${t('cost')} why=${t('cost-why')} points=${points((batch) => costOf(batch.own) / Math.max(1, batch.own.done))} say=${cost} />`
        : html`<${Chart} title=${t('tokens-title')} why=${t('tokens-why')} points=${points((batch) => tokensOf(batch.own) / Math.max(1, batch.own.done))} say=${(/** @type {number} */ value) => count(Math.round(value))} />`}</div>`}
    ${batches.length > 0 && html`<div class="scroll-x" tabindex="0" role="group" aria-label=${t('batches')}><table class="compare batches"><thead><tr>${['batch', 'status', 'tasks', 'accuracy', 'tools-created', 'tools-reused', 'tools-mended', 'tools-merged', 'success', 'EGL', 'tokens', 'cost', 'took'].map((one) => html`<th scope="col">${t(one)}</th>`)}</tr></thead>
      <tbody>${batches.map((batch) => html`<tr><th scope="row"><a href=${link('run', batch.run.run_id)}>${number(batch.run.run_id)}</a></th><td><${Status} of=${statusOf(batch.run)} /></td>
        ${batch.own ? html`<td><a href=${link('runs', '', { parent: batch.run.run_id })}>${batch.own.done}</a>${batch.own.failed > 0 && html` <span class="bad">${batch.own.failed} ${t('failed')}</span>`}</td><td>${batch.own.accuracy ? html`${percent(batch.own.accuracy.value)} <small class="muted">${percent(batch.own.accuracy.low)} – ${percent(batch.own.accuracy.high)}</small>` : '–'}</td>
          <td>${batch.own.tools.created}</td><td>${batch.own.tools.reused}</td><td>${batch.own.tools.enhanced}</td><td>${batch.own.tools.merged}</td><td>${batch.own.calls ? `${batch.own.succeeded} / ${batch.own.calls}` : '–'}</td><td>${batch.own.egl === null || batch.own.egl === undefined ? '–' : batch.own.egl.toFixed(3)}</td><td>${count(tokensOf(batch.own))}</td><td>${cost(costOf(batch.own))}</td><td>${duration(batch.own.seconds * 1000)}</td>`
          : html`<td colspan="11"><a href=${link('runs', '', { parent: batch.run.run_id })}>${t('n-of', { n: batch.ended, of: batch.begun })}</a></td>`}</tr>`)}</tbody></table></div>`}</section>`;
}

/** All evolutions, and the one that is looked at. @param {{id: string}} props */
export function Evolutions({ id }) {
  const { value, error } = useFresh(() => all({ dialect: 'evolve' }), []);
  const groups = useMemo(() => {
    const found = new Map();
    for (const run of value ?? []) {
      const key = evolutionOf(run.run_id);
      found.set(key, (found.get(key) ?? []).concat(run));
    }
    return [...found];
  }, [value]);
  const shown = id || groups[0]?.[0];
  return html`<${Problem} of=${error} />${value && !groups.length ? html`<div class="nothing"><b>${t('no-evolutions')}</b><pre class="mono">selvedge evolve examples/evolve/tasks.jsonl --script examples/evolve/script.yaml</pre></div>` : ''}
    ${groups.length > 1 && html`<nav class="evolutions" aria-label=${t('evolutions')}>${groups.map(([key, runs]) => html`<a href=${link('evolution', key)} aria-current=${key === shown ? 'page' : undefined}><b><${Text} of=${runs[0].name.replace(/ batch \d+$/, '')} max=${60} /></b> <small class="muted">${t('n-batches', { n: runs.length })} · ${when(runs[0].started)}</small></a>`)}</nav>`}
    ${shown && html`<${Evolution} key=${shown} id=${shown} />`}`;
}
