/** Numbers, times and durations, as people read them. */
import { t, language } from './words.js';

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(2) : s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, '0')} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** What formats: made once, as making it takes longer than all that it is used for. @type {Map<string, any>} */
const made = new Map();

/** @template T @param {string} name @param {() => T} make @returns {T} */
function once(name, make) {
  const key = `${language()} ${name}`;
  if (!made.has(key)) made.set(key, make());
  return made.get(key);
}

/** @param {number | null | undefined} n */
export function count(n) {
  if (n === null || n === undefined) return '–';
  if (n < 10000) return once('whole', () => new Intl.NumberFormat(language())).format(n);
  return once('compact', () => new Intl.NumberFormat(language(), { notation: 'compact', maximumSignificantDigits: 3 })).format(n);
}

/** A cost in whatever unit prices are in. @param {number | null | undefined} cost */
export function cost(cost) {
  return !cost ? '–' : cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(cost < 10 ? 3 : 2);
}

/** Milliseconds since 1970, of either form that times come in. @param {string | number | null | undefined} at */
export function moment(at) {
  return at === null || at === undefined ? NaN : typeof at === 'number' ? at : Date.parse(at);
}

/** When, for people: nearer times in more detail. @param {string | number | null | undefined} at */
export function when(at, now = Date.now()) {
  const ms = moment(at);
  if (Number.isNaN(ms)) return '–';
  const ago = now - ms;
  if (ago >= 0 && ago < 60_000) return t('just-now');
  const day = new Date(ms).toDateString() === new Date(now).toDateString();
  /** @type {Intl.DateTimeFormatOptions} */
  const form = day ? { hour: '2-digit', minute: '2-digit' } : { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' };
  return once(day ? 'time' : 'date', () => new Intl.DateTimeFormat(language(), form)).format(ms);
}

/** When, in full. @param {string | number | null | undefined} at */
export function exactly(at) {
  const ms = moment(at);
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().replace('T', ' ').replace('Z', ' UTC');
}

/** @param {{input_tokens?: number, output_tokens?: number} | null | undefined} usage */
export function tokens(usage) {
  return usage ? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) : 0;
}
