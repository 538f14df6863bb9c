/** A safe part of Markdown, as elements that are made one by one: nothing is ever read as HTML, nothing is loaded, and a link says where it
 * leads before it is followed (S-28). */
import { html, Text } from './ui.js';
import { Long } from './json.js';
import { t } from './words.js';
import { plain } from './text.js';

const INLINE = /(?<!`)(`{1,9})(?!`)([^\n]{1,2000}?)(?<!`)\1(?!`)|\*\*([^*\n]{1,2000})\*\*|__([^_\n]{1,2000})__|\*([^*\s][^*\n]{0,2000})\*|(?<!\w)_([^_\s][^_\n]{0,2000})_(?!\w)|!?\[([^\]\n]{0,300})\]\(([^()\s]{1,2000})\)/g;
/** What is longer is shown as it is, and folds: nobody reads it as a page, and it may be made to be slow. */
export const LONGEST = 20_000;

/** @param {string} text @param {number} depth @returns {any[]} */
function inline(text, depth = 0) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) out.push(html`<${Text} of=${text.slice(at, found.index)} />`);
    const [all, , code, strong, strong2, em, em2, name, url] = found;
    const deeper = (/** @type {string} */ inner) => (depth < 4 ? inline(inner, depth + 1) : html`<${Text} of=${inner} />`);
    if (code !== undefined) out.push(html`<code><${Text} of=${code.replace(/^ (.*\S.*) $/, '$1')} /></code>`);
    else if (strong ?? strong2) out.push(html`<strong>${deeper(strong ?? strong2)}</strong>`);
    else if (em ?? em2) out.push(html`<em>${deeper(em ?? em2)}</em>`);
    else if (all[0] !== '!' && /^https?:\/\/[\x21-\x7e]+$/i.test(url))
      out.push(html`<a href=${url} rel="noopener noreferrer nofollow" target="_blank">${deeper(name)}</a><span class="muted url"> ‹${plain(url)}›</span>`);
    else out.push(html`<${Text} of=${all} />`);
    at = found.index + all.length;
  }
  if (at < text.length) out.push(html`<${Text} of=${text.slice(at)} />`);
  return out;
}

/** The cells of a row of a table. @param {string} line */
const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());

/** Whether a line is the head of a table: below it is a line of rules, one for each of its cells. @param {string} line @param {string} below */
const isHead = (line, below) => line.includes('|') && /^\s*\|?[\s:|-]+\|[\s:|-]*$/.test(below) && cells(line).length === cells(below).length;

/** @param {string[]} lines */
function table(lines) {
  const [head, , ...rows] = lines;
  return html`<div class="scroll-x" tabindex="0" role="group" aria-label=${t('table')}><table><thead><tr>${cells(head).map((cell) => html`<th>${inline(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${cells(row).map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** Blocks of Markdown. @param {{of: string}} props */
export function Markdown({ of }) {
  if (of.length > LONGEST) return html`<${Long} of=${of} mono=${false} />`;
  const lines = of.replace(/\r\n/g, '\n').split('\n');
  const out = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i];
    const take = (/** @type {(line: string) => boolean} */ fits) => {
      const from = i;
      while (i < lines.length && fits(lines[i])) i++;
      return lines.slice(from, i);
    };
    const fence = /^\s*(```+(?=[^`]*$)|~~~+)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      i++;
      const code = take((next) => !next.trim().startsWith(fence[1]));
      i++;
      out.push(html`<pre><code><${Text} of=${code.join('\n')} /></code></pre>`);
    } else if (heading) {
      i++;
      out.push(html`<p class=${`heading h${heading[1].length}`}>${inline(heading[2])}</p>`);
    } else if (/^\s*[-*+]\s+/.test(line)) {
      out.push(html`<ul>${items(take((next) => /^\s*[-*+]\s+|^\s{2,}\S/.test(next)), /^\s*[-*+]\s+/)}</ul>`);
    } else if (/^\s*\d{1,9}[.)]\s+/.test(line)) {
      out.push(html`<ol start=${parseInt(line, 10) || 1}>${items(take((next) => /^\s*\d{1,9}[.)]\s+|^\s{2,}\S/.test(next)), /^\s*\d{1,9}[.)]\s+/)}</ol>`);
    } else if (/^\s*>/.test(line)) {
      out.push(html`<blockquote>${inline(take((next) => /^\s*>/.test(next)).map((next) => next.replace(/^\s*>\s?/, '')).join('\n'))}</blockquote>`);
    } else if (isHead(line, lines[i + 1] ?? '')) {
      out.push(table(take((next) => next.includes('|'))));
    } else if (!line.trim()) {
      i++;
    } else {
      const first = i;
      const text = take((next) => i === first || (next.trim() !== '' && !/^(#{1,6}\s|\s*(```|~~~|>|[-*+]\s|\d{1,9}[.)]\s))/.test(next)));
      out.push(html`<p>${inline(text.join('\n'))}</p>`);
    }
  }
  return html`<div class="markdown">${out}</div>`;
}

/** @param {string[]} lines @param {RegExp} mark */
function items(lines, mark) {
  /** @type {string[]} */
  const out = [];
  for (const line of lines) {
    if (mark.test(line) || !out.length) out.push(line.replace(mark, ''));
    else out[out.length - 1] += '\n' + line.trim();
  }
  return out.map((item) => html`<li>${inline(item)}</li>`);
}
