/** The tool library: versions, what their code differs in, recorded calls, whom a tool came from; and how an evolution goes (S-27). */
import { html, Text, Problem, Tabs, useAsked, useState, useStore } from './ui.js';
import { Json, Long } from './json.js';
import { source, connection } from './source.js';
import { route, link, adjust } from './route.js';
import { t, wordOf } from './words.js';
import { when, exactly } from './format.js';
import { Evolutions } from './evolution.js';
import { plain } from './text.js';

/**
 * What lines of two texts differ, with some equal ones around them.
 * @param {string} a @param {string} b @returns {{sign: string, text: string}[]}
 */
export function lines(a, b) {
  const [x, y] = [a.split('\n'), b.split('\n')];
  let [head, tail] = [0, 0];
  while (head < x.length && head < y.length && x[head] === y[head]) head++;
  while (tail < x.length - head && tail < y.length - head && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail++;
  const [p, q] = [x.slice(head, x.length - tail), y.slice(head, y.length - tail)];
  /** @type {{sign: string, text: string}[]} */
  const all = x.slice(0, head).map((text) => ({ sign: ' ', text }));
  if (p.length * q.length > 4_000_000) all.push(...p.map((text) => ({ sign: '-', text })), ...q.map((text) => ({ sign: '+', text })));
  else {
    const rows = Array.from({ length: p.length + 1 }, () => new Uint16Array(q.length + 1));
    for (let i = p.length - 1; i >= 0; i--) for (let j = q.length - 1; j >= 0; j--) rows[i][j] = p[i] === q[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1]);
    let [i, j] = [0, 0];
    while (i < p.length || j < q.length) {
      if (i < p.length && j < q.length && p[i] === q[j]) all.push({ sign: ' ', text: p[i++] }), j++;
      else if (j >= q.length || (i < p.length && rows[i + 1][j] >= rows[i][j + 1])) all.push({ sign: '-', text: p[i++] });
      else all.push({ sign: '+', text: q[j++] });
    }
  }
  all.push(...x.slice(x.length - tail).map((text) => ({ sign: ' ', text })));
  const near = all.map((_, at) => all.slice(Math.max(0, at - 3), at + 4).some((line) => line.sign !== ' '));
  return all.flatMap((line, at) => (near[at] ? [line] : near[at - 1] ? [{ sign: '@', text: '…' }] : []));
}

/** The same, coloured and signed. */
function Unified({ a, b }) {
  return html`<pre class="unified">${lines(a, b).map((line) => html`<span class=${{ '+': 'add', '-': 'del', '@': 'at' }[line.sign] ?? ''}>${line.sign} <${Text} of=${line.text} /></span>`)}</pre>`;
}

/** Who wrote a version. @param {any} author */
const by = (author) => (author ? [wordOf('author', author.kind), author.coder, author.model].filter(Boolean).join(' ') : '');

/** As much of a version as tells it from others. @param {string} version */
const short = (version) => String(version).slice(0, 12);

/** Why a version is there, or why it is not any more: as `tools history` says it. @param {any} version */
function whyOf({ reason, state, request }) {
  if (reason) return state === 'merged' ? t('why-merged', { what: reason }) : reason;
  if (!request || typeof request !== 'object') return request ?? '';
  if (request.mends) return t('why-mends', { version: short(request.mends) });
  if (request.merges) return t('why-merges');
  return request.imported ? t('why-imported', { file: request.imported }) : request.description ?? JSON.stringify(request);
}

/** What a version takes of the list, in pixels. */
const HIGH = 52;

/** Versions below each other, each joined to those that it was made from. */
function Lineage({ of, at, choose }) {
  const rows = of.map((/** @type {any} */ version, /** @type {number} */ i) => ({ ...version, y: HIGH / 2 + i * HIGH, why: whyOf(version) }));
  const byId = new Map(rows.map((/** @type {any} */ row) => [row.version, row]));
  const shown = byId.get(at);
  return html`<div class="lineage">
    <svg width="60" height=${rows.length * HIGH} aria-hidden="true">${rows.flatMap((/** @type {any} */ row) => (row.parents ?? []).map((/** @type {any} */ parent) => {
      const from = byId.get(typeof parent === 'string' ? parent : parent.version);
      return from ? html`<path class="arrow a-taken" d=${`M22 ${from.y}C50 ${from.y} 50 ${row.y} 26 ${row.y}`} />` : html`<path class="arrow a-read" d=${`M4 ${row.y}L18 ${row.y}`} />`;
    }))}${rows.map((/** @type {any} */ row) => html`<circle class=${row.current ? 'dot now' : 'dot'} cx="22" cy=${row.y} r=${row.current ? 6 : 4.5} />`)}</svg>
    <ol>${rows.map((/** @type {any} */ row) => html`<li><button type="button" aria-pressed=${String(at === row.version)} onClick=${() => choose(row.version)}><span class="mono"><${Text} of=${short(row.version)} /></span> <b>${plain(wordOf('stage', row.state))}</b>${' '}
      <span class="muted" title=${exactly(row.written)}>${when(row.written)} · <${Text} of=${by(row.author)} max=${40} /></span><small class="muted" title=${plain(row.why).slice(0, 600)}><${Text} of=${row.why} max=${200} /></small></button></li>`)}</ol></div>
    ${shown && html`<p class="lineage-why"><span class="mono"><${Text} of=${short(shown.version)} /></span> ${plain(wordOf('stage', shown.state))} · ${when(shown.written)} · <${Text} of=${by(shown.author)} max=${40} />${shown.why && ' · '}<span class="as-is"><${Text} of=${shown.why} max=${4000} /></span></p>`}`;
}

