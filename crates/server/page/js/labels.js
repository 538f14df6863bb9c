/** How much room the names of lanes take: as much as they need, up to a part of the window (S-22). */
import { t } from './words.js';

/** How far a lane is set in for each node that it lies below. */
export const INDENT = 10;
const LEAST = 60;
/** The part of the window's width that they take at most, and pixels that are enough for anybody. */
const [PART, MOST] = [0.36, 300];

/** @type {CanvasRenderingContext2D | null} */
let pen = null;
/** In which size, and what, by text: names come again and again. @type {Map<string, number>} */
const known = new Map();
let measured = 0;

/** @param {string} text */
function widthOf(text) {
  const had = known.get(text);
  if (had !== undefined) return had;
  const px = pen ? pen.measureText(text).width : text.length * 7;
  if (known.size > 20_000) known.clear();
  known.set(text, px);
  return px;
}

/** @param {{label: string, depth: number, status: string}[]} lanes @param {number} width @returns {number} */
export function labelsWidth(lanes, width) {
  pen ??= document.createElement('canvas').getContext('2d');
  // As the style sheet has it.
  const size = matchMedia('(min-width: 2200px)').matches ? 13.5 : 12;
  if (size !== measured) known.clear();
  measured = size;
  if (pen) pen.font = `600 ${size}px ${getComputedStyle(document.body).fontFamily}`;
  const most = Math.min(MOST, width * PART);
  let widest = LEAST;
  for (const lane of lanes) {
    const sign = lane.depth ? 11 : 0;
    const word = lane.status === 'cancelled' || lane.status === 'failed' ? widthOf(t(lane.status)) + 5 : 0;
    widest = Math.max(widest, 10 + lane.depth * INDENT + sign + widthOf((lane.label || t('no-thread')).slice(0, 60)) + word + 14);
    if (widest >= most) return Math.round(most);
  }
  return Math.ceil(widest);
}
