/** The run that lies in the page, read-only (S-31): `export RUN --html` writes it as data, which no browser runs. */

import { isShown } from './text.js';

/** @returns {any} */
export function embedded() {
  const block = document.getElementById('run-inside');
  if (!block) return null;
  const inside = JSON.parse(block.textContent ?? '{}');
  const { run, timeline } = inside;
  const later = (/** @type {any} */ value) => Promise.resolve(value);
  const none = () => Promise.reject({ title: 'read-only' });
  /** @param {number | string | undefined} at */
  const until = (at) => (at ? Number(at) : timeline.events);
  /** What a thread said at an event. @param {any} thread @param {number} n @returns {any[]} */
  const said = (thread, n) => thread.messages.filter((/** @type {any} */ message) => message.n <= n && (message.gone ?? Infinity) > n);
  /** When each call was asked for and answered. @type {Map<string, [number, number]>} */
  const asked = new Map();
  for (const node of timeline.nodes)
    for (const visit of node.visits)
      for (const call of visit.calls) for (const one of call.attempts) asked.set(one.effect, [one.requested.n, one.ended?.n ?? Infinity]);
  /** What it had used by an event. @param {number} n */
  const used = (n) => inside.used.findLast((/** @type {[number, any]} */ [from]) => from <= n)?.[1] ?? null;
  /** A node by an event: without what had not been asked for, and what had not come back. @param {any} node @param {number} n */
  const as = (node, n) => ({
    ...node,
    calls: (node.calls ?? []).flatMap((/** @type {any} */ call) => {
      const [from, to] = asked.get(call.effect) ?? [0, 0];
      if (from > n) return [];
      const { reply: _reply, output: _output, fault: _fault, printed: _printed, ...rest } = call;
      return [to > n ? rest : call];
    }),
  });
  /** Of a node's calls, which had been shown something by an event, and who had said that. @param {any} node @param {number} n */
  const seen = (node, n) => {
    const saw = (node.saw ?? []).filter((/** @type {any} */ call) => (asked.get(call.effect)?.[0] ?? 0) <= n);
    return { ...node, saw, messages_from: saw.at(-1)?.from ?? [] };
  };
  return {
    sealed: String(run.run_id),
    enter: none, session: () => later({ role: 'viewer' }),
    runs: () => later({ runs: [run] }),
    run: (/** @type {string} */ _, /** @type {any} */ query) => {
      const n = until(query?.at);
      // Its values, and what was spared and warned of, are told of its end.
      return later(n >= timeline.events ? run : { ...run, status: 'running', output: null, fault: null, usage: used(n), saved: null, warnings: [], metadata: { initial: run.metadata?.initial } });
    },
    timeline: () => later(timeline),
    threads: (/** @type {string} */ _, /** @type {any} */ query) => {
      const n = until(query?.at);
      const there = Object.entries(inside.threads).filter(([, thread]) => thread.there.some((/** @type {[number, number | null]} */ [from, to]) => from <= n && (to ?? Infinity) > n));
      return later({ at: n, threads: there.map(([name, thread]) => ({ name, messages: said(thread, n).length })) });
    },
    thread: (/** @type {string} */ _, /** @type {string} */ name, /** @type {any} */ query) => {
      const n = until(query?.at);
      const all = inside.threads[name] ? said(inside.threads[name], n) : [];
      const from = Number(query?.from ?? 0);
      return later({ thread: name, from, of: all.length, messages: all.slice(from, from + Number(query?.limit ?? 100)) });
    },
    readers: (/** @type {string} */ _, /** @type {string} */ name, /** @type {any} */ query) => {
      const n = until(query?.at);
      const from = Number(query?.from ?? 0);
      const page = (inside.threads[name] ? said(inside.threads[name], n) : []).slice(from, from + Number(query?.limit ?? 100));
      const nodes = inside.explain.nodes.map((/** @type {any} */ node) => ({ node: node.node, shown: seen(node, n).saw.flatMap((/** @type {any} */ call) => call.shown ?? []) }));
      const of = (/** @type {any} */ message) => nodes.filter((/** @type {any} */ one) => one.node !== message.node && isShown(one.shown, message)).map((/** @type {any} */ one) => one.node);
      return later({ from, readers: page.map((message) => ({ nodes: of(message), of: of(message).length })) });
    },
    node: (/** @type {string} */ _, /** @type {string} */ node, /** @type {any} */ query) => (inside.nodes[node] ? later(as(inside.nodes[node], until(query?.at))) : none()),
    reruns: none,
    explain: (/** @type {string} */ _, /** @type {string[]} */ asked, /** @type {number | null} */ at) => {
      const n = until(at ?? undefined);
      const of = new Set(asked);
      const begun = new Set(timeline.nodes.filter((/** @type {any} */ node) => node.visits?.[0]?.began?.n <= n).map((/** @type {any} */ node) => node.name));
      return later({ nodes: inside.explain.nodes.filter((/** @type {any} */ node) => (!at || begun.has(node.node)) && of.has(node.node)).map((/** @type {any} */ node) => (at ? seen(node, n) : node)) });
    },
    events: (/** @type {string} */ _, /** @type {any} */ query) => {
      const after = Number(query?.after ?? 0);
      return later({ events: (inside.events ?? []).slice(after, after + Number(query?.limit ?? 100)) });
    },
    follow: () => () => {},
    asks: () => later({ asks: [] }), answer: none, message: none, cancel: none, resume: none, fork: none, forkPlan: none, diff: none, documents: () => later({ documents: [] }),
    document: none, check: none, start: none, tools: () => later({ tools: [] }), tool: none,
  };
}
