/** The page (S-20): its frame, where one is, and how it stands with the server. */
import { html, render, store, Text, Said, Problem, useEffect, useState, useStore } from './ui.js';
import { Runs } from './runs.js';
import { Run } from './run.js';
import { Inbox, asks, look } from './inbox.js';
import { Start } from './start.js';
import { Diff } from './diff.js';
import { Catalogue, Library, Evolving } from './library.js';
import { source, connection, can } from './source.js';
import { route, link, go } from './route.js';
import { t, language, speak } from './words.js';

const VIEWS = { runs: Runs, run: Run, inbox: Inbox, start: Start, diff: Diff, library: Library, catalogue: Catalogue, evolution: Evolving };
const NAV = ['runs', 'inbox', 'library'];

/** Where an address leads that names nothing. */
function Nowhere() {
  const { view } = useStore(route);
  return html`<main class="page" id="main"><div class="nothing"><h1>${t('nowhere')}</h1><p class="muted">${t('nowhere-why')} <code><${Text} of=${`#/${view}`} max=${80} /></code></p>
    <p><a class="button" href=${source.sealed ? link('run', source.sealed) : link('runs')}>${t(source.sealed ? 'run' : 'all-runs')}</a></p></div></main>`;
}

/** Light, dark, or as the system has it: kept in this browser. */
function theme() {
  try {
    return localStorage.getItem('theme') ?? '';
  } catch {
    return '';
  }
}

function setTheme(/** @type {string} */ to) {
  document.documentElement.dataset.theme = to;
  try {
    localStorage.setItem('theme', to);
  } catch {
    // Kept until the page is left.
  }
}

function Top() {
  useStore(where);
  const connected = useStore(connection);
  const { view } = route.get();
  const open = useStore(asks).length;
  const [dark, setDark] = useState(theme());
  const [library, setLibrary] = useState(false);
  useEffect(() => void can('/v1/tools').then(setLibrary), []);
  const next = { '': 'light', light: 'dark', dark: '' }[dark] ?? '';
  return html`<header class="topbar"><a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), /** @type {HTMLElement | null} */ (document.querySelector('#main h1,#main input,#main button,#main a'))?.focus())}>${t('skip')}</a>
    <a class="brand" href=${source.sealed ? link('run', source.sealed) : link('runs')}><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M3 5h18M3 10h18M3 15h18M3 20h18" class="w1" /><path d="M7 3v18M13 3v18M18 3v18" class="w2" /></svg>Selvedge</a>
    ${!source.sealed && !isStranger(connected) && html`<nav aria-label=${t('main-nav')}>${NAV.filter((one) => one !== 'library' || library).map((one) => html`<a href=${link(one)} aria-current=${view === one || (['catalogue', 'evolution'].includes(view) && one === 'library') ? 'page' : undefined}>${t(one)}${one === 'inbox' && open > 0 && html`<b class="badge" aria-label=${t('n-ask', { n: open })}>${open}</b>`}</a>`)}</nav>`}
    <span class="grow"></span>
    <button type="button" class="ghost" aria-label=${`${language() === 'zh' ? 'EN' : '中'} · ${t('language')}`} title=${t('language')} onClick=${() => speak(language() === 'zh' ? 'en' : 'zh')}>${language() === 'zh' ? 'EN' : '中'}</button>
    <button type="button" class="ghost" aria-label=${t('theme', { as: t(`theme-${dark || 'system'}`) })} title=${t('theme', { as: t(`theme-${dark || 'system'}`) })} onClick=${() => (setTheme(next), setDark(next))}>${{ '': '◐', light: '☀', dark: '☾' }[dark]}</button></header>`;
}

/** Whom the server has never let in sees nothing but where the token goes. @param {{state: string, known: boolean}} connected */
const isStranger = ({ state, known }) => state === 'refused' && !known;

/** Where the token goes. */
function Enter() {
  const [token, setToken] = useState('');
  const [trouble, setTrouble] = useState(null);
  return html`<form class="enter" onSubmit=${(event) => (event.preventDefault(), source.enter(token.trim().replace(/^.*token=/, '')).then(() => location.reload(), setTrouble))}><label>${t('enter-token')} <input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} /></label> <button class="primary">${t('enter')}</button></form><${Problem} of=${trouble} />`;
}

/** How it stands with the server, where that is anything but well. */
function Banner() {
  const { state, role } = useStore(connection);
  if (source.sealed) return html`<div class="banner quiet" role="status">${t('sealed')}</div>`;
  if (state === 'lost') return html`<div class="banner" role="status">${t('lost')}</div>`;
  if (state === 'refused') return html`<div class="banner" role="alert"><${Enter} /></div>`;
  return role === 'viewer' ? html`<div class="banner quiet" role="status">${t('viewer')}</div>` : null;
}

/** What is looked at: how it is looked at concerns only what is shown of it. */
const where = store(`${route.get().view}/${route.get().id}`);
route.watch(({ view, id }) => where.set(`${view}/${id}`));

function App() {
  useStore(where);
  const connected = useStore(connection);
  const { view, id } = route.get();
  const [spoken, setSpoken] = useState(language());
  useEffect(() => speak.watch(setSpoken), []);
  useEffect(() => {
    if (source.sealed) return undefined;
    look();
    const timer = setInterval(() => document.hidden || look(), 2500);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    document.title = `${view === 'run' ? id : t(Object.hasOwn(VIEWS, view) ? view : 'nowhere')} · Selvedge`;
  }, [view, id, spoken]);
  useEffect(() => {
    const keys = (/** @type {KeyboardEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /** @type {any} */ (event.target).closest?.('input,textarea,select,dialog')) return;
      const to = { r: 'runs', i: 'inbox', b: 'library', n: 'start' }[event.key];
      if (to && !source.sealed) go(to);
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, []);
  if (isStranger(connected)) return html`<${Top} key=${spoken} /><main class="page narrow" id="main"><h1>${t('enter-title')}</h1><${Enter} /></main>`;
  const View = Object.hasOwn(VIEWS, view) ? VIEWS[/** @type {keyof typeof VIEWS} */ (view)] : Nowhere;
  return html`<${Top} key=${spoken} /><${Banner} /><${View} key=${`${spoken}/${view}/${view === 'run' ? id : ''}`} /><${Said} />`;
}

/** The token of the printed address is traded for a cookie, and is gone from the address. */
async function begin() {
  document.documentElement.dataset.theme = theme();
  document.documentElement.lang = language();
  const token = /[#&?]token=([^&]+)/.exec(location.hash)?.[1];
  if (token && !source.sealed) {
    history.replaceState(null, '', location.pathname + '#/runs');
    await source.enter(decodeURIComponent(token)).catch(() => {});
    go('runs');
    route.set({ view: 'runs', id: '', query: {} });
  } else if (!source.sealed) {
    source.session().catch(() => {});
  }
  if (source.sealed && route.get().view !== 'run') {
    history.replaceState(null, '', link('run', source.sealed));
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
  render(html`<${App} />`, /** @type {Element} */ (document.getElementById('app')));
}

begin();
