/** Forms made from a JSON Schema: what it asks for, as fields; what is no plain field, as JSON (S-25, S-26, S-40). */
import { html, Text, useEffect, useLayoutEffect, useRef, useState } from './ui.js';
import { isExact, readJson } from './exact.js';
import { t } from './words.js';
import { plain } from './text.js';

/** The one type of a schema besides null, if it has exactly one. @param {any} schema @returns {string | undefined} */
function typeOf(schema) {
  const types = [schema?.type ?? []].flat().filter((/** @type {string} */ one) => one !== 'null');
  return types.length === 1 ? types[0] : schema?.properties && !types.length ? 'object' : undefined;
}

/** Whether null is a value of a schema. @param {any} schema */
const isNullable = (schema) => [schema?.type ?? []].flat().includes('null');

/** The value that a field begins with. @param {any} schema @returns {any} */
export function initial(schema) {
  if (schema?.default !== undefined) return schema.default;
  if (schema?.const !== undefined) return schema.const;
  if (isNullable(schema)) return null;
  const type = typeOf(schema);
  if (type === 'object') {
    const required = schema.required ?? [];
    return Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([key, inner]) => required.includes(key) || /** @type {any} */ (inner).default !== undefined).map(([key, inner]) => [key, initial(inner)]));
  }
  return { string: '', boolean: false, array: [] }[type ?? ''] ?? (type === 'number' || type === 'integer' ? undefined : '');
}

/** What is wrong with a value, as far as the form can tell; the server has the last word. @param {any} schema @param {any} value @returns {string} */
export function wrong(schema, value) {
  if (!schema || value === undefined || (value === null && isNullable(schema))) return '';
  const type = typeOf(schema);
  if (type === 'array' && !Array.isArray(value)) return t('no-list');
  if (type === 'object' && (value === null || typeof value !== 'object' || Array.isArray(value))) return t('no-object');
  if (typeof value === 'string') {
    const length = [...value].length;
    if (length < (schema.minLength ?? 0)) return t('too-short', { n: schema.minLength });
    if (length > (schema.maxLength ?? Infinity)) return t('too-long', { n: schema.maxLength });
  }
  if (typeof value === 'number') {
    if (type === 'integer' && !Number.isInteger(value)) return t('no-integer');
    if (value < (schema.minimum ?? -Infinity)) return `≥ ${schema.minimum}`;
    if (value > (schema.maximum ?? Infinity)) return `≤ ${schema.maximum}`;
  }
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0)) return t('too-few', { n: schema.minItems });
    if (value.length > (schema.maxItems ?? Infinity)) return t('too-many', { n: schema.maxItems });
  }
  return '';
}

/** Makes a control invalid for as long as something is wrong: the browser then sends nothing, and leads to the control. @param {string} fault */
function useFault(fault) {
  const control = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => control.current?.setCustomValidity?.(fault), [fault]);
  return control;
}

/** What is wrong with a control, below it. */
const Note = ({ id, fault }) => fault && html`<small class="bad" id=${`${id}-why`} role="alert">${fault}</small>`;

/** The attributes of a control with something wrong. @param {string} id @param {string} fault */
const marks = (id, fault) => ({ 'aria-invalid': String(Boolean(fault)), 'aria-describedby': fault ? `${id}-why` : undefined });

/** A value as text, and a text as a value or what is wrong with it. @typedef {{write: (value: any) => string, read: (text: string) => {value?: any, error?: string}}} Form */

/** @type {Form} */
const JSON_FORM = { write: (value) => (value === undefined ? '' : JSON.stringify(value, null, 2)), read: readJson };

/** @type {Form} */
const NUMBER_FORM = { write: (value) => String(value ?? ''), read: (text) => (isExact(text) ? { value: Number(text) } : { error: 'number-too-large' }) };

/** What is of no type: a number, a list … as JSON has it, anything else as the text that it is. @type {Form} */
const ANY_FORM = {
  write: (value) => (value === undefined ? '' : typeof value === 'string' && readJson(value).error === 'no-json' ? value : JSON.stringify(value)),
  read: (text) => {
    const got = readJson(text);
    return got.error === 'no-json' ? { value: text } : got;
  },
};

/**
 * A value that is typed as a text. A text that can't be read is no value: it stays as it was typed, and nothing is sent until it is mended.
 * `empty` is the value of no text, `as` the attributes of the control.
 */
function Typed({ id, form, required, empty, value, set, schema, as = {}, rows = 0 }) {
  const [text, setText] = useState(() => form.write(value));
  // A value from elsewhere, such as a default, replaces the text; a text that was typed stays as it was typed.
  const known = useRef(text);
  useEffect(() => {
    const now = form.write(value);
    if (now === known.current) return;
    known.current = now;
    setText(now);
  }, [value]);
  const read = (/** @type {string} */ text) => (text.trim() ? form.read(text) : { value: empty });
  const got = read(text);
  const fault = got.error ? t(got.error) : required && text && !text.trim() ? t('needed') : wrong(schema, got.value);
  const control = useFault(fault);
  const on = {
    id, ref: control, required, spellcheck: false, value: text, ...as, ...marks(id, fault),
    onInput: (/** @type {any} */ event) => {
      setText(event.target.value);
      const { value, error } = read(event.target.value);
      if (error) return;
      known.current = form.write(value);
      set(value);
    },
  };
  return html`${rows ? html`<textarea class="mono" rows=${Math.min(14, Math.max(rows, text.split('\n').length))} ...${on}></textarea>` : html`<input ...${on} />`}<${Note} id=${id} fault=${fault} />`;
}

