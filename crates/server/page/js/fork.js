/** Going on from an event as a new run, with another message, prompt, input or model; what it would cost is said before (S-26). */
import { html, Text, Dialog, Problem, useEffect, useState } from './ui.js';
import { source, can } from './source.js';
import { eventOf } from './locate.js';
import { because } from './node.js';
import { t } from './words.js';
import { count, duration, tokens } from './format.js';

/** What a fork would do, node by node. */
function Plan({ of }) {
  if (!of) return null;
  const saved = of.saved ?? {};
  const sums = (of.nodes ?? []).reduce((/** @type {any} */ all, /** @type {any} */ node) => ({ ...all, [node.would]: (all[node.would] ?? 0) + 1 }), {});
  return html`<div class="plan"><p>${Object.entries(sums).map(([would, n]) => html`<span class=${`tag w-${would}`}>${String(n)} ${t(`would-${would}`)}</span> `)}
    ${(saved.model_calls || saved.tool_calls) > 0 && html`<span class="muted">${t('saves', { calls: (saved.model_calls ?? 0) + (saved.tool_calls ?? 0), tokens: count(tokens(saved)), time: duration(saved.worked_ms ?? 0) })}</span>`}</p>
    <ul class="plan-nodes">${(of.nodes ?? []).slice(0, 200).map((/** @type {any} */ node) => html`<li><span class="mono"><${Text} of=${node.node} max=${80} /></span> <span class=${`tag w-${node.would}`}>${t(`would-${node.would}`)}</span> <span class="muted">${because(node.afresh?.[0], node.node)}</span></li>`)}</ul></div>`;
}

/**
 * @param {{run: string, model: any, of: any, at: number, message?: any, close: () => void, made: (run: string) => void}} props
 */
export function Fork({ run, model, of, at, message, close, made }) {
  const [n, setN] = useState(/** @type {number | ''} */ (at));
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [other, setOther] = useState('');
  const [document, setDocument] = useState(/** @type {string | null} */ (null));
  const [busy, setBusy] = useState('');
  const [trouble, setTrouble] = useState(/** @type {any} */ (null));
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  // A document of the run's name stands there to be changed, if the server has one.
  useEffect(() => {
    if (document !== '') return;
    source.documents().then(async ({ documents }) => {
      const known = documents.find((/** @type {any} */ one) => one.title === model.name || one.name === model.name);
      const got = known && (await source.document(known.name));
      if (got?.text) setDocument((was) => was || got.text);
    }, () => {});
  }, [document === '']);
  useEffect(() => {
    if (!message) return;
    eventOf(run, message, model.events).then((event) => {
      if (event === null) return setTrouble({ title: t('not-editable') });
      setTexts({ [event]: typeof message.content === 'string' ? message.content : JSON.stringify(message.content) });
      setN(Math.max(at, event));
    }, setTrouble);
  }, []);
  // What was foretold was so of what was there then.
  useEffect(() => setPlan(null), [n, texts, other, document]);
  const isLost = Boolean(message) && !Object.keys(texts).length;
  const [foretold, setForetold] = useState(false);
  useEffect(() => void can('/v1/runs/{id}/fork/plan').then(setForetold), []);
  const body = () => ({
    ...(document === null ? { at: n } : { document }),
    ...(Object.keys(texts).length ? { messages: Object.entries(texts).map(([event, text]) => ({ event: Number(event), text })) } : {}),
    ...(other ? { options: { model: other } } : {}),
  });
  const go = async (/** @type {boolean} */ dry) => {
    setBusy(dry ? 'dry' : 'fork');
    setTrouble(null);
    try {
      const got = await (dry ? source.forkPlan(run, body()) : source.fork(run, body()));
      if (dry) setPlan(got);
      else made(got.run_id);
    } catch (problem) {
      setTrouble(problem);
    }
    setBusy('');
  };
  return html`<${Dialog} title=${t('fork-title')} close=${close} wide=${true}>
    <form class="fork" onSubmit=${(event) => (event.preventDefault(), go(false))}>
      <p class="muted">${t('fork-why')}</p>
      <div class="row">${document === null && html`<label class="field">${t('from-event')} <input type="number" min="1" max=${model.events} required value=${n} onInput=${(event) => setN(event.target.value === '' ? '' : Number(event.target.value))} /></label>`}
        <label class="field grow">${t('its-model')} <input type="text" placeholder=${t('as-recorded')} value=${other} onInput=${(event) => setOther(event.target.value)} /></label></div>
      ${Object.entries(texts).map(([at_, text]) => html`<label class="field">${t('message-of', { n: at_ })}<textarea rows=${Math.min(14, text.split('\n').length + 3)} value=${text} onInput=${(event) => setTexts({ ...texts, [at_]: event.target.value })}></textarea></label>`)}
      ${document === null ? html`<button type="button" class="more" onClick=${() => setDocument('')}>${t('other-document')}</button>`
        : html`<label class="field">${t('document')} <small class="muted">${t('other-document-why')}</small><textarea class="mono" rows="12" spellcheck="false" required value=${document} onInput=${(event) => setDocument(event.target.value)}></textarea></label>
          <button type="button" class="more" onClick=${() => setDocument(null)}>${t('same-document')}</button>`}
      <${Problem} of=${trouble} />
      ${trouble?.diagnostics && html`<ul class="found">${trouble.diagnostics.map((one) => html`<li class="at-error"><span class="mono">${one.line ?? '–'}:${one.column ?? ''}</span> <${Text} of=${one.message} max=${400} /></li>`)}</ul>`}
      <${Plan} of=${plan} />
      <div class="ask-acts">${foretold && html`<button type="button" disabled=${Boolean(busy) || isLost} onClick=${(event) => event.target.form.reportValidity() && go(true)}>${t('what-would')}</button>`}<button class="primary" disabled=${Boolean(busy) || isLost}>${t('fork')}</button></div>
    </form>
  <//>`;
}
