/** The picture of a run: lanes over time, bars of what nodes did, arrows of what flowed between them (S-22, S-30). */
import { html, Drawn, Text, useEffect, useLayoutEffect, useMemo, useRef, useState, useStore, store } from './ui.js';
import { tree, place, scale, ticks, isFolded, ROW, GAP } from './layout.js';
import { labelsWidth, INDENT } from './labels.js';
import { Bars, describe, looks, EDGE } from './bars.js';
import { arrows } from './arrows.js';
import { t } from './words.js';
import { plain } from './text.js';
import { duration } from './format.js';

/** How lanes are drawn, kept from run to run. */
export const scaleKind = store('steps');

/** The most nodes that are asked about because they are seen. */
const MOST_SEEN = 100;

/** Whether a bar is wide enough to be told apart, and in the window. @param {import('./layout.js').Bar} bar @param {number} unit @param {number} from @param {number} until */
function inside(bar, unit, from, until) {
  const [left, right] = [(bar.x0 ?? 0) * unit, bar.n1 === null ? Infinity : (bar.x1 ?? 0) * unit];
  return right > from && left < until && right - left >= 12;
}

/** An arrow as it stands at an event. @param {any} arrow @param {number} n */
function drawArrow({ key, kind, near, d, when }, n) {
  const future = when > n;
  return html`<${Drawn} key=${key} is=${[kind, near, d, future]}
    draw=${() => html`<path class=${`arrow a-${kind}${near ? ' near' : ''}${future ? ' future' : ''}`} d=${d} marker-start=${`url(#from-${kind})`} marker-end=${`url(#tip-${kind})`} />`} />`;
}

/**
 * @param {{model: import('./model.js').Model, n: number, live: boolean, selected: string | null, choose: (node: string | null) => void,
 *   goTo: (n: number) => void, reads: any[], waits: any[], see: (nodes: string[]) => void}} props  `see` is told which nodes are seen
 */