/** A text that is typed. */
function TextField({ id, long, required, empty, value, set, schema }) {
  const text = String(value ?? '');
  const fault = required && !text ? '' : wrong(schema, value);
  const control = useFault(fault);
  const on = { id, ref: control, required, value: text, ...marks(id, fault), onInput: (/** @type {any} */ event) => set(event.target.value || empty) };
  return html`${long ? html`<textarea rows=${Math.min(18, Math.max(3, text.split('\n').length + 1))} ...${on}></textarea>` : html`<input type="text" ...${on} />`}<${Note} id=${id} fault=${fault} />`;
}

let ids = 0;

/** One field. @param {{schema: any, value: any, set: (value: any) => void, name?: string, required?: boolean, top?: boolean}} props */
export function Field({ schema, value, set, name = '', required = false, top = false }) {
  const [id] = useState(() => `f${++ids}`);
  const s = schema ?? {};
  const type = typeOf(s);
  const nullable = isNullable(s);
  const must = required && !nullable;
  const label = html`<label for=${id}><${Text} of=${s.title ?? name ?? ''} max=${120} />${required && s.default === undefined && html`<i class="req" aria-hidden="true" title=${t('required')}>*</i>`}</label>`;
  const help = s.description && html`<small class="muted"><${Text} of=${s.description} max=${400} /></small>`;
  const typed = { id, required: must, empty: nullable ? null : undefined, value, set, schema: s };
  const isOpen = !required && !top && s.default === undefined;
  // A box that is not ticked could mean "no" or nothing at all.
  const options = s.enum ?? (s.const !== undefined ? [s.const] : type === 'boolean' && (isOpen || nullable) ? [true, false] : null);
  if (options) {
    const at = options.findIndex((/** @type {any} */ one) => JSON.stringify(one) === JSON.stringify(value));
    return html`<div class="field">${label}${help}<select id=${id} required=${must} value=${at < 0 ? '' : String(at)} onChange=${(event) => set(event.target.value === '' ? (nullable ? null : undefined) : options[Number(event.target.value)])}>
      ${(at < 0 || !must) && html`<option value="">–</option>`}${options.map((one, i) => html`<option value=${String(i)}>${plain(typeof one === 'string' ? one : JSON.stringify(one))}</option>`)}</select></div>`;
  }
  if (type === 'boolean')
    return html`<div class="field check"><input id=${id} type="checkbox" checked=${value === true} onChange=${(event) => set(event.target.checked)} />${label}${help}</div>`;
  if (type === 'integer' || type === 'number')
    return html`<div class="field">${label}${help}<${Typed} ...${{ ...typed, form: NUMBER_FORM, as: { type: 'number', step: 'any', inputmode: type === 'integer' ? 'numeric' : 'decimal' } }} /></div>`;
  if (type === 'string') {
    const long = top || (s.maxLength ?? 0) > 200 || String(value ?? '').length > 60 || String(value ?? '').includes('\n');
    // What is empty and need not be there is left out.
    return html`<div class="field">${label}${help}<${TextField} ...${{ ...typed, long, empty: nullable ? null : isOpen ? undefined : '' }} /></div>`;
  }
  if (!type) return html`<div class="field">${label}${help}<${Typed} ...${{ ...typed, form: ANY_FORM, empty: isOpen ? undefined : '', as: { type: 'text' } }} /></div>`;
  if (s.properties) {
    const object = value && typeof value === 'object' && !Array.isArray(value) ? value : {};
    // What nobody has begun to fill in need not be filled in.
    const needed = top || required || Object.keys(object).length > 0;
    const fields = Object.entries(s.properties).map(([key, inner]) => html`<${Field} key=${key} name=${key} schema=${inner} required=${needed && (s.required ?? []).includes(key)} value=${object[key]}
      set=${(/** @type {any} */ next) => {
        const { [key]: _, ...others } = object;
        const all = next === undefined ? others : { ...others, [key]: next };
        set(isOpen && !Object.keys(all).length ? undefined : all);
      }} />`);
    return top ? html`<div class="fields">${help}${fields}</div>` : html`<fieldset><legend><${Text} of=${s.title ?? name} />${required && html`<i class="req" aria-hidden="true">*</i>`}</legend>${help}${fields}</fieldset>`;
  }
  return html`<div class="field">${label}${help}<${Typed} ...${{ ...typed, form: JSON_FORM, rows: 3 }} /></div>`;
}
