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
addEventListener('hashchange', () => route.set(parse(location.hash)));

/** @param {string} view @param {string} [id] @param {Record<string, any>} [query] */
export function link(view, id, query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const search = new URLSearchParams(given).toString();
  return `#/${view}${id ? '/' + encodeURIComponent(id) : ''}${search ? '?' + search : ''}`;
}

/** @param {string} view @param {string} [id] @param {Record<string, any>} [query] */
export function go(view, id, query) {
  location.hash = link(view, id, query);
}

/** Changes what is looked at without a step in the history. @param {Record<string, any>} change */
export function adjust(change) {
  const now = route.get();
  const next = link(now.view, now.id, { ...now.query, ...change });
  if (next === location.hash) return;
  history.replaceState(null, '', next);
  route.set(parse(next));
}
