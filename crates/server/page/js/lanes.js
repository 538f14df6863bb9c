/** The picture of a run: lanes over time, bars of what nodes did, arrows of what flowed between them (S-22, S-30). */
import { html, Text, useEffect, useLayoutEffect, useMemo, useRef, useState, useStore, store } from './ui.js';
import { tree, place, scale, ticks, isFolded, ROW, GAP } from './layout.js';
import { labelsWidth, INDENT } from './labels.js';
import { standing, doing, retries, goesOn, frameTally, joinFill } from './model.js';
import { arrows } from './arrows.js';
import { t } from './words.js';
import { plain } from './text.js';
import { duration } from './format.js';

const SIGN = { failed: '✕', cancelled: '⊘', reused: '↺', again: '⟳', asks: '◆', stopped: '◌' };
/** How lanes are drawn, kept from run to run. */
export const scaleKind = store('steps');

/** What a bar says of itself, in words: for screen readers and on hovering. */
export function describe(model, bar, n) {
  const node = model.nodes[bar.node];
  const visit = node.visits[bar.visit];
  const word = standing(visit, n, goesOn(model, n));
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

function Bar({ model, bar, n, X, to, chosen, choose, groups, folded, fold, recovered }) {
  const node = model.nodes[bar.node];
  const visit = node.visits[bar.visit];
  const future = bar.n0 > n;
  const word = future ? 'future' : standing(visit, n, goesOn(model, n));
  const left = X(bar.n0);
  const right = bar.n1 !== null ? X(bar.n1) : to;
  const width = Math.max(7, right - left - 2);
  const group = bar.group ? groups.get(bar.group) : null;
  const call = word === 'running' ? doing(visit, n) : null;
  const more = group && group.frames > 1 ? t(group.lanes[0]?.kind === 'path' ? 'n-paths' : 'n-times', { n: group.frames }) : '';
  const say = word === 'asks' ? t('asks-you') : call?.call.kind === 'tool' ? call.call.name : word === 'again' ? t('again') : '';
  const again = retries(visit, n);
  const tally = group && !future ? frameTally(model, group.members, n) : null;
  const fill = tally ? joinFill(visit, tally) : null;
  const rungs = (recovered.get(node.node) ?? []).filter((/** @type {any} */ rung) => rung.n <= n && rung.n >= bar.n0 && rung.n <= (bar.n1 ?? Infinity));
  const whole = [describe(model, bar, n), fill ? t('join-fill', fill) : '', rungs.length ? t('recovered-by', { how: plain(rungs.map((/** @type {any} */ rung) => rung.action ?? rung.what).join(', ')) }) : ''].filter(Boolean).join(' · ');
  // What of it had not happened by then.
  const then = !future && bar.n1 !== null && bar.n1 > n ? Math.max(0, Math.min(width, X(n) - left)) : null;
  const bits = future || width < 24 ? [] : spans(visit, bar, n, X, left, then === null ? right : left + then);
  const inner = folded ? tally : null;
  return html`<div class=${`bar k-${node.kind} is-${word}${chosen ? ' chosen' : ''}${group ? (folded ? ' folded' : ' open') : ''}`}
    style=${`transform:translate(${left}px,${bar.row * ROW}px);width:${width}px`} role="button" tabindex="-1" data-node=${node.node}
    title=${whole} onClick=${() => choose(node.node)}
    onDblClick=${() => group && fold(bar.group)}>
    ${then !== null && html`<i class="rest" style=${`left:${then}px`}></i>`}
    ${inner && html`<i class="strip" aria-hidden="true">${['ran', 'failed', 'cancelled', 'running'].map((one) => inner[one] > 0 && html`<i class=${`is-${one}`} style=${`flex:${inner[one]}`}></i>`)}</i>`}
    ${bits.map((bit) => html`<i class=${`bit b-${bit.kind}`} style=${`left:${bit.x}px;width:${bit.w}px`}></i>`)}
    ${width > 30 && html`<span class="bar-text">${SIGN[word] && html`<b aria-hidden="true">${SIGN[word]}</b>`}${group && html`<b class="chev" aria-hidden="true"
      onClick=${(event) => (event.stopPropagation(), fold(bar.group))}>${folded ? '▸' : '▾'}</b>`}<${Text} of=${node.id} max=${60} />${
      !group && width > 130 && node.name && node.name !== node.id && html`<em><${Text} of=${node.name} max=${80} /></em>`}${more && html`<em>${more}</em>`}${fill && html`<em class=${`fill${fill.n >= fill.need ? ' met' : ''}`}>⋈ ${fill.n}/${fill.need}</em>`}${
      inner && width > 150 && ['failed', 'cancelled', 'running'].map((one) => inner[one] > 0 && html`<em class=${`is-${one}`}>${inner[one]} ${t(one)}</em>`)}${say && html`<em><${Text} of=${say} max=${40} /></em>`}${rungs.length > 0 && html`<em class="mended">⚕ ${t('recovered')}</em>`}${again > 0 && html`<em class="again">×${again + 1}</em>`}</span>`}<span class="unseen"> ${whole}</span>
  </div>`;
}

/**
 * Bars of a lane that are seen; those too narrow to be told apart are one. What looks as it did before is not made again: most of a run is
 * over, or is yet to come.
 */
function Bars({ lane, model, n, X, to, from, until, selected, ...rest }) {
  const out = [];
  const before = useRef(/** @type {Map<string, {is: any[], shown: any}>} */ (new Map()));
  const made = new Map();
  /** @type {{left: number, right: number, count: number, worst: string} | null} */
  let heap = null;
  const drop = () => {
    if (!heap) return;
    out.push(html`<div class=${`heap is-${heap.worst}`} style=${`transform:translate(${heap.left}px,0);width:${Math.max(4, heap.right - heap.left)}px`}
      title=${t('n-nodes', { n: heap.count })} data-count=${heap.count}>${heap.right - heap.left > 60 ? t('n-nodes', { n: heap.count }) : ''}</div>`);
    heap = null;
  };
  for (const bar of lane.bars) {
    const left = X(bar.n0);
    const right = bar.n1 !== null ? X(bar.n1) : to;
    if (right < from || left > until) continue;
    const tiny = right - left < 5 && lane.rows === 1 && model.nodes[bar.node].node !== selected;
    if (tiny) {
      const word = bar.n0 > n ? 'future' : standing(model.nodes[bar.node].visits[bar.visit], n, goesOn(model, n));
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
    const when = bar.n0 > n ? 'future' : bar.n1 !== null && bar.n1 <= n ? 'past' : '';
    const is = [node, left, right, bar.row, when, chosen, folded, group, rest.recovered.get(node.node)];
    const key = `${bar.node}.${bar.visit}`;
    const was = when ? before.current.get(key) : undefined;
    const same = was && was.is.every((one, at) => one === is[at]);
    const shown = same ? was.shown : html`<${Bar} key=${key} ...${{ model, bar, n, X, to, ...rest }} chosen=${chosen} folded=${folded} />`;
    made.set(key, { is, shown });
    out.push(shown);
  }
  drop();
  before.current = made;
  return out;
}

/**
 * @param {{model: import('./model.js').Model, n: number, live: boolean, selected: string | null, choose: (node: string | null) => void,
 *   goTo: (n: number) => void, reads: any[], waits: any[]}} props
 */
export function Lanes({ model, n, live, selected, choose, goTo, reads, waits }) {
  const kind = useStore(scaleKind);
  const [said, setSaid] = useState(() => new Map());
  const [zoom, setZoom] = useState(1);
  const [view, setView] = useState({ left: 0, top: 0, width: 900, height: 400 });
  const [now, setNow] = useState(Date.now());
  const scroller = useRef(/** @type {any} */ (null));
  const whole = useMemo(() => tree(model), [model]);
  const placed = useMemo(() => place(whole, said), [whole, said]);
  // They grow with what they say, and don't shrink again below what is read.
  const widest = useRef({ of: 0, px: 0 });
  const wants = useMemo(() => labelsWidth(placed.lanes, view.width), [placed, view.width]);
  if (widest.current.of !== view.width || wants > widest.current.px) widest.current = { of: view.width, px: wants };
  const labels = widest.current.px;
  const scaled = useMemo(() => scale(placed.lanes, model, kind, now), [placed, kind, now]);
  // What is to come has its place behind what is.
  const ahead = live && ['running', 'waiting'].includes(model.status) && placed.lanes.some((lane) => lane.coming.length);
  const room = Math.max(120, view.width - labels - 20 - (ahead ? 112 : 0));
  const unit = (room * zoom) / scaled.room;
  const X = (/** @type {number} */ event) => 6 + scaled.x(event) * unit;
  const to = live ? 6 + scaled.end * unit : X(model.events);
  const width = 6 + scaled.room * unit + 12 + (ahead ? 112 : 0);
  const recovered = useMemo(() => {
    const all = new Map();
    for (const rung of model.recovery) if (rung.what === 'action') all.set(rung.node, (all.get(rung.node) ?? []).concat(rung));
    return all;
  }, [model]);
  const times = useMemo(() => ticks(scaled.marks, model.began, 74 / unit, (ms) => (ms ? duration(ms) : '0')), [scaled, unit]);
  const kinds = useMemo(() => new Set(model.nodes.map((node) => node?.kind)), [model.nodes]);

  useLayoutEffect(() => {
    const box = scroller.current;
    const look = () => setView({ left: box.scrollLeft, top: box.scrollTop, width: box.clientWidth, height: box.clientHeight });
    look();
    box.addEventListener('scroll', look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(box);
    return () => (watch.disconnect(), box.removeEventListener('scroll', look));
  }, []);
  // What goes on grows; where there is much of it, with what happens.
  const many = model.nodes.length > 1500;
  useEffect(() => {
    if (!model.driven || !live) return undefined;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), many ? 3000 : 500);
    return () => clearInterval(timer);
  }, [model.driven, live, many]);

  const fold = (/** @type {string} */ key) => setSaid((before) => new Map(before).set(key, !isFolded(whole.groups.get(key), before)));
  const shown = placed.lanes.filter((lane) => lane.y + lane.height > view.top - 200 && lane.y < view.top + view.height + 200);
  const from = view.left - 300;
  const until = view.left + view.width + 300;
  // Around what is seen there are enough of them that a little further none has to be looked for.
  const [aside, down] = [Math.floor(view.left / 400) * 400, Math.floor(view.top / 400) * 400];
  const flow = useMemo(
    () => arrows({ model, lanes: placed.lanes, X, to, from: aside - 400, until: aside + view.width + 800, top: down - 400, bottom: down + view.height + 800, selected, reads, waits }),
    [model, placed, unit, aside, down, view.width, view.height, selected, reads, waits, to],
  );

  // What was drawn once stays explained, so that nothing jumps.
  const drawn = useRef(new Set());
  for (const arrow of flow) drawn.current.add(arrow.kind);

  /** Arrows move from bar to bar: left and right in a lane, up and down between lanes. @param {KeyboardEvent} event */
  const keys = (event) => {
    const lane = placed.lanes.findIndex((one) => one.bars.some((bar) => model.nodes[bar.node].node === selected));
    if (event.key === 'Escape') return choose(null);
    if (event.key === '+' || event.key === '=') return setZoom((was) => Math.min(200, was * 1.5));
    if (event.key === '-') return setZoom((was) => Math.max(1, was / 1.5));
    if (event.key === 'Enter' || event.key === ' ') {
      const bar = placed.lanes[lane]?.bars.find((one) => model.nodes[one.node].node === selected && one.group);
      if (bar?.group) event.preventDefault(), fold(bar.group);
      return undefined;
    }
    if (!['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'].includes(event.key)) return undefined;
    event.preventDefault();
    event.stopPropagation();
    if (lane < 0) return choose(model.nodes[placed.lanes[0]?.bars[0]?.node]?.node ?? null);
    const bars = placed.lanes[lane].bars;
    const at = bars.findIndex((bar) => model.nodes[bar.node].node === selected);
    let next = bars[at + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0)];
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) {
      const other = placed.lanes[lane + step]?.bars ?? [];
      next = other.find((bar) => (bar.n1 ?? Infinity) >= bars[at].n0) ?? other.at(-1) ?? bars[at];
    }
    if (next) choose(model.nodes[next.node].node);
    return undefined;
  };
  const wheel = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    setZoom((was) => Math.min(200, Math.max(1, was * (event.deltaY < 0 ? 1.2 : 1 / 1.2))));
  };
  const pick = (/** @type {MouseEvent} */ event) => {
    const box = /** @type {any} */ (event.currentTarget).getBoundingClientRect();
    goTo(scaled.n((event.clientX - box.left - 6) / unit));
  };
  const chosen = model.nodes.find((node) => node?.node === selected);
  const bar = chosen && placed.lanes.flatMap((lane) => lane.bars).find((one) => model.nodes[one.node] === chosen);

  return html`<section class="lanes" aria-label=${t('lanes')}>
    <div class="lanes-tools">
      <div class="legend" aria-hidden="true">
        ${['model', 'tool', 'person', 'flow'].map((one) => kinds.has(one) && html`<span class=${`k-${one}`}>${t(one)}</span>`)}
        ${[['taken', 'taken-over'], ['sent', 'sent'], ['read', 'read'], ['after', 'after']].map(([one, word]) => drawn.current.has(one) && html`<span class=${`l-${one}`}>${t(word)}</span>`)}
      </div>
      <div class="seg" role="group" aria-label=${t('scale')}>
        ${['steps', 'time'].map((one) => html`<button type="button" aria-pressed=${String(kind === one)} title=${t(`scale-${one}-why`)} onClick=${() => scaleKind.set(one)}>${t(`scale-${one}`)}</button>`)}
      </div>
      <div class="seg" role="group" aria-label=${t('zoom')}>
        <button type="button" aria-label=${t('zoom-out')} disabled=${zoom <= 1} onClick=${() => setZoom(Math.max(1, zoom / 1.5))}>−</button>
        <button type="button" aria-label=${t('zoom-fit')} onClick=${() => setZoom(1)}>${t('fit')}</button>
        <button type="button" aria-label=${t('zoom-in')} onClick=${() => setZoom(Math.min(200, zoom * 1.5))}>+</button>
      </div>
    </div>
    <div class="lanes-box" ref=${scroller} tabindex="0" role="group" aria-label=${t('lanes-keys')} aria-activedescendant=${bar ? 'lane-chosen' : undefined}
      onKeyDown=${keys} onWheel=${wheel}>
      <div class="axis" style=${`width:${labels + width}px`}><div class="corner" style=${`width:${labels}px`}></div>
        <div class="axis-in" style=${`width:${width}px`} onClick=${pick} title=${t('axis-why')}>
          ${times.map((tick) => html`<span class=${tick.last ? 'tick-end' : ''} style=${`transform:translateX(${6 + tick.x * unit}px)`}>${tick.text}</span>`)}
        </div>
      </div>
      <div class=${`lanes-in${shown.reduce((all, lane) => all + lane.bars.filter((bar) => bar.n1 === null).length, 0) > 4 ? ' crowded' : ''}`} style=${`width:${labels + width}px;height:${placed.height + GAP}px`}>
        ${shown.map((lane) => html`<div key=${lane.key} class=${`lane d${Math.min(4, lane.depth)} kind-${lane.kind} was-${lane.status}`}
          style=${`transform:translateY(${lane.y}px);height:${lane.height}px`}>
          <div class="lane-label" style=${`width:${labels}px;padding-left:${10 + lane.depth * INDENT}px`} title=${plain(lane.title)}>
            <span><${Text} of=${lane.label || t('no-thread')} max=${60} /></span>${lane.status === 'cancelled' && html`<small>${t('cancelled')}</small>`}${lane.status === 'failed' && html`<small class="bad">${t('failed')}</small>`}
          </div>
          <div class="lane-line" style=${`left:${labels}px;width:${width}px`}></div>
          <div class="lane-bars" style=${`left:${labels}px;width:${width}px`}>
            <${Bars} ...${{ lane, model, n, X, to, from, until, selected, choose, groups: whole.groups, said, fold, recovered }} />
            ${ahead && lane.coming.length > 0 && html`<div class="bar coming is-future" role="button" tabindex="-1" title=${plain(lane.coming.map((one) => one.id).slice(0, 30).join(', '))} style=${`transform:translate(${to + 12}px,0);width:100px`}
              onClick=${() => choose(lane.coming[0].node)}><span class="bar-text"><${Text} of=${lane.coming[0].id} max=${30} />${lane.coming.length > 1 && html`<em>+${lane.coming.length - 1}</em>`}</span></div>`}
          </div>
        </div>`)}
        ${[false, true].map((near) => html`<svg class=${`flow${near ? ' near' : ''}`} style=${`left:${labels}px;clip-path:inset(-9px -99px -9px ${Math.max(0, view.left)}px)`} width=${width} height=${placed.height} aria-hidden="true">
          ${!near && html`<defs>${['taken', 'sent', 'read', 'after'].map((one) => html`<marker id=${`from-${one}`} viewBox="0 0 8 8" refX="4" refY="4" markerUnits="userSpaceOnUse" markerWidth="7" markerHeight="7"><circle class=${`tip t-${one}`} cx="4" cy="4" r="3" /></marker><marker id=${`tip-${one}`} viewBox="0 0 8 8" refX="6.5" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path class=${`tip t-${one}`} d="M0 .8 7 4 0 7.2z" /></marker>`)}</defs>`}
          ${flow.filter((arrow) => arrow.near === near).map((arrow) => html`<path key=${arrow.key} class=${`arrow a-${arrow.kind}${arrow.near ? ' near' : ''}${arrow.when > n ? ' future' : ''}`} d=${arrow.d} marker-start=${`url(#from-${arrow.kind})`} marker-end=${`url(#tip-${arrow.kind})`} />`)}
        </svg>`)}
        <div class=${`playhead${live ? ' live' : ''}`} hidden=${(live ? to : X(n)) < view.left} style=${`transform:translateX(${labels + (live ? to : X(n))}px);height:${placed.height + GAP}px`}></div>
        ${bar && html`<span id="lane-chosen" class="unseen" role="img" aria-label=${describe(model, bar, n)}></span>`}
      </div>
    </div>
  </section>`;
}
