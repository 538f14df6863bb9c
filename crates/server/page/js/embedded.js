/** The run that lies in the page, read-only (S-31): `export RUN --html` writes it as data, which no browser runs. */

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
  return {
    sealed: String(run.run_id),
    enter: none, session: () => later({ role: 'viewer' }),
    runs: () => later({ runs: [run] }),
    run: (/** @type {string} */ _, /** @type {any} */ query) => {
      const n = until(query?.at);
      return later(n >= timeline.events ? run : { ...run, status: 'running', output: null, fault: null });
    },
    timeline: () => later(timeline),
    threads: (/** @type {string} */ _, /** @type {any} */ query) => later({ threads: Object.entries(inside.threads).map(([name, list]) => ({ name, messages: list.filter((/** @type {any} */ m) => (m.n ?? 0) <= until(query?.at)).length })) }),
    thread: (/** @type {string} */ _, /** @type {string} */ name, /** @type {any} */ query) => {
      const n = until(query?.at);
      const all = (inside.threads[name] ?? []).filter((/** @type {any} */ message) => (message.n ?? 0) <= n);
      const from = Number(query?.from ?? 0);
      return later({ thread: name, from, of: all.length, messages: all.slice(from, from + Number(query?.limit ?? 100)) });
    },
    node: (/** @type {string} */ _, /** @type {string} */ node) => (inside.nodes[node] ? later(inside.nodes[node]) : none()),
    explain: () => later(inside.explain ?? { nodes: [] }),
    events: (/** @type {string} */ _, /** @type {any} */ query) => {
      const after = Number(query?.after ?? 0);
      return later({ events: (inside.events ?? []).slice(after, after + Number(query?.limit ?? 100)) });
    },
    follow: () => () => {},
    asks: () => later({ asks: [] }), answer: none, cancel: none, resume: none, fork: none, diff: none, documents: () => later({ documents: [] }),
    document: none, check: none, start: none, tools: () => later({ tools: [] }), tool: none, toolHistory: none, toolDiff: none,
  };
}
