/** A run's timeline as it grows: what events say that something is new, the server's projection of it, and text as it streams. */
import { useEffect, useState } from './ui.js';
import { read } from './model.js';
import { source } from './source.js';

/** How often at most the projection is asked for again, in milliseconds. */
const BEAT = 400;
/** How long it is waited for what comes together, where nothing came for longer than that. */
const GATHER = 40;
/** How often at most text is shown as it streams, in milliseconds: more often nobody sees, and each time costs a picture. */
const STREAM = 100;
/** How many times as long as a look takes, its picture included, it is waited for the next one. */
const REST = 12;

/**
 * @param {string} run
 * @returns {{model: import('./model.js').Model | null, error: any, streams: {node: string, text: string}[]}}
 */
export function follow(run) {
  const [state, set] = useState({ run: '', model: /** @type {any} */ (null), error: null, streams: /** @type {any[]} */ ([]) });
  useEffect(() => {
    let counts = true;
    let busy = false;
    let due = false;
    /** What the last look took: a large run is looked at less often. */
    let spent = 0;
    let looked = 0;
    /** @type {any} */
    let model = null;
    /** @type {any} */
    let timer = null;
    /** @type {() => void} */
    let stop = () => {};
    /** @type {Map<string, {node: string, effect: string, text: string}>} */
    const streams = new Map();
    const show = (/** @type {any} */ error = null) => counts && set({ run, model, error, streams: [...streams.values()] });
    const beat = async () => {
      timer = null;
      if (busy) return void (due = true);
      busy = true;
      try {
        const began = (looked = performance.now());
        // Only what has changed, once it was seen whole.
        const got = await source.timeline(run, { brief: 'yes', after: model?.events });
        if (!counts) return;
        const first = !model;
        model = read(got, model);
        for (const [effect, one] of streams) if (ended(model, one.node, effect)) streams.delete(effect);
        show();
        // With what it takes to draw it.
        await new Promise((drawn) => (document.hidden ? setTimeout(drawn) : requestAnimationFrame(() => setTimeout(drawn))));
        spent = first ? 0 : performance.now() - began;
        if (!counts) return;
        if (first) stop = source.follow(run, model.events, { event: take, delta, standing });
      } catch (error) {
        show(error);
      }
      busy = false;
      if (due) (due = false), soon();
    };
    const soon = () => (timer ??= setTimeout(beat, Math.max(GATHER, looked + Math.max(BEAT, spent * REST) - performance.now())));
    const take = (/** @type {any} */ event) => {
      if (event.kind === 'completed' && event.effect) streams.delete(event.effect);
      soon();
    };
    const standing = (/** @type {any} */ now) => {
      if (!model || now.status !== model.status || now.driven !== model.driven || now.events !== model.events) soon();
    };
    /** @type {any} */
    let streaming = null;
    const delta = (/** @type {any} */ piece) => {
      const key = piece.effect ?? piece.node;
      const had = streams.get(key);
      streams.set(key, { node: piece.node, effect: key, text: (had?.text ?? '') + (piece.text ?? '') });
      streaming ??= setTimeout(() => ((streaming = null), streams.size && show()), STREAM);
    };
    beat();
    return () => {
      counts = false;
      clearTimeout(timer);
      clearTimeout(streaming);
      stop();
    };
  }, [run]);
  return state.run === run ? state : { model: null, error: null, streams: [] };
}

/** Whether the node's call has come to an end by now. @param {any} model @param {string} node @param {string} _effect */
function ended(model, node, _effect) {
  const found = model.nodes.find((/** @type {any} */ one) => one?.node === node);
  return Boolean(found?.visits.at(-1)?.ended);
}