/** The recorded calls of a version, which are its tests (A-15), and what came of repeating them. */
function Tests({ of, version }) {
  const { tested, calls } = version ?? {};
  return html`<p>${tested ? html`<span class=${tested.failed ? 'is-failed' : 'is-ran'}>${tested.failed ? '✕' : '✓'} ${t('tested', tested)}</span> <span class="muted" title=${exactly(tested.at)}>${when(tested.at)}</span>` : html`<span class="muted">${t('never-tested')}</span>`}</p>
    ${!of.length && html`<p class="muted">${t('no-tests')}</p>`}
    ${of.map((/** @type {any} */ call, /** @type {number} */ i) => html`<details class="node-call k-tool" open=${i < 3}><summary><b class=${call.fault ? 'is-failed' : 'is-ran'}>${call.fault ? '✕' : '✓'} ${t(call.fault ? 'gave-fault' : 'gave-output')}</b> ${call.note && html`<${Text} of=${call.note} max=${160} />`}</summary>
      ${call.run && html`<p class="muted">${t('recorded-in')} <a class="mono" href=${link('run', call.run)}><${Text} of=${call.run} max=${40} /></a></p>`}
      <h3 class="h4">${t('arguments')}</h3><${Json} of=${call.arguments} open=${2} />
      ${call.fault ? html`<h3 class="h4">${t('fault')}</h3><p><b class="mono"><${Text} of=${call.fault.kind} /></b> <${Text} of=${call.fault.message ?? ''} max=${2000} /></p>` : html`<h3 class="h4">${t('output')}</h3><${Json} of=${call.output} open=${2} />`}</details>`)}
    ${calls?.recorded > of.length && html`<p class="muted">${t('of-calls', { n: of.length, of: calls.recorded })}</p>`}`;
}

function Tool({ name }) {
  const { query } = useStore(route);
  const shown = useAsked(() => source.tool(name, { version: query.version }), [name, query.version]);
  const tool = shown.value;
  const versions = tool?.versions ?? [];
  const now = tool?.version;
  // What it was made of, else the version before it.
  const here = versions.findIndex((/** @type {any} */ one) => one.version === now);
  const before = versions[here]?.parents?.[0] ?? versions[here + 1]?.version;
  const old = useAsked(() => (here >= 0 && before ? source.tool(name, { version: before }).catch(() => null) : Promise.resolve(null)), [name, now, before]).value;
  const [tab, setTab] = useState('code');
  return html`<div class="tool"><header class="panel-head"><div><h2 class="mono"><${Text} of=${name} /></h2>${tool?.description && html`<p><${Text} of=${tool.description} max=${600} /></p>`}</div>${tool?.state && html`<span class="tag"><${Text} of=${wordOf('stage', tool.state)} /></span>`}</header>
    <${Problem} of=${shown.error} />
    <${Tabs} label=${t('tool')} at=${tab} choose=${setTab} of=${[{ id: 'code', name: t('code') }, { id: 'diff', name: t('changes') }, { id: 'schema', name: t('schema') }, { id: 'tests', name: t('tests') }, { id: 'lineage', name: t('versions'), count: versions.length || undefined }]} />
    ${tab === 'code' && (tool?.code ? html`<${Long} of=${tool.code} lines=${60} />` : html`<p class="muted">${t('no-code')}</p>`)}
    ${tab === 'diff' && (old?.code !== undefined && tool?.code ? html`<${Unified} a=${old.code} b=${tool.code} />` : html`<p class="muted">${t('no-changes')}</p>`)}
    ${tab === 'schema' && html`<h3>${t('inputs')}</h3><${Json} of=${tool?.input_schema ?? {}} open=${4} /><h3>${t('output')}</h3><${Json} of=${tool?.metadata?.output_params ?? {}} open=${4} />`}
    ${tab === 'tests' && html`<${Tests} of=${tool?.calls ?? []} version=${versions[here]} />`}
    ${tab === 'lineage' && (versions.length ? html`<${Lineage} of=${versions} at=${now} choose=${(/** @type {string} */ version) => adjust({ version })} />` : html`<p class="muted">${t('no-versions')}</p>`)}</div>`;
}

