/**
 * Lanes of a run: which there are, what lies on them, and where (S-22). Pure: a model and what is folded go in, places come out.
 *
 * Threads are lanes, and so are paths of a fork, subgraphs, and loops with their iterations one after another. What a node opened lies below the lane
 * of the node, and folds with it.
 *
 * @typedef {import('./model.js').Model} Model
 * @typedef {{node: number, visit: number, n0: number, n1: number | null, t0: number, t1: number | null, row: number, group: string | null,
 *   members: number[], x0?: number, x1?: number}} Bar  `members`: the frames that it opened; `x0` and `x1`: where it is on the axis
 * @typedef {{key: string, label: string, title: string, depth: number, group: string | null, kind: string, bars: Bar[], rows: number, y: number,
 *   height: number, opened: string | null, status: string, ended?: import('./model.js').Moment | null, count: number,
 *   coming: import('./model.js').TNode[]}} Lane
 */

export const ROW = 30;
export const GAP = 8;
/** What has more of them is folded at first. */
const MANY_PATHS = 14;
const MANY_NODES = 60;
const DETAILED = 300;
const NONE = /** @type {number[]} */ ([]);

/**
 * The tree of lanes: each knows its bars and what they opened.
 * @param {Model} model
 */
export function tree(model) {
  /** @type {Map<string, any>} */
  const lanes = new Map();
  /** @type {any[]} */
  const roots = [];
  /** @type {Map<string, any>} */
  const groups = new Map();
  const frameKeys = model.frames.map(() => /** @type {string | undefined} */ (undefined));

  /** @param {number} at @returns {string} */
  const frameKey = (at) => {
    const known = frameKeys[at];
    if (known !== undefined) return known;
    const frame = model.frames[at];
    let key = '';
    if (frame && frame.opener !== null && frame.opener !== undefined) {
      const opener = model.nodes[frame.opener];
      const group = `${frameKey(opener.frame)}/${opener.id}`;
      key = frame.which === 'path' ? `${group}[${frame.key}]` : `${group}#`;
    }
    frameKeys[at] = key;
    return key;
  };

  /** @param {string} key @param {() => any} make */
  const lane = (key, make) => {
    let found = lanes.get(key);
    if (!found) lanes.set(key, (found = { key, bars: [], groups: [], coming: [], frames: 0, ...make() }));
    return found;
  };

  /** @param {number} at @param {string | null} thread */
  const laneOf = (at, thread) => {
    const inside = frameKey(at);
    const frame = model.frames[at];
    const own = !thread || thread === 'main';
    if (!inside) {
      // Nodes of a flow that say nothing in a thread lie where the flow's conversation is.
      const name = thread ?? (model.dialect === 'steps' ? '' : 'main');
      return lane(`/${name}`, () => ({ label: name, title: name, kind: name ? 'thread' : 'steps', parent: null, status: 'open' }));
    }
    const opener = model.nodes[frame.opener ?? 0];
    const group = `${frameKey(opener.frame)}/${opener.id}`;
    const base = lane(inside, () => ({
      label: frame.which === 'path' ? (/^\d+$/.test(frame.key ?? '') ? `${opener.id}[${frame.key}]` : frame.key ?? '') : opener.id, title: frame.name, kind: frame.which ?? 'sub', parent: group, status: frame.status, ended: frame.ended,
    }));
    if (own) return base;
    return lane(`${inside}/${thread}`, () => ({ label: thread, title: `${frame.name} · ${thread}`, kind: 'thread', parent: group, status: frame.status, ended: frame.ended }));
  };

  model.nodes.forEach((node, at) => {
    if (!node) return;
    const found = laneOf(node.frame, node.thread);
    if (!node.visits.length && node.status === 'not_started') found.coming.push(node);
    if (!found.bars.length && found.parent === null && !roots.includes(found)) roots.push(found);
    node.visits.forEach((visit, v) => {
      const first = visit.started ?? visit.asks[0]?.asked ?? visit.ended;
      if (!first) return;
      found.bars.push({ node: at, visit: v, n0: first[0], n1: visit.ended?.[0] ?? null, t0: first[1], t1: visit.ended?.[1] ?? null, row: 0, group: null, members: NONE });
    });
  });
  /** The frames that each node opened: the lanes of a group are those of all iterations around it. @type {Map<number, number[]>} */
  const opened = new Map();
  model.frames.forEach((frame, at) => {
    if (!frame || frame.opener === null || frame.opener === undefined) return;
    const opener = model.nodes[frame.opener];
    const key = `${frameKey(opener.frame)}/${opener.id}`;
    let group = groups.get(key);
    if (!group) {
      groups.set(key, (group = { key, opener: frame.opener, lanes: [], nodes: 0 }));
      laneOf(opener.frame, opener.thread).groups.push(group);
    }
    const same = opened.get(frame.opener);
    if (same) same.push(at);
    else opened.set(frame.opener, [at]);
    const inner = lanes.get(frameKey(at));
    if (inner) {
      inner.frames++;
      inner.status = frame.status;
      inner.ended = frame.ended;
    }
  });
  for (const found of lanes.values()) {
    if (found.parent === null) continue;
    const group = groups.get(found.parent);
    group.lanes.push(found);
    group.nodes += found.bars.length;
  }
  for (const found of lanes.values()) {
    found.bars.sort((/** @type {Bar} */ a, /** @type {Bar} */ b) => a.n0 - b.n0);
    const byNode = new Map(found.groups.map((/** @type {any} */ group) => [model.nodes[group.opener].id, group.key]));
    for (const bar of found.bars) {
      bar.group = byNode.get(model.nodes[bar.node].id) ?? null;
      if (bar.group) bar.members = (opened.get(bar.node) ?? NONE).filter((at) => isOf(bar, model.frames[at], model.nodes[bar.node]));
    }
  }
  return { roots, groups };
}

