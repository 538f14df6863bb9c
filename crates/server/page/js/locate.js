/** Which event appended a message: what a fork names it by. The journal says a text once, so a reply is found by its effect. */
import { source } from './source.js';

const PAGE = 1000;

/** What an outcome says, as a message shows it. @param {any} outcome @returns {string | undefined} */
function textOf(outcome) {
  if (outcome?.reply) return outcome.reply.text ?? '';
  if (outcome?.output === undefined) return undefined;
  return typeof outcome.output === 'string' ? outcome.output : JSON.stringify(outcome.output);
}

/**
 * @param {string} run @param {{role: string, content: any, node?: string | null, n?: number}} message @param {number} most The last event that may have.
 * @returns {Promise<number | null>}
 */
export async function eventOf(run, message, most) {
  if (message.n) return message.n;
  const wanted = typeof message.content === 'string' ? message.content : JSON.stringify(message.content ?? '');
  /** @type {Map<string, string | undefined>} */
  const said = new Map();
  let found = null;
  for (let after = 0; after < most; ) {
    const { events } = await source.events(run, { after, limit: PAGE });
    if (!events.length) break;
    for (const event of events) {
      if (event.n > most) return found;
      if (event.kind === 'completed') said.set(event.effect, textOf(event.outcome));
      if (event.kind !== 'appended' || (event.node ?? null) !== (message.node ?? null)) continue;
      const body = event.body ?? {};
      const text = body.text ? (body.text[0] === message.role ? body.text[1] : undefined) : said.get(body.reply ?? body.output ?? '');
      if (text === wanted) found = event.n;
    }
    after = events[events.length - 1].n;
  }
  return found;
}
