/** A run: its lanes, the scrubber, its threads, and what is chosen of them (S-22 … S-26). */
import { html, kept, Text, Status, Problem, Tabs, useAsked, useEffect, useMemo, useLately, useRef, useState, useStore, said } from './ui.js';
import { Lanes } from './lanes.js';
import { Scrubber } from './scrubber.js';
import { Thread } from './thread.js';
import { NodePanel, Fault } from './node.js';
import { Json, Long } from './json.js';
import { Markdown } from './markdown.js';
import { Ask } from './inbox.js';
import { Fork } from './fork.js';
import { Message } from './message.js';
import { Cancel } from './cancel.js';
import { evolutionOf } from './evolution.js';
import { follow } from './live.js';
import { isOver, tally, sourceOf, forkedAt, statusOf, visitAt } from './model.js';
import { source, connection } from './source.js';
import { route, adjust, link, go } from './route.js';
import { t, wordOf } from './words.js';
import { brief } from './text.js';
import { duration, count, cost, tokens, exactly, when, moment } from './format.js';

/** What happened at an event, in a line. @param {any} event */
function story(event) {
  if (!event) return '';
  const what = event.kind === 'node_finished' && event.fault ? t('failed') : wordOf('event', event.kind);
  const outcome = event.outcome ?? {};
  const more = event.tool ?? event.thread ?? (event.status && t(event.status)) ?? (event.action && wordOf('action', event.action)) ?? event.reason ?? '';
  const said = event.body?.text?.[1] ?? outcome.reply?.text ?? outcome.failed?.message ?? event.fault?.message ?? (outcome.output !== undefined ? JSON.stringify(outcome.output) : '') ?? event.prompt ?? '';
  return [event.node, what, more, brief(said || event.prompt || '', 90)].filter(Boolean).join(' · ');
}

function Head({ run, model, n, then, live, act }) {
  const viewer = useStore(connection).role === 'viewer' || Boolean(source.sealed);
  const counts = tally(model, n);
  const ended = isOver(model);
  const status = n < model.events ? 'running' : statusOf(model);
  return html`<header class="run-head">
    <div class="run-title"><h1><${Text} of=${model.name ?? model.run_id} max=${120} /></h1><${Status} of=${status} why=${status === 'stopped' ? t('stopped-why') : ''} />
      ${!live && html`<span class="tag then">${t('as-of', { n })}</span>`}
      ${run?.scripted && html`<span class="tag" title=${t('scripted-why')}>${t('scripted')}</span>`}</div>
    <div class="run-facts"><span class="mono"><${Text} of=${model.run_id} max=${80} /></span>
      ${model.dialect && html`<span>${t(`dialect-${model.dialect}`)}</span>`}
      <span title=${exactly(model.began)}>${when(model.began)}</span>
      <span>${duration((!live && then !== null ? then : ended || !model.driven ? model.last : Date.now()) - model.began)}</span>
      ${tokens(run?.usage) > 0 && html`<span>${count(tokens(run.usage))} ${t('tokens')}</span>`}${run?.usage?.cost > 0 && html`<span>${cost(run.usage.cost)}</span>`}
      ${model.dialect === 'evolve' && !source.sealed && html`<span><a href=${link('evolution', evolutionOf(model.run_id))}>${t('measures')}</a> · <a href=${link('runs', '', { parent: model.run_id })}>${t('its-runs')}</a></span>`}
      ${run?.parent && !source.sealed && html`<span>${t('begun-by')} <a href=${link('run', run.parent)}><${Text} of=${run.parent} max=${60} /></a></span>`}
      ${sourceOf(model) && html`<span>${t('fork-of')} ${source.sealed ? html`<${Text} of=${sourceOf(model)} max=${60} />` : html`<a href=${link('run', sourceOf(model) ?? '', { at: forkedAt(model) ? forkedAt(model) - 1 : undefined })}><${Text} of=${sourceOf(model)} max=${60} /></a> · <a href=${link('diff', '', { a: sourceOf(model), b: model.run_id })}>${t('compare')}</a>`}</span>`}
      ${run?.saved?.model_calls + run?.saved?.tool_calls > 0 && html`<span class="is-reused">↺ ${t('saved-calls', { n: run.saved.model_calls + run.saved.tool_calls })}</span>`}
      <span class="counts">${['running', 'asks', 'again', 'failed', 'cancelled', 'stopped', 'skipped', 'not-taken', 'reused', 'ran'].filter((word) => counts[word]).map((word) => html`<span class=${`is-${word}`}>${counts[word]} ${t(word)}</span>`)}</span></div>
    ${!viewer && html`<div class="run-acts">
      <${Cancel} model=${model} cancel=${() => act('cancel')} />
      ${live && run?.can_resume && html`<button type="button" class="primary" onClick=${() => act('resume')}>${t('resume')}</button>`}
      <button type="button" class=${live && ended && !run?.can_resume ? 'primary' : ''} onClick=${() => act('fork')}>${live ? t('fork') : t('fork-here', { n })}</button></div>`}
  </header>`;
}

