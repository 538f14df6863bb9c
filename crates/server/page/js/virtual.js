/** Long lists: only what is seen is there (S-21, S-23). Rows may be of any height; what has not been seen yet is taken to be as high as others. */
import { html, useLayoutEffect, useRef, useState } from './ui.js';

/**
 * @param {{count: number, row: (i: number) => any, keyOf?: (i: number) => any, guess?: number, label: string, role?: string, follow?: boolean,
 *   need?: (from: number, to: number) => void, of?: string, to?: number | null, class?: string}} props  `of`: what the rows are of; of
 *   something else they are needed anew
 */
export function Virtual({ count, row, keyOf = (i) => i, guess = 80, label, role = 'list', follow = false, need, of = '', to = null, ...rest }) {
  const box = useRef(/** @type {any} */ (null));
  const heights = useRef(/** @type {Map<any, number>} */ (new Map()));
  const [, again] = useState(0);
  const [view, setView] = useState({ top: 0, height: 600 });
  const atEnd = useRef(true);
  const height = (/** @type {number} */ i) => heights.current.get(keyOf(i)) ?? guess;

  // Where rows begin, from the heights that are known.
  const tops = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) tops[i + 1] = tops[i] + height(i);
  const find = (/** @type {number} */ y) => {
    let lo = 0;
    let hi = Math.max(0, count - 1);
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (tops[mid] <= y) lo = mid;
      else hi = mid - 1;
    }
    return lo;
  };
  const first = Math.max(0, find(view.top) - 3);
  const last = Math.min(count - 1, find(view.top + view.height) + 3);

  useLayoutEffect(() => {
    const element = box.current;
    const look = () => {
      atEnd.current = element.scrollTop + element.clientHeight > element.scrollHeight - 40;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    look();
    element.addEventListener('scroll', look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => (watch.disconnect(), element.removeEventListener('scroll', look));
  }, []);
  // How high rows turn out to be, the browser tells when it has laid them out: asking it would make it do that at once, each time.
  const now = useRef(/** @type {any} */ ({}));
  now.current = { tops, height, keyOf, top: view.top, follow };
  const sizes = useRef(/** @type {ResizeObserver | null} */ (null));
  const watched = useRef(new WeakSet());
  useLayoutEffect(() => {
    sizes.current = new ResizeObserver((entries) => {
      const { tops, height, keyOf, top, follow } = now.current;
      let changed = false;
      let above = 0;
      for (const { target, borderBoxSize } of entries) {
        const i = Number(/** @type {HTMLElement} */ (target).dataset.at);
        const [is, was] = [borderBoxSize[0]?.blockSize, height(i)];
        if (!target.isConnected || !is || Math.abs(is - was) < 0.5) continue;
        heights.current.set(keyOf(i), is);
        if (tops[i] < top) above += is - was;
        changed = true;
      }
      if (!changed) return;
      // What is read stays where it is when rows above it turn out to be higher.
      if (above && !(follow && atEnd.current)) box.current.scrollTop += above;
      again((n) => n + 1);
    });
    return () => sizes.current?.disconnect();
  }, []);
  useLayoutEffect(() => {
    for (const child of box.current.firstElementChild.children) {
      if (watched.current.has(child)) continue;
      watched.current.add(child);
      sizes.current?.observe(child);
    }
  });
  useLayoutEffect(() => {
    if (follow && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [count, tops[count]]);
  useLayoutEffect(() => {
    if (to === null || to < 0 || to >= count) return;
    const element = box.current;
    if (tops[to] < element.scrollTop) element.scrollTop = tops[to];
    else if (tops[to + 1] > element.scrollTop + element.clientHeight) element.scrollTop = tops[to + 1] - element.clientHeight;
  }, [to]);
  useLayoutEffect(() => {
    if (need && count) need(first, last);
  }, [first, last, count, of]);

  const rows = [];
  for (let i = first; i <= last; i++)
    rows.push(html`<div key=${keyOf(i)} data-at=${i} class="v-row" role=${role === 'list' ? 'listitem' : 'presentation'} aria-setsize=${role === 'list' ? count : undefined}
      aria-posinset=${role === 'list' ? i + 1 : undefined} style=${`transform:translateY(${tops[i]}px)`}>${row(i)}</div>`);
  return html`<div ref=${box} class=${`virtual ${rest.class ?? ''}`} tabindex="0" aria-label=${label} role=${role === 'list' ? 'group' : 'presentation'}>
    <div class="v-in" role=${role === 'list' ? 'list' : 'presentation'} style=${`height:${tops[count]}px`}>${rows}</div>
  </div>`;
}