/** Whether a visit of a node had a frame. @param {Bar} bar @param {import('./model.js').Frame} frame @param {import('./model.js').TNode} node */
const isOf = (bar, frame, node) => (frame.began ? frame.began[0] <= (bar.n1 ?? Infinity) && (frame.ended?.[0] ?? Infinity) >= bar.n0 : bar.visit === node.visits.length - 1);

/** Whether a group is folded: as the person said, else by its size. @param {any} group @param {Map<string, boolean>} said */
export function isFolded(group, said) {
  return said.get(group.key) ?? (group.lanes.length > MANY_PATHS || group.nodes > MANY_NODES);
}

/**
 * The lanes that are shown, one below the other.
 * @param {{roots: any[], groups: Map<string, any>}} tree @param {Map<string, boolean>} said
 * @returns {{lanes: Lane[], height: number}}
 */
export function place(tree, said) {
  /** @type {Lane[]} */
  const lanes = [];
  let y = GAP;
  const walk = (/** @type {any} */ lane, /** @type {number} */ depth) => {
    const rows = pack(lane.bars);
    const height = rows * ROW + GAP;
    lanes.push({ ...lane, depth, rows, y, height, count: lane.frames });
    y += height;
    for (const group of lane.groups) if (!isFolded(group, said)) for (const inner of group.lanes) walk(inner, depth + 1);
  };
  for (const root of tree.roots) walk(root, 0);
  return { lanes, height: y };
}

/** Gives each bar of a lane a row on which no other one is at that time; how many rows that takes. @param {Bar[]} bars */
function pack(bars) {
  /** @type {number[]} */
  const ends = [];
  for (const bar of bars) {
    let row = ends.findIndex((end) => end <= bar.n0);
    if (row < 0) row = ends.length;
    bar.row = row;
    ends[row] = bar.n1 ?? Infinity;
  }
  return Math.max(1, ends.length);
}

/**
 * Where events are, from left to right, in units: `time` is true to the clock; `steps` gives each beginning and end that is shown some room, and a
 * long wait not more than it needs to be seen as long.
 * @param {Lane[]} lanes @param {Model} model @param {string} kind @param {number} now
 */
