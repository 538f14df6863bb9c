/**
 * Where the page has its runs from: a server's API, or the run that lies in the page itself (S-31). Views know only this.
 *
 * @typedef {{title: string, detail?: string, help?: string, status?: number, diagnostics?: any[], code?: string}} Trouble
 */
import { store } from './ui.js';
import { t } from './words.js';
import { embedded } from './embedded.js';

/** Whether the server can be reached, and who one is: `operator`, `viewer`, or nobody yet; and whether it has ever let one in. */
export const connection = store({ state: 'connecting', role: 'operator', known: false });

/** @param {string} state @param {string} [role] */
function connected(state, role) {
  const was = connection.get();
  if (was.state !== state || (role && was.role !== role)) connection.set({ state, role: role ?? was.role, known: was.known || state === 'up' });
}

/** @param {Record<string, any> | undefined} query */
function search(query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length ? '?' + new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString() : '';
}

/** @param {string} id */
const part = (id) => encodeURIComponent(id);

/**
 * @param {string} method @param {string} path @param {any} [body] @returns {Promise<any>}
 */
async function ask(method, path, body) {
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch('/v1' + path, {
      method, credentials: 'same-origin', redirect: 'error', cache: 'no-store',
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    connected('lost');
    throw { title: t('no-server'), detail: t('no-server-why') };
  }
  if (answer.status === 401) connected('refused');
  else connected('up');
  const text = await answer.text();
  /** @type {any} */
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    value = { title: `${answer.status}`, detail: text.slice(0, 500) };
  }
  if (!answer.ok) throw { title: `${answer.status}`, ...(value ?? {}), status: answer.status };
  return value;
}

/**
 * Events of a run as they come: after a break it goes on behind the last one that was seen, so that none is missed or seen twice (S-04).
 * @param {string} run @param {number} after @param {{event: (event: any) => void, delta: (delta: any) => void, standing: (now: any) => void}} on
 */
function follow(run, after, on) {
  let last = after;
  let pause = 500;
  /** @type {EventSource | null} */
  let source = null;
  /** @type {any} */
  let timer = null;
  const open = () => {
    source = new EventSource(`/v1/runs/${part(run)}/events${search({ after: last })}`);
    source.onopen = () => {
      pause = 500;
      connected('up');
    };
    source.onmessage = take;
    source.addEventListener('delta', (message) => on.delta(JSON.parse(/** @type {MessageEvent} */ (message).data)));
    source.addEventListener('standing', (message) => on.standing(JSON.parse(/** @type {MessageEvent} */ (message).data)));
    source.onerror = () => {
      connected('lost');
      // The browser tries again by itself, unless it was refused; a server that is started anew may take longer than it waits.
      if (source?.readyState !== EventSource.CLOSED) return;
      source.close();
      timer = setTimeout(open, pause);
      pause = Math.min(5000, pause * 1.6);
      ask('GET', '/session').catch(() => {});
    };
  };
  const take = (/** @type {any} */ message) => {
    const event = JSON.parse(message.data);
    const n = Number(message.lastEventId || event.n);
    if (n <= last) return;
    last = n;
    on.event(event);
  };
  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}

/** What the server can do, by its own description: an older or a newer one may do more or less than this page knows of. @type {Promise<Set<string>> | null} */
let described = null;

/** Whether the server has an address. @param {string} path */
export async function can(path) {
  if (source.sealed) return false;
  described ??= fetch('/v1/openapi.json', { credentials: 'same-origin' }).then((answer) => answer.json()).then((all) => new Set(Object.keys(all.paths ?? {})), () => {
    described = null;
    return new Set();
  });
  return (await described).has(path);
}

const served = {
  /** The only run that there is, where the page has it inside. */
  sealed: '',
  /** @param {string} token */
  enter: (token) => ask('POST', '/session', { token }).then(() => ask('GET', '/session')).then((who) => connected('up', who?.role)),
  session: () => ask('GET', '/session').then((who) => connected('up', who?.role)),
  /** @param {any} query */
  runs: (query) => ask('GET', `/runs${search(query)}`),
  /** @param {string} run @param {any} [query] */
  run: (run, query) => ask('GET', `/runs/${part(run)}${search(query)}`),
  /** @param {string} run @param {any} [query] */
  timeline: (run, query) => ask('GET', `/runs/${part(run)}/timeline${search(query)}`),
  /** @param {string} run @param {any} [query] */
  threads: (run, query) => ask('GET', `/runs/${part(run)}/threads${search(query)}`),
  /** @param {string} run @param {string} thread @param {any} query */
  thread: (run, thread, query) => ask('GET', `/runs/${part(run)}/threads/${part(thread)}${search(query)}`),
  /** Whose models were shown each message of a page of a thread. @param {string} run @param {string} thread @param {any} query */
  readers: (run, thread, query) => ask('GET', `/runs/${part(run)}/threads/${part(thread)}/readers${search(query)}`),
  /** @param {string} run @param {string} node @param {any} query */
  node: (run, node, query) => ask('GET', `/runs/${part(run)}/nodes/${part(node)}${search(query)}`),
  /** Of these nodes whom they waited for, and what each call of their models was shown. @param {string} run @param {string[]} nodes @param {number | null} [at] */
  explain: (run, nodes, at) => ask('GET', `/runs/${part(run)}/explain?${new URLSearchParams([...nodes.map((node) => ['node', node]), ...(at ? [['at', String(at)]] : [])])}`),
  /** The nodes that made calls again in a fork, each with why. @param {string} run */
  reruns: (run) => ask('GET', `/runs/${part(run)}/explain?afresh=yes`),
  /** @param {string} run @param {any} query */
  events: (run, query) => ask('GET', `/runs/${part(run)}/events${search(query)}`),
  follow,
  asks: () => ask('GET', '/asks'),
  /** @param {string} run @param {string} id @param {any} body */
  answer: (run, id, body) => ask('POST', `/runs/${part(run)}/asks/${part(id)}`, body),
  /** @param {string} run @param {any} body */
  message: (run, body) => ask('POST', `/runs/${part(run)}/messages`, body),
  /** @param {string} run */
  cancel: (run) => ask('POST', `/runs/${part(run)}/cancel`, {}),
  /** @param {string} run @param {any} [body] */
  resume: (run, body) => ask('POST', `/runs/${part(run)}/resume`, body ?? {}),
  /** @param {string} run @param {any} body */
  fork: (run, body) => ask('POST', `/runs/${part(run)}/fork`, body),
  /** What a fork would do. @param {string} run @param {any} body */
  forkPlan: (run, body) => ask('POST', `/runs/${part(run)}/fork/plan`, body),
  /** @param {string} a @param {string} b */
  diff: async (a, b) => ((await can('/v1/diff')) ? ask('GET', `/diff${search({ a, b })}`) : null),
  documents: () => ask('GET', '/documents'),
  /** @param {string} name */
  document: (name) => ask('GET', `/documents/${part(name)}`),
  /** @param {any} body */
  check: (body) => ask('POST', '/check', body),
  /** @param {any} body */
  start: (body) => ask('POST', '/runs', body),
  tools: () => ask('GET', '/tools'),
  catalogue: () => ask('GET', '/catalogue'),
  /** @param {string} name @param {any} [query] */
  tool: (name, query) => ask('GET', `/tools/${part(name)}${search(query)}`),
};

/** @typedef {typeof served} Source */

/** @type {Source} */
export const source = /** @type {any} */ (embedded()) ?? served;
