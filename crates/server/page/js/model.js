/**
 * What a run's timeline says, and what of it had happened by an event. Nothing is folded here: the server's timeline has the numbers of the
 * events at which things begin and end, and a moment is a number that they are compared with (S-22).
 *
 * @typedef {[number, number]} Moment The event's number, and when it happened (milliseconds since 1970).
 * @typedef {{at: Moment, ended: Moment | null, after_ms?: number, reason?: string, ok?: boolean | null, lost?: boolean, fault?: string}} Attempt
 * @typedef {{kind: string, name?: string, reused?: boolean, attempts: Attempt[]}} Call
 * @typedef {{ask: string, kind: string, asked: Moment, closed: Moment | null}} Question
 * @typedef {{started: Moment | null, ended: Moment | null, cut?: boolean, after?: number, fault?: {kind: string, message: string} | null, cancelled?: boolean,
 *   reused?: number, of?: number, opened?: {from: string, start: number, end: number}, published?: string, tokens?: number, calls: Call[],
 *   asks: Question[], join?: any, paths?: any}} Visit
 * @typedef {{node: string, id: string, name: string, frame: number, thread: string | null, kind: string, skipped?: string | null, status: string, isReused: boolean,
 *   visits: Visit[]}} TNode
 * @typedef {{name: string, which: string | null, key: string | null, opener: number | null, began: Moment | null, ended: Moment | null,
 *   status: string}} Frame
 * @typedef {{run_id: string, events: number, began: number, last: number, status: string, driven: boolean, frames: Frame[], nodes: TNode[],
 *   recovery: any[], begun: number, source: any, name: string, dialect: string, threads: {name: string, messages: number, mark?: string}[]}} Model
 */

const FLOW = ['fork', 'loop', 'sub'];

/** What kind of node it is, by what it can do. @param {string[]} does */
function kindOf(does) {
  return does.includes('ask') ? 'person' : does.some((one) => FLOW.includes(one)) ? 'flow' : does.includes('model') ? 'model' : does.includes('tool') || does.includes('operation') ? 'tool' : 'flow';
}

/** A moment of the API, with its time since 1970. @param {any} moment @param {number} zero @returns {Moment | null} */
const point = (moment, zero) => (moment ? [moment.n, zero + (moment.ms ?? 0)] : null);

const NONE = /** @type {any[]} */ ([]);

/** What says nothing is not there (`brief`). @param {any} visit @param {number} zero @returns {Visit} */
function readVisit(visit, zero) {
  const reused = visit.reused ?? 0;
  return {
    started: point(visit.began, zero), ended: point(visit.ended, zero), fault: visit.fault, cancelled: visit.cancelled, reused,
    of: reused + (visit.requested ?? 0), tokens: (visit.tokens?.input ?? 0) + (visit.tokens?.output ?? 0), opened: visit.thread?.opened, published: visit.thread?.published,
    paths: visit.paths, join: visit.joined,
    calls: (visit.calls ?? NONE).map((/** @type {any} */ call) => ({
      kind: call.kind, name: call.name, reused: Boolean(call.reused_from),
      attempts: (call.attempts ?? NONE).map((/** @type {any} */ one) => ({
        at: point(one.requested, zero), ended: point(one.ended, zero), after_ms: one.after_ms, reason: one.reason, ok: one.outcome ? one.outcome === 'done' : null, lost: one.outcome === 'lost',
      })),
    })),
    asks: (visit.asks ?? NONE).map((/** @type {any} */ ask) => ({ ask: ask.ask, kind: ask.kind, asked: point(ask.asked, zero), closed: point(ask.closed, zero) })),
  };
}

/** A visit that has no end went on until the node began anew, as it does where a run is forked or taken up. @param {Visit} visit @param {Moment | null} next */
function cutOff(visit, next) {
  if (visit.ended || !next) return visit;
  for (const call of visit.calls) for (const attempt of call.attempts) attempt.ended ??= next;
  for (const ask of visit.asks) ask.closed ??= next;
  return { ...visit, ended: next, cut: true };
}

