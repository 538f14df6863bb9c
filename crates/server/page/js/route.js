/** Where in the page one is: kept in the address behind `#`, so that going back, reloading and passing on work. */
import { store } from './ui.js';

/** @typedef {{view: string, id: string, query: Record<string, string>}} Route */

/** @param {string} hash @returns {Route} */
function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { view: parts[0] || 'runs', id: parts.slice(1).join('/'), query: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

export const route = store(parse(location.hash));
addEventListener('hashchange', () => {
  clearTimeout(writing);
  route.set(parse(location.hash));
});

/** How often at most the address is written, in milliseconds: a browser takes no more than some a second. */
const WRITTEN = 200;
let written = 0;
/** @type {any} */
let writing;

/** @param {string} view @param {string} [id] @param {Record<string, any>} [query] */
export function link(view, id, query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const search = new URLSearchParams(given).toString();
  return `#/${view}${id ? '/' + encodeURIComponent(id) : ''}${search ? '?' + search : ''}`;
}

/** @param {string} view @param {string} [id] @param {Record<string, any>} [query] */
export function go(view, id, query) {
  clearTimeout(writing);
  location.hash = link(view, id, query);
}

/** Changes what is looked at without a step in the history. @param {Record<string, any>} change */
export function adjust(change) {
  const now = route.get();
  const next = link(now.view, now.id, { ...now.query, ...change });
  if (next === link(now.view, now.id, now.query)) return;
  route.set(parse(next));
  clearTimeout(writing);
  const write = () => {
    written = Date.now();
    history.replaceState(null, '', next);
  };
  const pause = written + WRITTEN - Date.now();
  if (pause > 0) writing = setTimeout(write, pause);
  else write();
}