const PARTS = [['library', 'tools'], ['catalogue', 'catalogue'], ['evolution', 'evolutions']];

/** Tools, and how they came about. */
function Head({ at, children }) {
  return html`<div class="page-head"><h1>${t('library')}</h1><div class="seg">${PARTS.map(([one, name]) => html`<a class="button" href=${link(one)} aria-current=${one === at ? 'page' : undefined}>${t(name)}</a>`)}</div>${children}</div>`;
}

export function Evolving() {
  const { id } = useStore(route);
  return html`<main class="page library" id="main"><${Head} at="evolution" /><${Evolutions} id=${id} /></main>`;
}

/** What names of tools mean in runs that are begun here: of folders, commands, servers and the library. Looking may start programs, so it is asked for. */
export function Catalogue() {
  const viewer = useStore(connection).role === 'viewer';
  const [looked, setLooked] = useState(0);
  const { value, error } = useAsked(() => (viewer ? Promise.resolve(undefined) : source.catalogue()), [viewer, looked]);
  const [text, setText] = useState('');
  const tools = (value?.tools ?? []).filter((/** @type {any} */ tool) => `${tool.name} ${tool.source} ${tool.description ?? ''}`.toLowerCase().includes(text.toLowerCase()));
  return html`<main class="page library" id="main"><${Head} at="catalogue"><input type="search" class="grow" aria-label=${t('search-tools')} placeholder=${t('search-tools')} value=${text} onInput=${(event) => setText(event.target.value)} />${!viewer && html`<button type="button" onClick=${() => setLooked(looked + 1)}>${t('look-again')}</button>`}<//>
    <p class="muted">${t(viewer ? 'catalogue-viewer' : 'catalogue-why')}</p>
    <${Problem} of=${error} />
    ${!viewer && !value && !error && html`<p class="muted busy" role="status">${t('loading')}</p>`}
    ${value?.warnings?.length > 0 && html`<ul class="waits">${value.warnings.slice(0, 100).map((/** @type {string} */ one) => html`<li>⚠ <${Text} of=${one} max=${500} /></li>`)}</ul>`}
    ${tools.length > 0 && html`<div class="scroll-x" tabindex="0" role="group" aria-label=${t('catalogue')}><table class="catalogue"><thead><tr>${['name-of', 'source', 'effects', 'description'].map((one) => html`<th scope="col">${t(one)}</th>`)}</tr></thead>
      <tbody>${tools.slice(0, 2000).map((/** @type {any} */ tool) => html`<tr key=${tool.name}><th scope="row" class="mono">${tool.state ? html`<a href=${link('library', tool.name)}><${Text} of=${tool.name} max=${80} /></a>` : html`<${Text} of=${tool.name} max=${80} />`}</th><td><${Text} of=${wordOf('source', tool.source)} max=${120} />${tool.state && html` <span class="tag"><${Text} of=${wordOf('stage', tool.state)} /></span>`}</td><td>${tool.effects ? wordOf('effects', tool.effects) : '–'}</td><td><span class="what"><${Text} of=${tool.description ?? ''} max=${240} /></span></td></tr>`)}</tbody></table></div>`}
    ${value && !tools.length && html`<p class="muted">${t('no-tools')}</p>`}</main>`;
}

export function Library() {
  const { id } = useStore(route);
  const { value, error } = useAsked(() => source.tools(), []);
  const [text, setText] = useState('');
  const tools = (value?.tools ?? []).filter((/** @type {any} */ tool) => `${tool.name} ${tool.description ?? ''}`.toLowerCase().includes(text.toLowerCase()));
  // Where there is room beside the list, something stands there.
  const shown = id || (matchMedia('(min-width: 861px)').matches ? tools[0]?.name : '');
  return html`<main class=${`page library${id ? ' with-tool' : ''}`} id="main"><${Head} at="library"><input type="search" class="grow" aria-label=${t('search-tools')} placeholder=${t('search-tools')} value=${text} onInput=${(event) => setText(event.target.value)} /><//>
    <${Problem} of=${error} />
    <div class="library-in"><nav aria-label=${t('tools')}><ul class="tool-list">${tools.slice(0, 1000).map((/** @type {any} */ tool) => html`<li><a href=${link('library', tool.name)} aria-current=${tool.name === shown ? 'page' : undefined}><b class="mono"><${Text} of=${tool.name} max=${60} /></b> <span class="tag">${plain(tool.state ? wordOf('stage', tool.state) : tool.source ?? '')}</span><small class="muted"><${Text} of=${tool.description ?? ''} max=${140} /></small></a></li>`)}</ul>
      ${value && !tools.length && html`<p class="muted">${t('no-tools')}</p>`}</nav>
      ${shown ? html`<${Tool} key=${shown} name=${shown} />` : html`<p class="muted choose">${t('choose-tool')}</p>`}</div></main>`;
}
