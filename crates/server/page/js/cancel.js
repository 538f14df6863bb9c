/** Ending a run: asked once more in place, with what is lost by it (S-41). */
import { html, useLayoutEffect, useRef, useState } from './ui.js';
import { isOver, openQuestions, underWay } from './model.js';
import { t } from './words.js';

/** @param {{model: import('./model.js').Model, cancel: () => Promise<void>}} props */
export function Cancel({ model, cancel }) {
  const [isAsking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const keep = useRef(/** @type {any} */ (null));
  const first = useRef(/** @type {any} */ (null));
  const wasAsking = useRef(false);
  useLayoutEffect(() => {
    if (isAsking) keep.current?.focus();
    else if (wasAsking.current) first.current?.focus();
    wasAsking.current = isAsking;
  }, [isAsking]);
  if (isOver(model)) return null;
  if (!isAsking) return html`<button type="button" class="danger" ref=${first} onClick=${() => setAsking(true)}>${t('cancel')}</button>`;
  const [calls, questions] = [underWay(model), openQuestions(model)];
  const end = async () => {
    setBusy(true);
    await cancel();
    setBusy(false);
    setAsking(false);
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => event.key === 'Escape' && (event.stopPropagation(), setAsking(false));
  return html`<div class="sure" role="group" aria-labelledby="sure-ask" aria-describedby="sure-lost" onKeyDown=${onKey}>
    <p><b id="sure-ask">${t('cancel-ask')}</b> <span id="sure-lost" class="muted">${t('cancel-final')}${calls > 0 ? ` ${t('cancel-calls', { n: calls })}` : ''}${questions > 0 ? ` ${t('cancel-questions', { n: questions })}` : ''}</span></p>
    <button type="button" class="danger" disabled=${busy} onClick=${end}>${t('cancel-yes')}</button>
    <button type="button" ref=${keep} onClick=${() => setAsking(false)}>${t('cancel-no')}</button>
  </div>`;
}
