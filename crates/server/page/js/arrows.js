/** What flows between lanes: threads that are taken over, results that are sent, values that are read. */
import { ROW } from './layout.js';
import { ends } from './bars.js';

/** More arrows than these nobody can follow: those of the chosen node go first. */
const MOST = 260;

/** What is opened in less room than this has no arrows: they would hide what they lead to. */
const NARROW = 24;

/** How round corners are. */
const ROUND = 6;
const at = (/** @type {number} */ value) => value.toFixed(1);

/** A line through points, along lanes and upright, whose corners are round where there is room. @param {[number, number][]} points */
function line(points) {
  let d = `M${at(points[0][0])} ${at(points[0][1])}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [[x0, y0], [x, y], [x1, y1]] = [points[i - 1], points[i], points[i + 1]];
    const [before, after] = [Math.hypot(x - x0, y - y0), Math.hypot(x1 - x, y1 - y)];
    const round = Math.min(ROUND, before / 2, after / 2);
    if (round < 0.5) {
      d += `L${at(x)} ${at(y)}`;
      continue;
    }
    d += `L${at(x + ((x0 - x) * round) / before)} ${at(y + ((y0 - y) * round) / before)}Q${at(x)} ${at(y)} ${at(x + ((x1 - x) * round) / after)} ${at(y + ((y1 - y) * round) / after)}`;
  }
  const [x, y] = points[points.length - 1];
  return `${d}L${at(x)} ${at(y)}`;
}

/** Along one lane to `x`, upright to another, and along that. */
const step = (/** @type {number} */ x1, /** @type {number} */ y1, /** @type {number} */ x, /** @type {number} */ x2, /** @type {number} */ y2) => line([[x1, y1], [x, y1], [x, y2], [x2, y2]]);
/** Along a lane to `x`, and upright from there. */
const turn = (/** @type {number} */ x1, /** @type {number} */ y1, /** @type {number} */ x, /** @type {number} */ y2) => line([[x1, y1], [x, y1], [x, y2]]);

/**
 * @param {{model: any, lanes: import('./layout.js').Lane[], X: (n: number) => number, unit: number, to: number, from: number, until: number,
 *   top: number, bottom: number, selected: string | null, reads: {from: string, to: string}[],
 *   waits: {from: string, to: string}[]}} of  `waits`: whom the chosen node waited for otherwise
 */
export function arrows({ model, lanes, X, unit, to, from, until, top, bottom, selected, reads, waits }) {
  /** @type {any[]} */
  const out = [];
  const byKey = new Map(lanes.map((lane) => [lane.key, lane]));
  /** @type {Map<number, {x1: number, x2: number, y: number, bar: any, lane: any}[]>} */
  const where = new Map();
  for (const lane of lanes)
    for (const bar of lane.bars) {
      const places = where.get(bar.node) ?? [];
      if (!places.length) where.set(bar.node, places);
      const [x1, x2] = ends(bar, unit, to);
      places.push({ x1, x2, y: lane.y + bar.row * ROW + ROW / 2 - 2, bar, lane });
    }
  const middle = (/** @type {any} */ lane) => lane.y + ROW / 2 - 2;
  /** Where an upright arrow ends at a lane: at a bar's edge, or at the lane's line. */
  const edge = (/** @type {any} */ lane, /** @type {number} */ x, /** @type {boolean} */ down) => {
    const meets = lane.bars.some((/** @type {any} */ bar) => bar.row === 0 && X(bar.n0) - 3 <= x && (bar.n1 !== null ? X(bar.n1) : to) + 1 >= x);
    return middle(lane) + (down ? -1 : 1) * (meets ? 14 : 2);
  };
  const add = (/** @type {string} */ kind, /** @type {string} */ key, /** @type {() => string} */ d, /** @type {number} */ when, /** @type {number} */ x,
    /** @type {number} */ y1, /** @type {number} */ y2, /** @type {boolean} */ near) => {
    if (x < from || x > until || Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) return;
    out.push({ kind, key, draw: d, near, when });
  };
  for (const [node, places] of where) {
    const told = model.nodes[node];
    const near = told.node === selected;
    for (const place of places) {
      const visit = told.visits[place.bar.visit];
      const own = place.lane.key;
      const beside = own.slice(0, own.lastIndexOf('/'));
      if (visit.opened) {
        const source = byKey.get(`${beside}/${visit.opened.from}`) ?? byKey.get(beside);
        if (source && source !== place.lane) add('taken', `o${node}.${place.bar.visit}`, () => step(place.x1 - 9, middle(source), place.x1 - 9, place.x1, place.y), place.bar.n0, place.x1, middle(source), place.y, near);
      }
      if (visit.published && place.bar.n1 !== null) {
        const goal = byKey.get(`${beside}/${visit.published}`) ?? byKey.get(beside);
        if (goal && goal !== place.lane) {
          const y = () => edge(goal, place.x2 + 5, goal.y > place.lane.y);
          add('sent', `p${node}.${place.bar.visit}`, () => turn(place.x2 - 2, place.y, place.x2 + 5, y()), place.bar.n1, place.x2, place.y, middle(goal), near);
        }
      }
    }
  }
  // What a node opened goes on from its conversation, and what counts of it comes back: one trunk for all of its lanes, on either side. In a loop
  // it does so in each round.
  /** @type {{lane: any, opener: any, first: any, last: any, near: boolean}[]} */
  const stretches = [];
  /** @type {Map<any, {left: number, right: number}>} */
  const trunks = new Map();
  // Where nothing of it lies in its own conversation, it begins and ends with what lies in its other threads.
  /** @type {Map<string, import('./layout.js').Bar[]>} */
  const elsewhere = new Map();
  for (const lane of lanes) {
    if (!(/** @type {any} */ (lane).parent) || lane.kind !== 'thread') continue;
    const own = lane.key.slice(0, lane.key.lastIndexOf('/'));
    if (byKey.get(own)?.bars.length) continue;
    const bars = elsewhere.get(own) ?? [];
    if (!bars.length) elsewhere.set(own, bars);
    for (const bar of lane.bars) bars.push(bar);
  }
  for (const bars of elsewhere.values()) bars.sort((a, b) => a.n0 - b.n0);
  for (const lane of lanes) {
    if (!(/** @type {any} */ (lane).parent) || lane.kind === 'thread') continue;
    /** @type {any} */
    let stretch = null;
    for (const bar of elsewhere.get(lane.key) ?? lane.bars) {
      const opened = model.frames[model.nodes[bar.node].frame].opener;
      const opener = (where.get(opened) ?? []).find((place) => place.bar.n0 <= bar.n0 && (place.bar.n1 ?? Infinity) >= bar.n0);
      if (!opener) continue;
      if (stretch?.opener !== opener) stretches.push((stretch = { lane, opener, first: bar, last: bar, near: model.nodes[opened].node === selected }));
      if ((bar.n1 ?? Infinity) >= (stretch.last.n1 ?? Infinity)) stretch.last = bar;
      stretch.near ||= model.nodes[bar.node].node === selected;
    }
  }
  for (const { opener, first, last } of stretches) {
    const [left, right] = [X(first.n0) - 9, last.n1 !== null ? X(last.n1) + 7 : 0];
    const had = trunks.get(opener.bar);
    trunks.set(opener.bar, had ? { left: Math.min(had.left, left), right: Math.max(had.right, right) } : { left, right });
  }
  for (const { lane, opener, first, last, near } of stretches) {
    if (!near && opener.x2 - opener.x1 < NARROW) continue;
    const frame = model.frames[model.nodes[last.node].frame];
    const trunk = /** @type {{left: number, right: number}} */ (trunks.get(opener.bar));
    const y = middle(lane);
    const left = Math.max(opener.x1 + 3, trunk.left);
    add('taken', `f${lane.key}@${first.n0}`, () => step(left, opener.y + 13, left, X(first.n0), y), first.n0, X(first.n0), opener.y, y, near);
    const main = model.nodes[frame.opener].visits[opener.bar.visit].join?.main;
    // The conversation of the main path goes on, or that of what is no path; of other paths there is what they gave.
    const end = last.n1 === null ? 0 : X(last.n1);
    if (last.n1 !== null && frame.status === 'completed')
      add(lane.kind === 'path' && main !== frame.key ? 'sent' : 'taken', `j${lane.key}@${first.n0}`, () => turn(end - 2, y, Math.max(end + 1, Math.min(opener.x2 - 6, trunk.right)), opener.y + 15), last.n1, end, y, opener.y, near);
  }
  const byName = reads.length || waits.length ? new Map(model.nodes.map((/** @type {any} */ node, /** @type {number} */ i) => [node?.node, i])) : new Map();
  const lead = (/** @type {string} */ kind, /** @type {{from: string, to: string}} */ one, /** @type {boolean} */ near) => {
    const [a, b] = [where.get(byName.get(one.from)), where.get(byName.get(one.to))];
    const end = b?.[b.length - 1];
    const start = end && (a ?? []).filter((place) => place.bar.n1 !== null && place.bar.n1 <= end.bar.n0).pop();
    if (!start || !end) return;
    const same = Math.abs(start.y - end.y) < 4;
    if (!near && same && end.x1 - start.x2 < 30) return;
    // A long way goes between the rows, where no bar is in it.
    const gap = start.y + (end.y < start.y ? -ROW / 2 : ROW / 2);
    const before = Math.max(start.x2 + 2, end.x1 - 9);
    const d = () => end.x1 - start.x2 > 30 ? line([[start.x2 - 1, start.y], [start.x2 + 5, start.y], [start.x2 + 5, gap], [before, gap], [before, end.y], [end.x1, end.y]])
      : step(start.x2 - 1, start.y, before, end.x1, end.y);
    add(kind, `${kind}${one.from}>${one.to}`, d, end.bar.n0, end.x1, start.y, end.y, near);
  };
  for (const read of reads) lead('read', read, read.from === selected || read.to === selected);
  for (const wait of waits) lead('after', wait, true);
  const first = out.length <= MOST ? out : out.filter((arrow) => arrow.near);
  const kept = out.length <= MOST ? out : first.concat(out.filter((arrow) => !arrow.near).slice(0, Math.max(0, MOST - first.length)));
  // Only what is shown has to be drawn.
  for (const arrow of kept) arrow.d = arrow.draw();
  return kept;
}