/** @param {any} node @param {number} zero @returns {TNode} */
function readNode(node, zero) {
  const id = node.id ?? node.name;
  return {
    node: node.name, id, name: node.title ?? id, frame: node.frame, thread: node.thread ?? null, kind: kindOf(node.does ?? NONE), skipped: node.skipped, status: node.status, isReused: Boolean(node.reused?.whole),
    visits: (node.visits ?? NONE).map((/** @type {any} */ visit, /** @type {number} */ at, /** @type {any[]} */ all) => cutOff(readVisit(visit, zero), point(all[at + 1]?.began, zero))),
  };
}

/** @param {any} frame @param {number} zero @returns {Frame} */
function readFrame(frame, zero) {
  const which = frame.which ?? null;
  const kind = which === null ? null : which === 'sub' ? 'sub' : 'path' in which ? 'path' : 'iteration';
  return { name: frame.name ?? '', which: kind, key: kind === 'path' ? which.path : kind === 'iteration' ? String(which.iteration) : null, opener: frame.opener ?? null, began: point(frame.began, zero), ended: point(frame.ended, zero), status: frame.status };
}

/**
 * The API's timeline, as views have it: the whole one, or what has changed since the one before. What has not changed is kept as it was, so that
 * it costs nothing to show it again.
 * @param {any} timeline @param {Model | null} before @returns {Model}
 */
export function read(timeline, before = null) {
  const zero = Date.parse(timeline.zero);
  const since = before && before.run_id === timeline.run_id && before.began === zero ? before.events : 0;
  const partly = before && typeof timeline.after === 'number';
  /** @type {TNode[]} */
  let nodes;
  /** @type {Frame[]} */
  let frames;
  if (partly) {
    nodes = before.nodes.slice(0, before.begun);
    for (const node of timeline.nodes) nodes[node.index] = readNode(node, zero);
    const begun = new Set(nodes.slice(before.begun).map((node) => node.node));
    nodes.push(...before.nodes.slice(before.begun).filter((node) => !begun.has(node.node)));
    frames = before.frames.slice();
    for (const frame of timeline.frames) frames[frame.index] = readFrame(frame, zero);
  } else {
    const kept = (/** @type {any} */ node, /** @type {number} */ at) => {
      const was = since ? before?.nodes[at] : undefined;
      return was && was.node === node.name && was.status === node.status && was.visits.length === (node.visits?.length ?? 0) && settled(node, since) ? was : undefined;
    };
    nodes = timeline.nodes.map((/** @type {any} */ node, /** @type {number} */ at) => kept(node, at) ?? readNode(node, zero));
    frames = timeline.frames.map((/** @type {any} */ frame) => readFrame(frame, zero));
  }
  return {
    run_id: timeline.run_id, name: timeline.name, dialect: timeline.dialect, status: timeline.status, driven: Boolean(timeline.driven), events: timeline.events, began: zero,
    last: zero + (timeline.until?.ms ?? 0), threads: timeline.threads ?? [], source: timeline.source ?? null, recovery: timeline.recovery ?? [], frames, nodes,
    begun: timeline.begun ?? nodes.length,
  };
}

/** Whether all that a node did was over at an event: then nothing of it has changed since. @param {any} node @param {number} n */
function settled(node, n) {
  const last = node.visits?.at(-1);
  return last?.ended && last.ended.n <= n;
}

/** @param {Moment | null | undefined} moment @param {number} n */
const by = (moment, n) => !!moment && moment[0] <= n;

/**
 * The visit of a node that counts at an event; null if it had not begun.
 * @param {TNode} node @param {number} n @returns {Visit | null}
 */
export function visitAt(node, n) {
  for (let i = node.visits.length - 1; i >= 0; i--) {
    const visit = node.visits[i];
    if (by(visit.started, n) || by(visit.ended, n) || visit.asks.some((ask) => by(ask.asked, n))) return visit;
  }
  return null;
}

/** The words of the server for where a node stands now. @type {Record<string, string>} */
const NOW = { done: 'ran', retrying: 'again', asking: 'asks', queued: 'running', not_started: 'future' };

/**
 * How a visit stood at an event, in one word; the words are those of `graph RUN`. Where the node stands now is what the server says, as it says it on
 * the command line; before that, what had begun went on.
 * @param {TNode} node @param {Visit} visit @param {number} n @param {Model} model
 */
