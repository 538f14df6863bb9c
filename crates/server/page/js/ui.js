/** What all views are made of: preact with `htm` in place of JSX, and the small parts that look the same everywhere. */
import { h, render, Fragment } from '../vendor/preact.js';
import { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback } from '../vendor/hooks.js';
import htm from '../vendor/htm.js';
import { t, wordOf } from './words.js';
import { pieces } from './text.js';

/** @typedef {any} Node What preact can show. */

/** @type {(strings: TemplateStringsArray, ...values: any[]) => Node} */
export const html = htm.bind(h);
export { h, render, Fragment, useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback };

/**
 * A view that is shown anew only where what it is given has changed. What it is given to call counts as the same: it looks up for itself what may
 * have changed since.
 * @param {(props: any) => any} View
 */
export function kept(View) {
  return /** @this {any} @param {any} props */ function Kept(props) {
    this.shouldComponentUpdate = (/** @type {any} */ next) => {
      const was = this.props;
      return Object.keys({ ...next, ...was }).some((key) => next[key] !== was[key] && (typeof next[key] !== 'function' || typeof was[key] !== 'function'));
    };
    return h(View, props);
  };
}

/**
 * What `draw` makes, made anew only where one of `is` has changed. Elements are not kept to be rendered once more:
 * preact renders a clone of them, and what was kept still holds the tree that it was in at first, with what was kept in that, and so on: all trees.
 * @this {any} @param {{is: any[], draw: () => Node}} props
 */
export function Drawn({ draw }) {
  this.shouldComponentUpdate = (/** @type {{is: any[]}} */ next) => next.is.some((one, at) => one !== this.props.is[at]);
  return draw();
}

/**
 * A value that views follow. Those that use it are shown anew when it changes.
 * @template T
 * @param {T} first
 */
export function store(first) {
  let value = first;
  const watchers = new Set();
  return {
    get: () => value,
    /** @param {T} next */
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const watcher of [...watchers]) watcher(value);
    },
    /** @param {(value: T) => void} watcher */
    watch(watcher) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
  };
}

/**
 * @template T
 * @param {{get: () => T, watch: (watcher: (value: T) => void) => () => void}} followed
 * @returns {T}
 */
export function useStore(followed) {
  const [value, set] = useState(followed.get());
  useEffect(() => {
    set(followed.get());
    return followed.watch(set);
  }, [followed]);
  return value;
}

/**
 * What a promise comes to: kept while the next one is under way, so that nothing flickers.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {any[]} of
 * @returns {{value: T | undefined, error: any}}
 */
export function useAsked(ask, of) {
  const [state, set] = useState(/** @type {any} */ ({ value: undefined, error: null }));
  useEffect(() => {
    let counts = true;
    ask().then(
      (value) => counts && set({ value, error: null }),
      // What is not there has no value; what can't be reached has the one that it had.
      (error) => counts && set((/** @type {any} */ before) => ({ value: error?.status === 404 ? undefined : before.value, error })),
    );
    return () => void (counts = false);
  }, of);
  return state;
}

/**
 * A value that changes often, at most so often: its last change is never left out.
 * @template T @param {T} value @param {number} ms @returns {T}
 */
export function useLately(value, ms) {
  const [shown, set] = useState(value);
  const last = useRef({ at: 0, value });
  last.current.value = value;
  useEffect(() => {
    if (Object.is(shown, value)) return undefined;
    const timer = setTimeout(() => {
      last.current.at = Date.now();
      set(last.current.value);
    }, Math.max(0, last.current.at + ms - Date.now()));
    return () => clearTimeout(timer);
  }, [value, shown]);
  return shown;
}

/** Text from anywhere: what would mislead is made visible (S-28). */
export function Text({ of, max = 0 }) {
  const text = of === undefined || of === null ? '' : String(of);
  return pieces(max && text.length > max ? text.slice(0, max) + '…' : text).map((piece) =>
    typeof piece === 'string' ? piece : html`<span class="odd" title=${piece.title}>${piece.shown}</span>`,
  );
}

const STATUS_SIGN = {
  running: '●', completed: '✓', failed: '✕', cancelled: '⊘', waiting: '◆', asks: '◆', ran: '✓', reused: '↺',
  again: '⟳', waits: '…', queued: '…', skipped: '⤼', stopped: '◌', future: '·', 'not-taken': '·',
};

/** A status, by colour, sign and word: never by colour alone. */
export function Status({ of, quiet = false, why = '' }) {
  return html`<span class=${`status is-${of}`} title=${why || t(of)}>
    <i aria-hidden="true">${STATUS_SIGN[of] ?? '·'}</i>${quiet ? html`<span class="unseen">${t(of)}</span>` : html`<span>${t(of)}</span>`}
  </span>`;
}

/** What went wrong, as the server's problem says it (S-06). */
export function Problem({ of }) {
  if (!of) return null;
  return html`<div class="problem" role="alert">
    <b><${Text} of=${of.title ? wordOf('problem', String(of.title)) : t('went-wrong')} /></b>
    ${of.detail && html`<p><${Text} of=${of.detail} /></p>`}
    ${of.help && html`<p class="muted"><${Text} of=${of.help} /></p>`}
  </div>`;
}

/** Of a list of things one is chosen: arrows move, as in any tab list. */
export function Tabs({ of, at, choose, label }) {
  const on = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (of.findIndex((tab) => tab.id === at) + step + of.length) % of.length;
    choose(of[next].id);
    /** @type {any} */ (event.currentTarget).children[next]?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${on}>
    ${of.map(
      (tab) => html`<button role="tab" type="button" key=${tab.id} aria-selected=${String(tab.id === at)} tabindex=${tab.id === at ? 0 : -1}
        onClick=${() => choose(tab.id)}><${Text} of=${tab.name} max=${40} />${tab.count !== undefined && html`<small>${tab.count}</small>`}</button>`,
    )}
  </div>`;
}

/** A dialog of the browser's own: it keeps the focus, and Escape closes it. */
export function Dialog({ title, close, children, wide = false }) {
  const ref = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const back = document.activeElement;
    ref.current?.showModal();
    return () => /** @type {any} */ (back)?.focus?.();
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'wide' : ''} aria-label=${title} onClose=${close}
    onMouseDown=${(event) => event.target === ref.current && ref.current.close()}>
    <div class="dialog-in">
      <header><h2>${title}</h2><button type="button" class="ghost" aria-label=${t('close')} onClick=${() => ref.current.close()}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
}

/** What is said to screen readers, and to nobody else. */
export const said = store('');

export function Said() {
  const text = useStore(said);
  return html`<div class="unseen" role="status" aria-live="polite">${text}</div>`;
}