/** Values by name; those of an iteration or a path that goes on say which one it is. @param {any} metadata */
const valuesOf = (metadata) => Object.fromEntries(Object.entries(metadata.runtime).map(([name, value]) => [metadata.live?.[name] ? `${name} (${metadata.live[name]})` : name, value]));

/** What came of a run, or of it so far. */
const Result = kept(({ run }) => {
  if (!run) return null;
  return html`<div class="result"><h2 class="unseen">${t('result')}</h2>
    ${run.fault && html`<h3>${t('fault')}</h3><${Fault} of=${run.fault} />`}
    <h3>${t('output')}</h3>${run.output === null || run.output === undefined ? html`<p class="muted">${t(['failed', 'cancelled'].includes(run.status) ? `no-output-${run.status}` : run.status === 'completed' ? 'no-output-at-all' : 'no-output')}</p>` : typeof run.output === 'string' ? html`<${Markdown} of=${run.output} />` : html`<${Json} of=${run.output} />`}
    ${run.warnings?.length > 0 && html`<h3>${t('warnings')}</h3><ul>${run.warnings.slice(0, 100).map((one) => html`<li><${Text} of=${typeof one === 'string' ? one : one.message ?? JSON.stringify(one)} max=${500} /></li>`)}</ul>`}
    ${['initial', 'runtime'].map((part) => Object.keys(run.metadata?.[part] ?? {}).length > 0 && html`<h3>${t(part === 'initial' ? 'inputs' : 'values')}</h3><${Json} of=${part === 'initial' ? run.metadata.initial : valuesOf(run.metadata)} open=${1} />`)}
    ${run.usage && html`<h3>${t('usage')}</h3><dl class="facts">${[['model-calls', count(run.usage.model_calls)], ['tool-calls', count(run.usage.tool_calls)], ['input-tokens', count(run.usage.input_tokens)], ['output-tokens', count(run.usage.output_tokens)], ['cost', cost(run.usage.cost)]].map(([name, value]) => html`<div><dt>${t(name)}</dt><dd>${value}</dd></div>`)}</dl>`}
  </div>`;
});

/** The thread in which a node speaks, by the name that it has in the run. @param {any} model @param {string | undefined} name @param {string[]} names */
function threadOf(model, name, names) {
  const node = model && name ? model.nodes.find((/** @type {any} */ one) => one?.node === name) : null;
  return node ? spokenIn(model, node, names) : undefined;
}

/**
 * The same of a node: the thread is that of the nearest frame around it that has threads of its own, which iterations and main paths have not (W-03).
 * @param {import('./model.js').Model} model @param {import('./model.js').TNode} node @param {string[]} names
 */
function spokenIn(model, node, names) {
  const own = node.thread ?? 'main';
  for (let frame = model.frames[node.frame]; frame && frame.opener !== null; frame = model.frames[model.nodes[frame.opener].frame]) {
    const name = `${frame.name}/${own}`;
    if (frame.which !== 'iteration' && names.includes(name)) return name;
  }
  return names.includes(own) ? own : undefined;
}

/** The part of another thread that a thread was opened with. @param {any} model @param {string} thread @param {string[]} names */
function adoptedBy(model, thread, names) {
  for (const node of model.nodes) {
    const opened = node?.visits[0]?.opened;
    if (opened && node.thread !== null && spokenIn(model, node, names) === thread) return { from: opened.from, count: opened.end - opened.start };
  }
  return null;
}

const ThreadTabs = kept(Tabs);
const Read = kept(Thread);
const NONE = /** @type {any[]} */ ([]);

/** Of a run of so many nodes all are asked about, whether they are in the window or not. */
const ALL = 100;

