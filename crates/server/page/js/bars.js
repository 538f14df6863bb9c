/** Bars of lanes: what nodes did, and how that stood at an event (S-22, S-30). */
import { html, Drawn, Text, useRef } from './ui.js';
import { isFolded, ROW } from './layout.js';
import { standing, doing, retries, frameTally, joinFill, upTo } from './model.js';
import { t, wordOf } from './words.js';
import { plain } from './text.js';
import { duration } from './format.js';

/** What is left free before the first event, in pixels. */
export const EDGE = 6;
const SIGN = { failed: '✕', cancelled: '⊘', reused: '↺', again: '⟳', asks: '◆', stopped: '◌', waiting: '◆' };

/** What a bar says of itself, in words: for screen readers and on hovering. */
export function describe(model, bar, n) {
  const node = model.nodes[bar.node];
  const visit = node.visits[bar.visit];
  const word = standing(node, visit, n, model);
  const call = doing(visit, n);
  const parts = [node.name && node.name !== node.id ? `${node.node} – ${node.name}` : node.node, t(word)];
  if (call) parts.push(call.call.kind === 'model' ? t('asks-model') : t('calls', { name: call.call.name ?? '' }));
  if (call?.attempt.reason) parts.push(call.attempt.reason);
  if (bar.t1 !== null && bar.n1 <= n) parts.push(duration(bar.t1 - bar.t0));
  const again = retries(visit, n);
  if (again) parts.push(t('retries', { n: again }));
  if (visit.fault && word === 'failed') parts.push(visit.fault.message);
  return plain(parts.join(' · '));
}

/** The parts of a bar in which a call was under way, and the waits before another try. */
function spans(visit, bar, n, X, from, to) {
  const out = [];
  if (bar.group) return out;
  for (const call of visit.calls)
    for (const attempt of call.attempts) {
      if (attempt.at[0] > n) continue;
      const end = attempt.ended && attempt.ended[0] <= n ? X(attempt.ended[0]) : to;
      const start = X(attempt.at[0]);
      if (end - start < 1.5) continue;
      const w = Math.max(2, Math.min(end, to) - start);
      // A try that had to wait for its time did so first.
      const took = attempt.ended ? attempt.ended[1] - attempt.at[1] : 0;
      const waits = attempt.after_ms ? Math.min(w, took > 0 ? (w * attempt.after_ms) / took : w) : 0;
      if (waits > 1) out.push({ x: Math.max(0, start - from), w: waits, kind: 'wait' });
      if (w - waits > 1) out.push({ x: Math.max(0, start - from) + waits, w: w - waits, kind: call.reused ? 'taken' : attempt.ok === false ? 'bad' : call.kind });
    }
  return out.length > 40 ? out.slice(-40) : out;
}

function Bar({ now, bar, chosen, folded }) {
  const { model, n, X, unit, to, groups, recovered } = now.current;
  const node = model.nodes[bar.node];
  const visit = node.visits[bar.visit];
  const future = bar.n0 > n;
  const word = future ? 'future' : standing(node, visit, n, model);
  const [left, right] = ends(bar, unit, to);
  const width = Math.max(7, right - left - 2);
  const group = bar.group ? groups.get(bar.group) : null;
  const call = word === 'running' ? doing(visit, n) : null;
  const more = group && bar.members.length > 1 ? t(group.lanes[0]?.kind === 'path' ? 'n-paths' : 'n-times', { n: bar.members.length }) : '';
  const say = word === 'asks' ? t('asks-you') : call?.call.kind === 'tool' ? call.call.name : word === 'again' ? t('again') : '';
  const again = retries(visit, n);
  const tally = group && !future ? frameTally(model, bar.members, n) : null;
  const fill = tally ? joinFill(visit, tally) : null;
  const rungs = (recovered.get(node.node) ?? []).filter((/** @type {any} */ rung) => rung.n <= n && rung.n >= bar.n0 && rung.n <= (bar.n1 ?? Infinity));
  const whole = [describe(model, bar, n), fill ? t('join-fill', fill) : '', rungs.length ? t('recovered-by', { how: plain(rungs.map((/** @type {any} */ rung) => wordOf('action', rung.action ?? rung.what)).join(', ')) }) : ''].filter(Boolean).join(' · ');
  // What of it had not happened by then.
  const then = !future && bar.n1 !== null && bar.n1 > n ? Math.max(0, Math.min(width, X(n) - left)) : null;
  const bits = future || width < 24 ? [] : spans(visit, bar, n, X, left, then === null ? right : left + then);
  const inner = folded ? tally : null;
  return html`<div class=${`bar k-${node.kind} is-${word}${chosen ? ' chosen' : ''}${group ? (folded ? ' folded' : ' open') : ''}`}
    style=${`transform:translate(${left}px,${bar.row * ROW}px);width:${width}px`} role="button" tabindex="-1" data-node=${node.node}
    title=${whole} onClick=${() => now.current.choose(node.node)}
    onDblClick=${() => bar.group && now.current.fold(bar.group)}>
    ${then !== null && html`<i class="rest" style=${`left:${then}px`}></i>`}
    ${inner && html`<i class="strip" aria-hidden="true">${['ran', 'failed', 'cancelled', 'running'].map((one) => inner[one] > 0 && html`<i class=${`is-${one}`} style=${`flex:${inner[one]}`}></i>`)}</i>`}
    ${bits.map((bit) => html`<i class=${`bit b-${bit.kind}`} style=${`left:${bit.x}px;width:${bit.w}px`}></i>`)}
    ${width > 30 && html`<span class="bar-text">${SIGN[word] && html`<b aria-hidden="true">${SIGN[word]}</b>`}${group && html`<b class="chev" aria-hidden="true"
      onClick=${(event) => (event.stopPropagation(), now.current.fold(bar.group))}>${folded ? '▸' : '▾'}</b>`}<${Text} of=${node.id} max=${60} />${
      !group && width > 130 && node.name && node.name !== node.id && html`<em><${Text} of=${node.name} max=${80} /></em>`}${more && html`<em>${more}</em>`}${fill && html`<em class=${`fill${fill.n >= fill.need ? ' met' : ''}`}>⋈ ${fill.n}/${fill.need}</em>`}${
      inner && width > 150 && ['failed', 'cancelled', 'running'].map((one) => inner[one] > 0 && html`<em class=${`is-${one}`}>${inner[one]} ${t(one)}</em>`)}${say && html`<em><${Text} of=${say} max=${40} /></em>`}${rungs.length > 0 && html`<em class="mended">⚕ ${t('recovered')}</em>`}${again > 0 && html`<em class="again">×${again + 1}</em>`}</span>`}
  </div>`;
}

