/** Starting a document: its inputs as a form, what is wrong with it at its place in the text (S-26). */
import { html, Text, Problem, useAsked, useEffect, useMemo, useRef, useState } from './ui.js';
import { Field, initial } from './form.js';
import { source } from './source.js';
import { route, go } from './route.js';
import { t } from './words.js';
import { plain } from './text.js';

/** A text with its lines numbered, and findings below the lines that they are about. */
function Editor({ text, set, found }) {
  const area = useRef(/** @type {any} */ (null));
  const lines = text.split('\n').length;
  const bad = new Map();
  for (const one of found) if (one.line) bad.set(one.line, one.severity ?? 'error');
  const gutter = useRef(/** @type {any} */ (null));
  const to = (/** @type {any} */ one) => {
    const all = text.split('\n');
    const from = all.slice(0, one.line - 1).reduce((/** @type {number} */ sum, /** @type {string} */ line) => sum + line.length + 1, 0) + Math.max(0, (one.column ?? 1) - 1);
    area.current.focus();
    area.current.setSelectionRange(from, Math.min(text.length, from + 1));
    area.current.scrollTop = Math.max(0, (one.line - 6) * 20);
  };
  return html`<div class="editor"><div class="gutter mono" ref=${gutter} aria-hidden="true">${Array.from({ length: Math.min(lines, 5000) }, (_, i) => html`<i class=${bad.has(i + 1) ? `at-${bad.get(i + 1)}` : ''}>${i + 1}</i>`)}</div>
    <textarea ref=${area} class="mono" wrap="off" spellcheck="false" aria-label=${t('document')} placeholder=${t('write-document')} value=${text} onInput=${(event) => set(event.target.value)} onScroll=${(event) => (gutter.current.scrollTop = event.target.scrollTop)}></textarea></div>
    ${found.length > 0 && html`<ul class="found" aria-label=${t('findings')}>${found.map((one) => html`<li class=${`at-${one.severity ?? 'error'}`}><button type="button" onClick=${() => one.line && to(one)}>
      <span class="mono">${one.line ? `${one.line}:${one.column ?? 1}` : '–'}</span> <b>${t(one.severity ?? 'error')}${one.rule ? ` ${plain(one.rule)}` : ''}</b> <${Text} of=${one.message} max=${600} />${one.help && html`<small class="muted"><${Text} of=${one.help} max=${600} /></small>`}
      ${one.line && html`<code class="line"><${Text} of=${(text.split('\n')[one.line - 1] ?? '').trim()} max=${160} /></code>`}</button></li>`)}</ul>`}`;
}

/** What a document asks for, as a schema; nothing while its text is no JSON. @param {string} text @returns {any} */
function asked(text) {
  try {
    const inputs = JSON.parse(text)?.inputs;
    if (!inputs || typeof inputs !== 'object' || Array.isArray(inputs) || !Object.keys(inputs).length) return null;
    const properties = Object.fromEntries(Object.entries(inputs).map(([name, one]) => [name, one && typeof one === 'object' ? one : {}]));
    // An input that is left out gets its default: only a text can be empty and sent as such.
    return { type: 'object', properties, required: Object.keys(properties).filter((name) => properties[name].default === undefined || properties[name].type !== 'string') };
  } catch {
    return null;
  }
}

export function Start() {
  const { value: known, error } = useAsked(() => source.documents(), []);
  const [name, setName] = useState(route.get().query.document ?? '');
  const [text, setText] = useState('');
  const [inputs, setInputs] = useState(/** @type {any} */ ({}));
  const [checked, setChecked] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const [model, setModel] = useState('');
  /** The text of the named document, as the server has it: started by its name, it finds its own files. */
  const [kept, setKept] = useState('');
  const edits = useRef(0);
  const documents = known?.documents ?? [];
  useEffect(() => {
    if (!name) return;
    const then = edits.current;
    source.document(name).then((/** @type {any} */ got) => {
      // What was written meanwhile stays.
      if (edits.current !== then) return;
      const whole = typeof got.text === 'string' ? got.text : JSON.stringify(got.document ?? got, null, 2);
      setKept(whole);
      setText(whole);
    }, setTrouble);
  }, [name]);
  const named = Boolean(name) && text === kept;
  const schema = useMemo(() => asked(text), [text]);
  const shape = JSON.stringify(schema);
  const shown = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const before = shown.current;
    shown.current = schema;
    // What was typed stays, if the input is still of the type that it was.
    const stays = (/** @type {string} */ key, /** @type {any} */ value) => {
      const [is, was] = [schema.properties[key], before?.properties[key]];
      return is && was && is.type === was.type && JSON.stringify(value) !== JSON.stringify(initial(was));
    };
    if (schema) setInputs((/** @type {any} */ was) => ({ ...initial(schema), ...Object.fromEntries(Object.entries(was).filter(([key, value]) => stays(key, value))) }));
  }, [shape]);
  useEffect(() => {
    if (!text.trim()) return setChecked(null);
    let counts = true;
    const timer = setTimeout(() => source.check(named ? { name } : { document: text }).then(
      (/** @type {any} */ got) => counts && setChecked(got),
      (/** @type {any} */ problem) => counts && (problem.diagnostics ? setChecked(problem) : setTrouble(problem)),
    ), 350);
    return () => ((counts = false), clearTimeout(timer));
  }, [text]);
  const found = trouble?.diagnostics ?? checked?.diagnostics ?? [];
  const wrong = found.some((/** @type {any} */ one) => (one.severity ?? 'error') === 'error');
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setTrouble(null);
    try {
      const made = await source.start({ ...(named ? { name } : { document: text }), inputs: schema ? inputs : {}, ...(model ? { options: { model } } : {}) });
      go('run', made.run_id);
    } catch (problem) {
      setTrouble(problem);
    }
    setBusy(false);
  };
  return html`<main class="page start" id="main"><h1>${t('start-run')}</h1><${Problem} of=${error} />
    <form class="start-form" onSubmit=${start}>
      <div class="start-text">
        <label class="field">${t('document')} <select value=${name} onChange=${(event) => (edits.current++, setTrouble(null), setName(event.target.value))}><option value="">${t('own-text')}</option>${documents.map((one) => html`<option value=${one.name}>${plain(one.name)}</option>`)}</select></label>
        <${Editor} text=${text} set=${(/** @type {string} */ next) => (edits.current++, setTrouble(null), setText(next))} found=${found} />
      </div>
      <div class="start-inputs">
        <h2>${t('inputs')}</h2>
        ${schema ? html`<${Field} key=${shape} schema=${schema} value=${inputs} set=${(/** @type {any} */ next) => setInputs(next ?? {})} top=${true} />` : html`<p class="muted">${checked ? t('no-inputs') : t('inputs-later')}</p>`}
        <div class="field"><label for="start-model">${t('its-model')}</label><input id="start-model" type="text" placeholder=${t('as-configured')} value=${model} onInput=${(event) => setModel(event.target.value)} /></div>
        <${Problem} of=${trouble?.diagnostics ? null : trouble} />
        <p role="status" class=${wrong ? 'bad' : 'muted'}>${!text.trim() ? '' : wrong ? t('n-errors', { n: found.length }) : found.length ? t('n-warnings', { n: found.length }) : checked ? t('no-findings') : ''}</p>
        <button class="primary" disabled=${busy || !text.trim() || wrong}>${t('start')}</button>
      </div>
    </form></main>`;
}