export function scale(lanes, model, kind, now) {
  /** @type {Map<number, number>} */
  const at = new Map([[1, model.began]]);
  const starts = new Set();
  // Where there are few bars, what they did has room as well.
  const detailed = lanes.reduce((sum, lane) => sum + lane.bars.length, 0) < DETAILED;
  const last = Math.max(1, model.events);
  for (const lane of lanes)
    for (const bar of lane.bars) {
      at.set(bar.n0, bar.t0);
      starts.add(bar.n0);
      if (detailed && !bar.group)
        for (const call of model.nodes[bar.node].visits[bar.visit].calls)
          for (const attempt of call.attempts) for (const moment of [attempt.at, attempt.ended]) if (moment) at.set(moment[0], moment[1]);
      if (bar.n1 !== null) at.set(bar.n1, bar.t1 ?? bar.t0);
    }
  if (!at.has(last)) at.set(last, model.last);
  const ns = [...at.keys()].sort((a, b) => a - b);
  const ts = ns.map((n) => at.get(n) ?? model.began);
  const xs = new Array(ns.length).fill(0);
  for (let i = 1; i < ns.length; i++) {
    const gap = Math.max(0, ts[i] - ts[i - 1]);
    xs[i] = xs[i - 1] + (kind === 'time' ? gap : gap === 0 ? (starts.has(ns[i - 1]) ? 0.9 : 0.35) : 1 + 1.4 * Math.log2(1 + gap / 25));
  }
  // What goes on has room to grow into.
  const open = model.driven ? Math.max(0, now - model.last) : 0;
  // So has a question that waits for an answer.
  const waits = kind === 'steps' && model.status === 'waiting' ? 2.5 : 0;
  const end = xs[xs.length - 1] + waits + (kind === 'time' ? open : open ? 1 + 1.4 * Math.log2(1 + open / 25) : 0) || 1;
  // Where there is much of it, and more comes, there is some room ahead: what has been drawn stays where it is until that is full.
  const step = 2 ** Math.floor(Math.log2(end)) / 16;
  const room = model.driven && !detailed ? Math.ceil(end / step) * step : end;
  /** @param {number} n */
  const x = (n) => {
    let lo = 0;
    let hi = ns.length - 1;
    if (n >= ns[hi]) return xs[hi];
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (ns[mid] <= n) lo = mid;
      else hi = mid - 1;
    }
    if (lo >= ns.length - 1) return xs[lo];
    return xs[lo] + ((xs[lo + 1] - xs[lo]) * (n - ns[lo])) / (ns[lo + 1] - ns[lo]);
  };
  for (const lane of lanes) for (const bar of lane.bars) [bar.x0, bar.x1] = [x(bar.n0), bar.n1 === null ? undefined : x(bar.n1)];
  /** The event that is nearest to a place. @param {number} where */
  const n = (where) => {
    let lo = 0;
    let hi = xs.length - 1;
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (xs[mid] <= where) lo = mid;
      else hi = mid - 1;
    }
    if (lo >= xs.length - 1) return last;
    const part = (where - xs[lo]) / (xs[lo + 1] - xs[lo] || 1);
    return Math.round(ns[lo] + part * (ns[lo + 1] - ns[lo]));
  };
  return { x, n, end, room, marks: { ns, ts, xs, end } };
}

/**
 * Times that the axis says: where there is room, in order, none twice, and the last one. `room` is how much of the axis one takes.
 * @param {{ns: number[], ts: number[], xs: number[], end: number}} marks @param {number} began @param {number} room @param {(ms: number) => string} say
 */
export function ticks({ ts, xs, end }, began, room, say) {
  const final = xs.length - 1;
  const last = { x: Math.min(end, xs[final]), text: say(ts[final] - began), last: true };
  const out = [{ x: xs[0], text: say(ts[0] - began), last: false }];
  for (let i = 1; i < final && xs[i] <= last.x - 1.6 * room; i++) {
    const before = out[out.length - 1];
    if (xs[i] < before.x + room) continue;
    const text = say(ts[i] - began);
    if (text !== before.text && text !== last.text) out.push({ x: xs[i], text, last: false });
  }
  if (last.text !== out[out.length - 1].text && last.x - xs[0] >= 1.6 * room) out.push(last);
  return out;
}
