/** What flows between lanes: threads that are taken over, results that are sent, values that are read. */
import { ROW } from './layout.js';

/** More arrows than these nobody can follow: those of the chosen node go first. */
const MOST = 260;

/** A curve from one place to another that leaves and arrives along the lanes. */
function curve(/** @type {number} */ x1, /** @type {number} */ y1, /** @type {number} */ x2, /** @type {number} */ y2) {
  const bend = Math.max(14, Math.min(60, Math.abs(x2 - x1) / 2));
  return `M${x1.toFixed(1)} ${y1.toFixed(1)}C${(x1 + bend).toFixed(1)} ${y1.toFixed(1)} ${(x2 - bend).toFixed(1)} ${y2.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`;
}

/** One that falls from a lane onto the beginning of a bar. */
function fall(/** @type {number} */ x, /** @type {number} */ y1, /** @type {number} */ y2, /** @type {number} */ to) {
  const down = y2 > y1;
  const bend = down ? 10 : -10;
  return `M${(x - 8).toFixed(1)} ${y1.toFixed(1)}C${x.toFixed(1)} ${y1.toFixed(1)} ${(x - 12).toFixed(1)} ${(y2 - bend).toFixed(1)} ${to.toFixed(1)} ${y2.toFixed(1)}`;
}

/**
 * @param {{model: any, lanes: import('./layout.js').Lane[], X: (n: number) => number, to: number, from: number, until: number,
 *   top: number, bottom: number, selected: string | null, reads: {from: string, to: string}[]}} of
 */
export function arrows({ model, lanes, X, to, from, until, top, bottom, selected, reads }) {
  /** @type {any[]} */
  const out = [];
  const byKey = new Map(lanes.map((lane) => [lane.key, lane]));
  /** @type {Map<number, {x1: number, x2: number, y: number, bar: any, lane: any}[]>} */
  const at = new Map();
  for (const lane of lanes)
    for (const bar of lane.bars) {
      const places = at.get(bar.node) ?? [];
      if (!places.length) at.set(bar.node, places);
      places.push({ x1: X(bar.n0), x2: bar.n1 !== null ? X(bar.n1) : to, y: lane.y + bar.row * ROW + ROW / 2 - 2, bar, lane });
    }
  const middle = (/** @type {any} */ lane) => lane.y + ROW / 2 - 2;
  const add = (/** @type {string} */ kind, /** @type {string} */ key, /** @type {string} */ d, /** @type {number} */ when, /** @type {number} */ x,
    /** @type {number} */ y1, /** @type {number} */ y2, /** @type {boolean} */ near) => {
    if (x < from || x > until || Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) return;
    out.push({ kind, key, d, near, when });
  };
  for (const [node, places] of at) {
    const told = model.nodes[node];
    const near = told.node === selected;
    for (const place of places) {
      const visit = told.visits[place.bar.visit];
      const own = place.lane.key;
      const beside = own.slice(0, own.lastIndexOf('/'));
      if (visit.opened) {
        const source = byKey.get(`${beside}/${visit.opened.from}`) ?? byKey.get(beside);
        if (source && source !== place.lane) add('taken', `o${node}.${place.bar.visit}`, fall(place.x1 - 3, middle(source), place.y, place.x1), place.bar.n0, place.x1, middle(source), place.y, near);
      }
      if (visit.published && place.bar.n1 !== null) {
        const goal = byKey.get(`${beside}/${visit.published}`) ?? byKey.get(beside);
        if (goal && goal !== place.lane) add('sent', `p${node}.${place.bar.visit}`, curve(place.x2 - 2, place.y, place.x2 + 20, middle(goal) + (goal.y < place.lane.y ? 6 : -6)), place.bar.n1, place.x2, place.y, middle(goal), near);
      }
    }
  }
  // A fork's paths go on from its conversation; its main path's, or its results, come back.
  for (const lane of lanes) {
    const [group] = [/** @type {any} */ (lane).parent];
    if (!group || !lane.bars.length || lane.kind === 'thread') continue;
    const first = lane.bars[0];
    const last = lane.bars[lane.bars.length - 1];
    const frame = model.frames[model.nodes[first.node].frame];
    const opener = (at.get(frame.opener) ?? []).find((place) => place.bar.n0 <= first.n0 && (place.bar.n1 ?? Infinity) >= first.n0);
    if (!opener) continue;
    const near = model.nodes[frame.opener].node === selected || lane.bars.some((bar) => model.nodes[bar.node].node === selected);
    const y = middle(lane);
    add('taken', `f${lane.key}`, fall(X(first.n0) - 3, opener.y + 13, y, X(first.n0)), first.n0, X(first.n0), opener.y, y, near);
    const visit = model.nodes[frame.opener].visits[opener.bar.visit];
    const main = visit.join?.main;
    if (last.n1 !== null && lane.status === 'completed' && (lane.kind !== 'path' || !main || main === frame.key))
      add(lane.kind === 'path' && !main ? 'sent' : 'taken', `j${lane.key}`, curve(X(last.n1) - 2, y, Math.min(opener.x2 - 4, X(last.n1) + 26), opener.y + 15), last.n1, X(last.n1), y, opener.y, near);
  }
  const byName = reads.length ? new Map(model.nodes.map((/** @type {any} */ node, /** @type {number} */ i) => [node?.node, i])) : new Map();
  for (const read of reads) {
    const [a, b] = [at.get(byName.get(read.from)), at.get(byName.get(read.to))];
    const end = b?.[b.length - 1];
    const start = end && (a ?? []).filter((place) => place.bar.n1 !== null && place.bar.n1 <= end.bar.n0).pop();
    if (!start || !end) continue;
    const near = read.from === selected || read.to === selected;
    if (!near && Math.abs(start.y - end.y) < 4 && end.x1 - start.x2 < 30) continue;
    const same = Math.abs(start.y - end.y) < 4;
    const d = same ? `M${start.x2} ${start.y - 8}C${start.x2 + 20} ${start.y - 26} ${end.x1 - 20} ${end.y - 26} ${end.x1} ${end.y - 8}` : curve(start.x2 - 1, start.y, end.x1, end.y);
    add('read', `r${read.from}>${read.to}`, d, end.bar.n0, end.x1, start.y, end.y, near);
  }
  if (out.length <= MOST) return out;
  const first = out.filter((arrow) => arrow.near);
  return first.concat(out.filter((arrow) => !arrow.near).slice(0, Math.max(0, MOST - first.length)));
}
