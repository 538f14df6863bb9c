/** What a person says to an agent that answers no question: it hears it before its next step (E-43). */
import { html, Problem, useState, said } from './ui.js';
import { source } from './source.js';
import { t } from './words.js';

/** @param {{run: string}} props */
export function Message({ run }) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState(null);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim() === '') return;
    setBusy(true);
    setTrouble(null);
    try {
      await source.message(run, { text });
      setText('');
      said.set(t('message-done'));
    } catch (problem) {
      setTrouble(problem);
    }
    setBusy(false);
  };
  return html`<form class="say" onSubmit=${send}>
    <input aria-label=${t('message')} placeholder=${t('message')} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <button type="submit" disabled=${busy || text.trim() === ''}>${t('send')}</button>
    <${Problem} of=${trouble} />
  </form>`;
}
