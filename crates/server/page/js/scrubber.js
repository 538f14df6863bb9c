/** The scrubber: to any event of a run, and everything shows that moment (S-22). */
import { html, Drawn, Text, useEffect, useMemo, useRef, useState } from './ui.js';
import { marks } from './model.js';
import { t } from './words.js';
import { plain } from './text.js';
import { duration } from './format.js';

const KINDS = ['person', 'tool', 'model'];

/**
 * What was under way at each event: areas upon each other, by kind, as paths of an SVG that is `slots` wide and 1 high.
 * @param {import('./model.js').Model} model
 */
function activity(model) {
  const events = Math.max(1, model.events);
  const slots = Math.min(600, events);
  const slot = (/** @type {number} */ n) => Math.min(slots - 1, Math.floor(((n - 1) / events) * slots));
  const by = Object.fromEntries(KINDS.map((kind) => [kind, new Float64Array(slots + 1)]));
  const put = (/** @type {string} */ kind, /** @type {any} */ from, /** @type {any} */ to) => {
    const all = by[kind] ?? by.tool;
    all[slot(from[0])]++;
    // What began and ended within one slot was under way in it.
    all[Math.max(slot(from[0]) + 1, to ? slot(to[0]) : slots)]--;
  };
  for (const node of model.nodes)
    for (const visit of node.visits) {
      for (const call of visit.calls) for (const attempt of call.attempts) put(call.kind, attempt.at, attempt.ended);
      for (const ask of visit.asks) put('person', ask.asked, ask.closed);
    }
  const under = new Float64Array(slots);
  const areas = KINDS.map((kind) => {
    const low = Float64Array.from(under);
    let sum = 0;
    for (let i = 0; i < slots; i++) under[i] += sum += by[kind][i];
    return { kind, low, high: Float64Array.from(under) };
  });
  const most = Math.max(1, ...under);
  const y = (/** @type {number} */ value) => (1 - value / most).toFixed(3);
  const edge = (/** @type {Float64Array} */ values, /** @type {boolean} */ back) => {
    let d = '';
    for (let k = 0; k < slots; k++) {
      const i = back ? slots - 1 - k : k;
      d += back ? `L${i + 1} ${y(values[i])}L${i} ${y(values[i])}` : `${k ? 'L' : 'M'}${i} ${y(values[i])}L${i + 1} ${y(values[i])}`;
    }
    return d;
  };
  return { slots, paths: areas.filter((area) => area.high.some((value, i) => value > area.low[i])).map((area) => ({ kind: area.kind, d: `${edge(area.high, false)}${edge(area.low, true)}Z` })) };
}

/**
 * @param {{model: import('./model.js').Model, n: number, live: boolean, goTo: (n: number | null) => void, said: string, at: number | null}} props
 */