/** Whether a value was read. @param {{why: string}} wait */
const isRead = (wait) => /\breads\b/.test(wait.why);

export function Run() {
  const { id, query } = useStore(route);
  const { model, error, streams } = follow(id);
  const viewer = useStore(connection).role === 'viewer';
  const [acting, setActing] = useState(/** @type {any} */ (null));
  const [trouble, setTrouble] = useState(null);
  const first = useRef('');
  const at = query.at ? Math.max(1, Number(query.at) || 1) : null;
  const [late, setLate] = useState(at);
  const live = at === null || (!!model && at >= model.events && !model.driven);
  const n = model ? Math.min(at ?? model.events, model.events) : 1;
  // What is asked of the server follows the scrubber when it rests; lanes follow at once.
  const asked = at === null || live ? null : model ? n : at;
  useEffect(() => {
    const timer = setTimeout(() => setLate(asked), late === null && asked === null ? 0 : 150);
    return () => clearTimeout(timer);
  }, [asked]);
  const beat = useLately(model && late === null ? `${model.events} ${model.status} ${model.driven}` : '', 1000);
  // The run and the event that is shown, in one: what comes at the same time is drawn once.
  const { value: got } = useAsked(
    () => (model ? Promise.all([source.run(id, { at: late, brief: 'yes' }), source.events(id, { after: n - 1, limit: 1 })]) : Promise.resolve(/** @type {any[]} */ ([]))),
    [id, late, beat, !model],
  );
  const [run, told] = got ?? [];
  // The threads of that moment, and with them what they say: until it is known which there were, those of the moment before are shown.
  const { value: listed } = useAsked(() => (model && late !== null ? source.threads(id, { at: late }) : Promise.resolve(undefined)), [id, late]);
  // Whom nodes waited for is asked of those that are seen, once: what of it had happened by a moment the timeline tells.
  const [seen, setSeen] = useState(/** @type {string[]} */ ([]));
  const whom = useMemo(() => (model && model.nodes.length <= ALL ? model.nodes.map((/** @type {any} */ node) => node.node) : seen), [model, seen]);
  const reading = useRef(0);
  const explainAt = useLately(model ? `${model.events} ${model.driven}` : '', model?.driven ? Math.max(3000, 20 * reading.current) : 0);
  const { value: explained } = useAsked(async () => {
    if (!model || !whom.length) return undefined;
    const began = performance.now();
    const got = await source.explain(id, whom);
    reading.current = performance.now() - began;
    return got.nodes;
  }, [id, whom.join(), explainAt]);
  // Of the chosen one it is asked at the moment that is looked at, if it was there.
  const chosen = useMemo(() => model?.nodes.find((/** @type {any} */ one) => one?.node === query.node), [model, query.node]);
  const frame = chosen && model?.frames[chosen.frame];
  const there = chosen && (late === null || frame?.opener === null || visitAt(chosen, late));
  const { value: ownOf } = useAsked(() => (there ? source.explain(id, [query.node], late).then((got) => got.nodes[0]) : Promise.resolve(undefined)), [id, query.node, late, explainAt, Boolean(there)]);
  const own = ownOf?.node === query.node ? ownOf : undefined;
  const reads = useMemo(() => (explained ?? []).flatMap((/** @type {any} */ node) => node.waited_for.filter(isRead).map((/** @type {any} */ w) => ({ from: w.node, to: node.node }))), [explained]);
  const waits = useMemo(() => (own?.waited_for ?? []).filter((/** @type {any} */ w) => !isRead(w)).map((/** @type {any} */ w) => ({ from: w.node, to: query.node })), [own]);
  const saw = own?.saw;
  const goTo = (/** @type {number | null} */ to) => adjust({ at: to === null || (model && to >= model.events && !model.driven) ? undefined : to });
  const choose = (/** @type {string | null} */ node) => adjust({ node: node ?? undefined });
  // What is kept as it was drawn acts at the moment that is looked at, all the same.
  const at_ = useRef({ n, live, events: 0 });
  at_.current = { n, live, events: model?.events ?? 0 };
  const act = async (/** @type {string} */ what, /** @type {any} */ more) => {
    setTrouble(null);
    const now = at_.current;
    if (what === 'fork') return setActing({ at: now.live ? now.events : now.n, ...more });
    try {
      await (what === 'cancel' ? source.cancel(id) : source.resume(id));
      said.set(t(`${what}-done`));
    } catch (problem) {
      setTrouble(problem);
    }
    return undefined;
  };
  const rows = useMemo(() => Object.fromEntries(((late !== null && listed?.threads) || (model?.threads ?? [])).map((/** @type {any} */ one) => [one.name, one])), [model, late, listed]);
  const listedOnce = useRef(false);
  listedOnce.current ||= late === null || Boolean(listed);
  const readAt = late === null ? null : listed ? listed.at : listedOnce.current ? null : undefined;
  const names = useMemo(() => Object.keys(rows), [rows]);
  const tabs = useMemo(() => [...names.map((name) => ({ id: name, name, count: rows[name].messages })), { id: '=', name: t('result') }], [rows]);
  const ofNode = useMemo(() => threadOf(model, query.node, names), [model, query.node, names]);
  // At first the thread in which most was said; that one stays, whatever grows.
  if (!names.includes(first.current)) first.current = names.reduce((most, name) => (rows[name].messages > (rows[most]?.messages ?? 0) ? name : most), '');
  const tab = query.tab && (query.tab === '=' || names.includes(query.tab)) ? query.tab : ofNode ?? (first.current || '=');
  const adopted = useMemo(() => (model ? adoptedBy(model, tab, names) : null), [model, tab, names]);
  if (!model) return html`<main class="page" id="main"><h1><${Text} of=${id} max=${80} /></h1><${Problem} of=${error} />${error ? !source.sealed && html`<p><a class="button" href=${link('runs')}>${t('all-runs')}</a></p>` : html`<p class="muted busy" role="status">${t('loading')}</p>`}</main>`;
  const result = html`<${Result} run=${run} />`;
  const sayNow = story(told?.events?.[0]?.n === n || !told?.events?.[0]?.n ? told?.events?.[0] : null);
  const moment_ = told?.events?.[0] ? moment(told.events[0].at) : null;
  const openAsks = live ? run?.asks ?? [] : [];
  return html`<main class=${`run${query.node ? ' with-panel' : ''}`} id="main">
    <${Head} run=${run} model=${model} n=${n} then=${moment_} live=${live} act=${act} />
    <${Problem} of=${trouble ?? error} />
    ${openAsks.length > 0 && html`<div class="run-asks">${openAsks.slice(0, 20).map((ask) => html`<${Ask} key=${ask.ask} ask=${ask} run=${id} />`)}</div>`}
    ${model.dialect === 'agent' && model.driven && live && !viewer && !source.sealed && html`<${Message} run=${id} />`}
    <div class="picture"><${Lanes} ...${{ model, n, live, selected: query.node ?? null, choose, goTo, reads, waits, see: setSeen }} />
      <${Scrubber} model=${model} n=${n} live=${live} goTo=${goTo} said=${sayNow} at=${moment_} /></div>
    <div class=${`below${tab === '=' ? '' : ' two'}`}>
      <section class="threads" aria-label=${t('threads')}>
        <${ThreadTabs} at=${tab} of=${tabs} choose=${(/** @type {string} */ name) => adjust({ tab: name })} label=${t('threads')} />
        ${tab === '=' ? result : readAt === undefined ? html`<p class="muted busy">${t('loading')}</p>` : html`<${Read} run=${id} thread=${tab} beat=${explainAt} saw=${saw} adopted=${adopted} n=${source.sealed ? n : 0} at=${readAt} total=${rows[tab]?.messages ?? 0} mark=${rows[tab]?.mark} live=${live && model.driven} chooseNode=${choose}
          edit=${source.sealed || viewer ? undefined : (message) => act('fork', { message })} streamed=${streams.length ? streams.filter((one) => (threadOf(model, one.node, names) ?? 'main') === tab) : NONE} />`}
      </section>
      ${query.node && html`<aside class="panel" aria-label=${t('node')}><${NodePanel} ...${{ model, run: id, node: query.node, n, at: late, explain: own, choose }} /></aside>`}
      ${tab !== '=' && html`<aside class=${`panel beside${query.node ? ' third' : ''}`} aria-label=${t('result')}>${result}</aside>`}
    </div>
    ${acting && html`<${Fork} run=${id} model=${model} of=${run} ...${acting} close=${() => setActing(null)} made=${(/** @type {string} */ made) => (setActing(null), go('run', made))} />`}
  </main>`;
}
