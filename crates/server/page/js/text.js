/** Hostile text stays text (S-28): what hides, reorders or steers is shown as what it is. */

/** Control characters but line ends and tabs; marks of direction; what has no width, fillers and tags. The joiners U+200C and U+200D are
 * needed by scripts and pictures. Lone halves of a pair, too. */
const ODD =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|\u{e0000}|[\u{e0001}-\u{e0fff}]|[\u{1d173}-\u{1d17a}]|\p{Cs}/gu;

const NAMES = {
  0x00: 'NUL', 0x07: 'BEL', 0x08: 'BS', 0x0d: 'CR', 0x1b: 'ESC', 0x7f: 'DEL', 0xad: 'SHY', 0x200b: 'ZWSP', 0x200e: 'LRM', 0x200f: 'RLM', 0x202a: 'LRE',
  0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO', 0x2060: 'WJ', 0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
};

/**
 * A text in pieces: what is harmless as it is, what is odd by its name.
 * @param {string} text
 * @returns {(string | {shown: string, title: string})[]}
 */
export function pieces(text) {
  // `search` begins anew each time, where `test` goes on.
  if (text.search(ODD) < 0) return [text];
  const out = [];
  let at = 0;
  for (const found of text.matchAll(ODD)) {
    const from = found.index ?? 0;
    if (found[0] === '\r' && text[from + 1] === '\n') continue;
    if (from > at) out.push(text.slice(at, from));
    const code = found[0].codePointAt(0) ?? 0;
    const hex = code.toString(16).toUpperCase().padStart(4, '0');
    out.push({ shown: NAMES[code] ?? `U+${hex}`, title: `U+${hex}` });
    at = from + found[0].length;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

/**
 * The same as one text, for attributes, titles and canvases.
 * @param {unknown} text
 */
export function plain(text) {
  return pieces(String(text ?? ''))
    .map((piece) => (typeof piece === 'string' ? piece : `⟨${piece.shown}⟩`))
    .join('');
}

/**
 * The first line, at most so long.
 * @param {unknown} text
 * @param {number} most
 */
export function brief(text, most = 120) {
  const all = typeof text === 'string' ? text : text === undefined ? '' : JSON.stringify(text);
  const line = all.slice(0, most * 4).trim().split('\n', 1)[0];
  return line.length > most || line.length < all.trim().length ? line.slice(0, most) + '…' : line;
}

/** Whether a message is among those that were shown. @param {[number, number][] | undefined} shown @param {any} message */
export const isShown = (shown, message) => message.number !== undefined && (shown ?? []).some(([from, to]) => from <= message.number && message.number <= to);
