/** JSON that is typed: what is sent is all of the text that is shown, or nothing (S-40). */

/**
 * The value of a text. `error` is the key of the words for what is wrong: the text is not JSON, has a key twice, or has a number that would be rounded.
 * @param {string} text @returns {{value?: any, error?: string}}
 */
export function readJson(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return { error: 'no-json' };
  }
  /** The keys of each object that is open; a list has none. @type {(Set<string> | null)[]} */
  const open = [];
  let before = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : null);
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      const [keys, key] = [open.at(-1), JSON.parse(before)];
      if (keys?.has(key)) return { error: 'key-twice' };
      keys?.add(key);
    } else if (/^[-\d]/.test(token) && !isExact(token)) return { error: 'number-too-large' };
    before = token;
  }
  return { value };
}

/** Whether a number is sent as it is written: JavaScript rounds integers beyond 2^53. @param {string} text */
export const isExact = (text) => (/^-?\d+$/.test(text) ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text)));