/** Where a bar begins and ends, in pixels: where it is on the axis is known. @param {import('./layout.js').Bar} bar @param {number} unit @param {number} to @returns {[number, number]} */
export const ends = (bar, unit, to) => [EDGE + (bar.x0 ?? 0) * unit, bar.n1 !== null ? EDGE + (bar.x1 ?? 0) * unit : to];

/**
 * Bars of a lane that are seen; those too narrow to be told apart are one. What looks as it did before is not made again: most of a run is
 * over, or is yet to come.
 */
export function Bars({ lane, model, n, X, unit, to, from, until, selected, ...rest }) {
  const out = [];
  /** What bars are drawn with. One that is kept as it was drawn holds this, and not the model of its moment with all that was in it. */
  const now = useRef(/** @type {any} */ (null));
  now.current = { model, n, X, unit, to, ...rest };
  /** @type {{left: number, right: number, count: number, worst: string} | null} */
  let heap = null;
  const drop = () => {
    if (!heap) return;
    out.push(html`<div class=${`heap is-${heap.worst}`} style=${`transform:translate(${heap.left}px,0);width:${Math.max(4, heap.right - heap.left)}px`}
      title=${t('n-nodes', { n: heap.count })} data-count=${heap.count}>${heap.right - heap.left > 60 ? t('n-nodes', { n: heap.count }) : ''}</div>`);
    heap = null;
  };
  for (const bar of lane.bars) {
    const [left, right] = ends(bar, unit, to);
    if (right < from || left > until) continue;
    const tiny = right - left < 5 && lane.rows === 1 && model.nodes[bar.node].node !== selected;
    if (tiny) {
      const word = bar.n0 > n ? 'future' : standing(model.nodes[bar.node], model.nodes[bar.node].visits[bar.visit], n, model);
      if (heap && left - heap.right < 8 && (word === 'future') === (heap.worst === 'future')) {
        heap.right = Math.max(heap.right, right);
        heap.count++;
        if (word === 'failed' || (word === 'asks' && heap.worst !== 'failed')) heap.worst = word;
        continue;
      }
      drop();
      heap = { left, right, count: 1, worst: word };
      continue;
    }
    drop();
    const node = model.nodes[bar.node];
    const group = bar.group ? rest.groups.get(bar.group) : null;
    const [chosen, folded] = [node.node === selected, group ? isFolded(group, rest.said) : false];
    // What goes on looks different at each event.
    const when = bar.n0 > n ? 'future' : bar.n1 !== null && bar.n1 <= n ? 'past' : {};
    const is = [node, left, right, bar.row, when, chosen, folded, group, rest.recovered.get(node.node)];
    out.push(html`<${Drawn} key=${`${bar.node}.${bar.visit}`} is=${is} draw=${() => html`<${Bar} now=${now} bar=${bar} chosen=${chosen} folded=${folded} />`} />`);
  }
  drop();
  return out;
}

/** The events at which something of a lane changes its looks, in order. @type {WeakMap<object, Int32Array>} */
const turns = new WeakMap();

/** @param {any} lane @param {any} model @param {Map<string, any[]>} recovered */
function turnsOf(lane, model, recovered) {
  const known = turns.get(lane);
  if (known) return known;
  /** @type {number[]} */
  const all = [];
  const put = (/** @type {any} */ moment) => moment && all.push(moment[0]);
  for (const bar of lane.bars) {
    const node = model.nodes[bar.node];
    const visit = node.visits[bar.visit];
    all.push(bar.n0);
    put(visit.started), put(visit.ended);
    for (const call of visit.calls) for (const attempt of call.attempts) put(attempt.at), put(attempt.ended);
    for (const ask of visit.asks) put(ask.asked), put(ask.closed);
    for (const frame of bar.members) put(model.frames[frame].began), put(model.frames[frame].ended);
    for (const rung of recovered.get(node.node) ?? []) all.push(rung.n);
  }
  const sorted = Int32Array.from(all).sort();
  turns.set(lane, sorted);
  return sorted;
}

/**
 * How far a lane has come by an event: the same as long as it looks the same. Where a bar is half over that is each event.
 * @param {any} lane @param {any} model @param {number} n @param {Map<string, any[]>} recovered
 */
export function looks(lane, model, n, recovered) {
  if (lane.bars.some((/** @type {any} */ bar) => bar.n0 <= n && bar.n1 !== null && bar.n1 > n)) return -n;
  return upTo(turnsOf(lane, model, recovered), n);
}