export function standing(node, visit, n, model) {
  if (by(visit.ended, n)) {
    if (visit.cut) return 'stopped';
    if (visit.cancelled) return 'cancelled';
    if (visit.fault) return 'failed';
    const isReused = visit === node.visits.at(-1) ? node.isReused : visit.reused && visit.reused >= (visit.of ?? 0);
    return isReused ? 'reused' : 'ran';
  }
  if (n >= model.events && visit === node.visits.at(-1)) return NOW[node.status] ?? node.status;
  if (visit.asks.some((ask) => by(ask.asked, n) && !by(ask.closed, n))) return 'asks';
  if (!by(visit.started, n)) return 'future';
  for (const call of visit.calls) {
    const attempt = latest(call, n);
    if (attempt && !by(attempt.ended, n) && attempt.after_ms) return 'again';
  }
  return 'running';
}

/** @param {Call} call @param {number} n @returns {Attempt | undefined} */
export function latest(call, n) {
  return call.attempts.filter((attempt) => by(attempt.at, n)).at(-1);
}

/**
 * What a visit was doing at an event: its call that is under way.
 * @param {Visit} visit @param {number} n
 */
export function doing(visit, n) {
  for (let i = visit.calls.length - 1; i >= 0; i--) {
    const call = visit.calls[i];
    const attempt = latest(call, n);
    if (attempt && !by(attempt.ended, n)) return { call, attempt };
  }
  return null;
}

/** How a run stands, in one word: one that goes on by itself, but that nobody drives, has stopped. @param {{status: string, driven?: boolean}} run */
export const statusOf = (run) => (run.status === 'running' && run.driven === false ? 'stopped' : run.status);

/** Whether a run has ended. @param {{status: string}} run */
export const isOver = (run) => ['completed', 'failed', 'cancelled'].includes(run.status);

/** The last visit of each node. @param {Model} model */
const lastVisits = (model) => model.nodes.flatMap((node) => node?.visits.at(-1) ?? []);

/** How many calls are under way now. @param {Model} model */
export const underWay = (model) => lastVisits(model).reduce((sum, visit) => sum + visit.calls.filter((call) => call.attempts.length && !call.attempts.at(-1)?.ended).length, 0);

/** How many questions are open now. @param {Model} model */
export const openQuestions = (model) => lastVisits(model).reduce((sum, visit) => sum + visit.asks.filter((ask) => !ask.closed).length, 0);

/** How often a visit had to try again, up to an event. @param {Visit} visit @param {number} n */
export function retries(visit, n) {
  let all = 0;
  for (const call of visit.calls) all += Math.max(0, call.attempts.filter((attempt) => by(attempt.at, n)).length - 1);
  return all;
}

/**
 * Most nodes run once, and then end: of these, when they begin and end tells how many stand where, without a look at each. Nodes that only hold
 * others (loops, forks, subgraphs) are not counted beside what they hold.
 * @typedef {{begun: Int32Array, ended: Map<string, Int32Array>, others: TNode[], skipped: number, idle: number}} Counts  `idle` never began
 * @type {WeakMap<TNode[], Counts>}
 */
const counts = new WeakMap();

/** @param {Model} model @returns {Counts} */
function countsOf(model) {
  const known = counts.get(model.nodes);
  if (known) return known;
  // One that failed by itself, and not of what it holds, is counted.
  const [openers, broken] = [new Set(), new Set()];
  for (const frame of model.frames) {
    openers.add(frame?.opener);
    if (frame?.status === 'failed') broken.add(frame.opener);
  }
  /** @type {number[]} */
  const begun = [];
  /** @type {Map<string, number[]>} */
  const ended = new Map();
  /** @type {TNode[]} */
  const others = [];
  let [skipped, idle] = [0, 0];
  model.nodes.forEach((node, at) => {
    if (openers.has(at) && (broken.has(at) || !node.visits.at(-1)?.fault)) return;
    const [visit, more] = node.visits;
    const from = visit?.started;
    const isPlain = from && visit.ended && visit.ended[0] >= from[0] && !more && !visit.asks.length && !visit.calls.some((call) => call.attempts.some((one) => one.after_ms));
    if (!isPlain) {
      if (visit) others.push(node);
      else if (node.skipped) skipped++;
      else idle++;
      return;
    }
    begun.push(from[0]);
    const word = standing(node, visit, visit.ended?.[0] ?? 0, model);
    const same = ended.get(word);
    if (same) same.push(visit.ended?.[0] ?? 0);
    else ended.set(word, [visit.ended?.[0] ?? 0]);
  });
  const sorted = (/** @type {number[]} */ all) => Int32Array.from(all).sort();
  const made = { begun: sorted(begun), ended: new Map([...ended].map(([word, all]) => [word, sorted(all)])), others, skipped, idle };
  counts.set(model.nodes, made);
  return made;
}

