/** Forms made from a JSON Schema: what it asks for, as fields; what is no plain field, as JSON (S-25, S-26). */
import { html, Text, useEffect, useRef, useState } from './ui.js';
import { t } from './words.js';
import { plain } from './text.js';

/** What a field begins with. @param {any} schema @returns {any} */
export function initial(schema) {
  if (schema?.default !== undefined) return schema.default;
  if (schema?.const !== undefined) return schema.const;
  const type = Array.isArray(schema?.type) ? schema.type[0] : schema?.type;
  if (type === 'object' || schema?.properties) {
    const required = schema.required ?? [];
    return Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([key, inner]) => required.includes(key) || /** @type {any} */ (inner).default !== undefined).map(([key, inner]) => [key, initial(inner)]));
  }
  return { string: '', boolean: false, array: [], null: null }[type] ?? (type === 'number' || type === 'integer' ? undefined : '');
}

/** What is wrong with a value, as far as the form can tell; the server has the last word. @param {any} schema @param {any} value */
export function wrong(schema, value) {
  if (!schema || value === undefined) return '';
  if (schema.minLength > 0 && typeof value === 'string' && [...value].length < schema.minLength) return t('too-short', { n: schema.minLength });
  if (schema.maxLength !== undefined && typeof value === 'string' && [...value].length > schema.maxLength) return t('too-long', { n: schema.maxLength });
  if (typeof value === 'number' && schema.minimum !== undefined && value < schema.minimum) return `≥ ${schema.minimum}`;
  if (typeof value === 'number' && schema.maximum !== undefined && value > schema.maximum) return `≤ ${schema.maximum}`;
  return '';
}

/** A value as JSON that is typed. */
function Raw({ id, required, value, set }) {
  const written = (/** @type {any} */ of) => (of === undefined ? '' : JSON.stringify(of, null, 2));
  const [text, setText] = useState(() => written(value));
  const [bad, setBad] = useState(false);
  // What comes from elsewhere, as defaults do, takes the place of what is there; what was typed here stays as it was typed.
  const known = useRef(text);
  useEffect(() => {
    if (written(value) === known.current) return;
    setText((known.current = written(value)));
    setBad(false);
  }, [value]);
  return html`<textarea id=${id} class="mono" required=${required} rows=${Math.min(14, Math.max(3, text.split('\n').length))} spellcheck="false" aria-invalid=${String(bad)} value=${text}
    onInput=${(event) => {
      setText(event.target.value);
      try {
        const next = event.target.value.trim() ? JSON.parse(event.target.value) : undefined;
        known.current = written(next);
        set(next);
        setBad(false);
      } catch {
        setBad(true);
      }
    }}></textarea>${bad && html`<small class="bad" role="alert">${t('no-json')}</small>`}`;
}

let ids = 0;

/** One field. @param {{schema: any, value: any, set: (value: any) => void, name?: string, required?: boolean, top?: boolean}} props */
export function Field({ schema, value, set, name = '', required = false, top = false }) {
  const [id] = useState(() => `f${++ids}`);
  const s = schema ?? {};
  const type = Array.isArray(s.type) ? s.type.find((/** @type {string} */ one) => one !== 'null') : s.type;
  const label = html`<label for=${id}><${Text} of=${s.title ?? name ?? ''} max=${120} />${required && html`<i class="req" aria-hidden="true" title=${t('required')}>*</i>`}</label>`;
  const help = s.description && html`<small class="muted"><${Text} of=${s.description} max=${400} /></small>`;
  const fault = wrong(s, value);
  const note = fault && html`<small class="bad">${fault}</small>`;
  if (s.enum) {
    const at = s.enum.findIndex((/** @type {any} */ one) => JSON.stringify(one) === JSON.stringify(value));
    return html`<div class="field">${label}${help}<select id=${id} required=${required} value=${at < 0 ? '' : String(at)} onChange=${(event) => set(s.enum[Number(event.target.value)])}>${at < 0 && html`<option value="">–</option>`}${s.enum.map((one, i) => html`<option value=${String(i)}>${plain(typeof one === 'string' ? one : JSON.stringify(one))}</option>`)}</select></div>`;
  }
  if (type === 'boolean')
    return html`<div class="field check"><input id=${id} type="checkbox" checked=${value === true} onChange=${(event) => set(event.target.checked)} />${label}${help}</div>`;
  if (type === 'integer' || type === 'number')
    return html`<div class="field">${label}${help}<input id=${id} type="number" required=${required} step=${type === 'integer' ? 1 : 'any'} min=${s.minimum} max=${s.maximum} value=${value ?? ''} onInput=${(event) => set(event.target.value === '' ? undefined : Number(event.target.value))} />${note}</div>`;
  if (type === 'string') {
    const long = top || (s.maxLength ?? 0) > 200 || String(value ?? '').length > 60 || String(value ?? '').includes('\n');
    const rows = Math.min(18, Math.max(3, String(value ?? '').split('\n').length + 1));
    return html`<div class="field">${label}${help}${long
      ? html`<textarea id=${id} required=${required} rows=${rows} value=${value ?? ''} onInput=${(event) => set(event.target.value)}></textarea>`
      : html`<input id=${id} type="text" required=${required} value=${value ?? ''} onInput=${(event) => set(event.target.value)} />`}${note}</div>`;
  }
  // Of no type: a number, a list … as JSON has it, anything else as the text that it is.
  if (!type && !s.properties) {
    const text = typeof value === 'string' || value === undefined ? value ?? '' : JSON.stringify(value);
    return html`<div class="field">${label}${help}<input id=${id} type="text" required=${required} value=${text} onChange=${(event) => {
      try {
        set(JSON.parse(event.target.value));
      } catch {
        set(event.target.value);
      }
    }} /></div>`;
  }
  if (s.properties) {
    const object = value && typeof value === 'object' && !Array.isArray(value) ? value : {};
    // What nobody has begun to fill in need not be filled in.
    const needed = top || required || Object.keys(object).length > 0;
    const fields = Object.entries(s.properties).map(([key, inner]) => html`<${Field} key=${key} name=${key} schema=${inner} required=${needed && (s.required ?? []).includes(key)} value=${object[key]}
      set=${(/** @type {any} */ next) => {
        const { [key]: _, ...others } = object;
        set(next === undefined ? others : { ...others, [key]: next });
      }} />`);
    return top ? html`<div class="fields">${help}${fields}</div>` : html`<fieldset><legend><${Text} of=${s.title ?? name} />${required && html`<i class="req" aria-hidden="true">*</i>`}</legend>${help}${fields}</fieldset>`;
  }
  return html`<div class="field">${label}${help}<${Raw} id=${id} required=${required} value=${value} set=${set} />${note}</div>`;
}
