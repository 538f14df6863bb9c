/** All words of the page, in the language of the person: English and Chinese (S-29). */
import { english } from './english.js';
import { chinese } from './chinese.js';

/** @type {Record<string, Record<string, string>>} */
const LANGUAGES = { en: english, zh: chinese };

function first() {
  try {
    const kept = localStorage.getItem('language');
    if (kept && LANGUAGES[kept]) return kept;
  } catch {
    // As the browser says.
  }
  return (navigator.languages ?? []).find((one) => /^(en|zh)\b/i.test(one))?.slice(0, 2).toLowerCase() ?? 'en';
}

let now = first();
/** @type {Set<(language: string) => void>} */
const watchers = new Set();

export const language = () => now;

/** Another language from here on. @param {string} to */
export function speak(to) {
  now = LANGUAGES[to] ? to : 'en';
  document.documentElement.lang = now;
  try {
    localStorage.setItem('language', now);
  } catch {
    // Until the page is left.
  }
  for (const watcher of watchers) watcher(now);
}

/** @param {(language: string) => void} watcher */
speak.watch = (watcher) => {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
};

/**
 * The words of a key, with what stands in `{}`. A key that has none, such as a word of a newer server, is shown itself.
 * @param {string} key @param {Record<string, any>} [given]
 */
export function t(key, given) {
  const text = LANGUAGES[now][key] ?? english[key] ?? key;
  return given ? text.replace(/\{(\w+)\}/g, (_, name) => String(given[name] ?? '')) : text;
}

/**
 * A word of a closed set that the server has, such as the kinds of events. One that is not known here is shown itself.
 * @param {string} set @param {string} raw
 */
export function wordOf(set, raw) {
  const key = `${set}-${raw}`;
  const text = t(key);
  return text === key ? raw.replace(/_/g, ' ') : text;
}