/** How many are at most so much. @param {Int32Array} sorted @param {number} n */
export function upTo(sorted, n) {
  let [lo, hi] = [0, sorted.length];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (sorted[mid] <= n) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/**
 * How many nodes stand where at an event.
 * @param {Model} model @param {number} n @returns {Record<string, number>}
 */
export function tally(model, n) {
  const { begun, ended, others, skipped, idle } = countsOf(model);
  /** @type {Record<string, number>} */
  const all = {};
  let going = upTo(begun, n);
  for (const [word, when] of ended) {
    const over = upTo(when, n);
    if (over) all[word] = over;
    going -= over;
  }
  if (going) all.running = going;
  if (n >= model.events && skipped) all.skipped = skipped;
  // All that had to run has run: what has not is on branches that were not taken.
  if (n >= model.events && idle && model.status === 'completed') all['not-taken'] = idle;
  for (const node of others) {
    const visit = visitAt(node, n);
    const word = visit ? standing(node, visit, n, model) : 'future';
    if (word !== 'future') all[word] = (all[word] ?? 0) + 1;
  }
  return all;
}

/**
 * Events that a scrubber marks: faults, questions, tries again, recoveries, and where a fork left its source.
 * @param {Model} model @returns {{n: number, kind: string, node: string}[]}
 */
export function marks(model) {
  const out = [];
  for (const node of model.nodes) {
    for (const visit of node.visits) {
      if (visit.fault && visit.ended) out.push({ n: visit.ended[0], kind: 'failed', node: node.node });
      for (const ask of visit.asks) out.push({ n: ask.asked[0], kind: 'asks', node: node.node });
      for (const call of visit.calls)
        for (const attempt of call.attempts) if (attempt.reason || attempt.after_ms) out.push({ n: attempt.at[0], kind: 'again', node: node.node });
    }
  }
  for (const rung of model.recovery ?? []) if (rung.what === 'action') out.push({ n: rung.n, kind: 'recovered', node: rung.node });
  const left = forkedAt(model);
  if (left) out.push({ n: left, kind: 'forked', node: model.source?.run ?? String(model.source) });
  return out.sort((a, b) => a.n - b.n);
}

/** Where a node is, by the name that people are told. @param {Model} model @param {string} name */
export function named(model, name) {
  return model.nodes.findIndex((node) => node && node.node === name);
}

/** The run that this one is a fork of. @param {Model} model @returns {string | null} */
export const sourceOf = (model) => (model.source ? model.source.run ?? model.source.run_id ?? String(model.source) : null);

/** The event with which a fork left its source. @param {Model} model @returns {number} */
export const forkedAt = (model) => (model.source ? model.source.n ?? model.source.left ?? 0 : 0);

/**
 * How the frames of a group stood at an event: how many of them, by word.
 * @param {Model} model @param {number[]} frames @param {number} n
 */
export function frameTally(model, frames, n) {
  const all = { ran: 0, failed: 0, cancelled: 0, running: 0 };
  for (const at of frames) {
    const frame = model.frames[at];
    if (!by(frame.began, n)) continue;
    const word = !by(frame.ended, n) ? 'running' : frame.status === 'failed' ? 'failed' : frame.status === 'cancelled' ? 'cancelled' : 'ran';
    all[word]++;
  }
  return all;
}

/**
 * How far a fork's join had come at an event: how many paths count for it, and how many it takes (E-38).
 * @param {Visit} visit @param {{ran: number, failed: number}} tally @returns {{n: number, need: number, of: number} | null}
 */
export function joinFill(visit, tally) {
  const { join, of } = /** @type {any} */ (visit.paths) ?? {};
  if (!join || !of) return null;
  const failing = join.strategy.endsWith('FAILED');
  return { n: failing ? tally.failed : tally.ran, need: join.count ?? (join.strategy.startsWith('ANY') ? 1 : of), of };
}