export function Scrubber({ model, n, live, goTo, said, at }) {
  const [plays, setPlays] = useState(false);
  // What is typed stays until it is done, whatever comes meanwhile.
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const under = () => {
    const { slots, paths } = activity(model);
    return html`<svg viewBox=${`0 0 ${slots} 1`} preserveAspectRatio="none">${paths.map((path) => html`<path class=${`k-${path.kind}`} d=${path.d} />`)}</svg>`;
  };
  const signs = useMemo(() => {
    const seen = new Set();
    return marks(model).filter((mark) => {
      const key = mark.kind + Math.round((mark.n / model.events) * 300);
      return !seen.has(key) && seen.add(key);
    });
  }, [model.events, model.nodes]);
  const place = (/** @type {number} */ event) => `${((event - 1) / Math.max(1, model.events - 1)) * 100}%`;
  const drawn = () => html`<div class="marks" aria-hidden="true">${signs.slice(0, 400).map((mark) => html`<b class=${`m-${mark.kind}`} style=${`left:${place(mark.n)}`} title=${plain(`${mark.n} · ${t(mark.kind)} · ${mark.node}`)}></b>`)}</div>`;
  const ref = useRef({ n, events: model.events });
  ref.current = { n, events: model.events };
  useEffect(() => {
    if (!plays) return undefined;
    const timer = setInterval(() => {
      const { n: here, events } = ref.current;
      const step = Math.max(1, Math.round(events / 240));
      if (here + step >= events) setPlays(false);
      goTo(Math.min(events, here + step));
    }, 60);
    return () => clearInterval(timer);
  }, [plays]);
  useEffect(() => {
    const keys = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {any} */ (event.target);
      if (event.ctrlKey || event.altKey || event.metaKey || target.closest?.('input,textarea,select,dialog,[contenteditable]')) return;
      const { n: here, events } = ref.current;
      const to = { '[': here - 1, ']': here + 1, '{': here - 10, '}': here + 10 }[event.key];
      if (to !== undefined) event.preventDefault(), goTo(Math.min(events, Math.max(1, to)));
      if (event.key === 'l') goTo(null);
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, []);
  const jump = (/** @type {number} */ step) => {
    const stops = signs.map((mark) => mark.n);
    const next = step > 0 ? stops.find((stop) => stop > n) : stops.filter((stop) => stop < n).pop();
    goTo(next ?? (step > 0 ? model.events : 1));
  };
  return html`<section class=${`scrub${live ? ' live' : ''}`} aria-label=${t('scrubber')}>
    <div class="scrub-track">
      <div class="activity" aria-hidden="true"><${Drawn} is=${[model.events, model.nodes]} draw=${under} /><i style=${`transform:translateX(${place(n)})`}></i></div>
      <${Drawn} is=${[signs, model.events]} draw=${drawn} />
      <input type="range" min="1" max=${Math.max(1, model.events)} step="1" value=${n} aria-label=${t('scrubber')}
        aria-valuetext=${plain(`${t('event')} ${n} ${t('of')} ${model.events}: ${said}`)}
        onInput=${(event) => goTo(Number(event.target.value))} onChange=${(event) => goTo(Number(event.target.value))} />
    </div>
    <div class="scrub-row">
      <div class="seg" role="group" aria-label=${t('step')}>
        <button type="button" aria-label=${t('mark-before')} title=${t('mark-before')} onClick=${() => jump(-1)}>⇤</button>
        <button type="button" aria-label=${t('event-before')} title=${`${t('event-before')} [`} disabled=${n <= 1} onClick=${() => goTo(n - 1)}>‹</button>
        <button type="button" aria-label=${plays ? t('pause') : t('play')} title=${plays ? t('pause') : t('play')} onClick=${() => (setPlays(!plays), n >= model.events && goTo(1))}>${plays ? '❚❚' : '▶'}</button>
        <button type="button" aria-label=${t('event-after')} title=${`${t('event-after')} ]`} disabled=${n >= model.events} onClick=${() => goTo(n + 1)}>›</button>
        <button type="button" aria-label=${t('mark-after')} title=${t('mark-after')} onClick=${() => jump(1)}>⇥</button>
      </div>
      <label class="scrub-n"><span class="unseen">${t('event')}</span><input type="number" min="1" max=${model.events} value=${typed ?? n} style=${`width:calc(${String(model.events).length}ch + 1.8rem)`} 
        onInput=${(event) => setTyped(event.target.value)} onBlur=${() => setTyped(null)} onChange=${(event) => (setTyped(null), goTo(Math.min(model.events, Math.max(1, Number(event.target.value) || 1))))} />
        <span class="muted">/ ${model.events}</span></label>
      <span class="scrub-time mono">${at === null ? '' : `+${duration(Math.max(0, at - model.began))}`}</span>
      <span class="scrub-said"><${Text} of=${said} max=${160} /></span>
      <button type="button" class=${`now${live ? ' on' : ''}`} aria-pressed=${String(live)} title="l" onClick=${() => goTo(null)}>${model.driven ? t('live') : t('latest')}</button>
    </div>
  </section>`;
}