export function Lanes({ model, n, live, selected, choose, goTo, reads, waits, see }) {
  const kind = useStore(scaleKind);
  const [said, setSaid] = useState(() => new Map());
  const [zoom, setZoom] = useState(1);
  const [view, setView] = useState({ left: 0, top: 0, width: 900, height: 0 });
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
  const X = (/** @type {number} */ event) => EDGE + scaled.x(event) * unit;
  const to = live ? EDGE + scaled.end * unit : X(model.events);
  const width = EDGE + scaled.room * unit + 12 + (ahead ? 112 : 0);
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
  // What is in the middle stays there when it is zoomed.
  const zoomed = useRef({ zoom, unit });
  useLayoutEffect(() => {
    const was = zoomed.current;
    zoomed.current = { zoom, unit };
    if (was.zoom === zoom) return;
    const half = (view.width - labels) / 2 - EDGE;
    scroller.current.scrollLeft = ((view.left + half) * unit) / was.unit - half;
  }, [zoom, unit]);
  // What goes on grows; where there is much of it, with what happens.
  const many = model.nodes.length > 1500;
  useEffect(() => {
    if (!model.driven || !live) return undefined;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), many ? 3000 : 500);
    return () => clearInterval(timer);
  }, [model.driven, live, many]);

  const fold = (/** @type {string} */ key) => setSaid((before) => new Map(before).set(key, !isFolded(whole.groups.get(key), before)));
  // Nothing is seen until it is known how much is.
  const shown = placed.lanes.filter((lane) => view.height > 0 && lane.y + lane.height > view.top - 100 && lane.y < view.top + view.height + 100);
  // Around what is seen there is enough that a little further nothing has to be looked for.
  const [aside, down] = [Math.floor(view.left / 400) * 400, Math.floor(view.top / 400) * 400];
  const from = aside - 100;
  const until = aside + view.width + 500;
  const flow = useMemo(
    () => (view.height === 0 ? [] : arrows({ model, lanes: placed.lanes, X, unit, to, from: aside - 400, until: aside + view.width + 800, top: down - 400, bottom: down + view.height + 800, selected, reads, waits })),
    [model, placed, unit, aside, down, view.width, view.height, selected, reads, waits, to],
  );

  const crowded = useMemo(() => shown.reduce((all, lane) => all + lane.bars.filter((one) => one.n1 === null).length, 0) > 4, [placed, view.top, view.height]);
  const seen = useMemo(() => {
    const all = new Set();
    for (const lane of shown) for (const one of lane.bars) if (all.size < MOST_SEEN && inside(one, unit, from, until)) all.add(model.nodes[one.node].node);
    return [...all].join('\n');
  }, [placed, unit, aside, down, view.width, view.height]);
  useEffect(() => see(seen ? seen.split('\n') : []), [seen]);
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
    goTo(scaled.n((event.clientX - box.left - EDGE) / unit));
  };
  const bar = useMemo(() => (selected ? placed.lanes.flatMap((lane) => lane.bars).find((one) => model.nodes[one.node].node === selected) : undefined), [placed, selected]);

  /** A lane, as it was drawn before where it looks the same: most of a run is over, or is yet to come. @param {any} lane */
  const row = (lane) => {
    const coming = ahead && lane.coming.length > 0;
    const own = lane.bars.some((/** @type {any} */ one) => model.nodes[one.node].node === selected) ? selected : '';
    const grows = coming || lane.bars.some((/** @type {any} */ one) => one.n1 === null);
    const status = (lane.ended ? lane.ended[0] <= n : n >= model.events) ? lane.status : 'open';
    const is = [lane, status, looks(lane, model, n, recovered), n >= model.events, own, said, scaled, unit, grows ? to : 0, from, until, width, labels, coming];
    return html`<${Drawn} key=${lane.key} is=${is} draw=${() => html`<div class=${`lane d${Math.min(4, lane.depth)} kind-${lane.kind} was-${status}`}
          style=${`transform:translateY(${lane.y}px);height:${lane.height}px`}>
          <div class="lane-label" style=${`width:${labels}px;padding-left:${10 + lane.depth * INDENT}px`} title=${plain(lane.title)}>
            <span><${Text} of=${lane.label || t('no-thread')} max=${60} /></span>${status === 'cancelled' && html`<small>${t('cancelled')}</small>`}${status === 'failed' && html`<small class="bad">${t('failed')}</small>`}
          </div>
          <div class="lane-line" style=${`left:${labels}px;width:${width}px`}></div>
          <div class="lane-bars" style=${`left:${labels}px;width:${width}px`}>
            <${Bars} ...${{ lane, model, n, X, unit, to, from, until, selected: own, choose, groups: whole.groups, said, fold, recovered }} />
            ${coming && html`<div class="bar coming is-future" role="button" tabindex="-1" title=${plain(lane.coming.map((/** @type {any} */ one) => one.id).slice(0, 30).join(', '))} style=${`transform:translate(${to + 12}px,0);width:100px`}
              onClick=${() => choose(lane.coming[0].node)}><span class="bar-text"><${Text} of=${lane.coming[0].id} max=${30} />${lane.coming.length > 1 && html`<em>+${lane.coming.length - 1}</em>`}</span></div>`}
          </div>
        </div>`} />`;
  };

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
          ${times.map((tick) => html`<span class=${tick.last ? 'tick-end' : ''} style=${`transform:translateX(${EDGE + tick.x * unit}px)`}>${tick.text}</span>`)}
        </div>
      </div>
      <div class=${`lanes-in${crowded ? ' crowded' : ''}`} style=${`width:${labels + width}px;height:${placed.height + GAP}px`}>
        ${shown.map(row)}
        ${[false, true].map((near) => html`<svg class=${`flow${near ? ' near' : ''}`} style=${`left:${labels}px;clip-path:inset(-9px -99px -9px ${Math.max(0, view.left)}px)`} width=${width} height=${placed.height} aria-hidden="true">
          ${!near && html`<defs>${['taken', 'sent', 'read', 'after'].map((one) => html`<marker id=${`from-${one}`} viewBox="0 0 8 8" refX="4" refY="4" markerUnits="userSpaceOnUse" markerWidth="7" markerHeight="7"><circle class=${`tip t-${one}`} cx="4" cy="4" r="3" /></marker><marker id=${`tip-${one}`} viewBox="0 0 8 8" refX="6.5" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path class=${`tip t-${one}`} d="M0 .8 7 4 0 7.2z" /></marker>`)}</defs>`}
          ${flow.map((arrow) => arrow.near === near && drawArrow(arrow, n))}
        </svg>`)}
        <div class=${`playhead${live ? ' live' : ''}`} hidden=${(live ? to : X(n)) < view.left} style=${`transform:translateX(${labels + (live ? to : X(n))}px);height:${placed.height + GAP}px`}></div>
        ${bar && html`<span id="lane-chosen" class="unseen" role="img" aria-label=${describe(model, bar, n)}></span>`}
      </div>
    </div>
  </section>`;
}
