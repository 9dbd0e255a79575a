// Line charts as SVG, with the numbers in a table beside them for those who cannot see them.

import { svg } from "./dom.js";

const WIDTH = 420, HEIGHT = 170, LEFT = 44, BOTTOM = 24, TOP = 10, MOST_DOTS = 60;

// `lines`: [{ name, kind, points: [[x, y], ...] }]; `limit`: a height that matters.
export function lines(label, drawn, { limit = null, log = false, xName = "" } = {}) {
  const scale = log ? (value) => Math.log10(Math.max(value, 1e-3)) : (value) => value;
  const points = drawn.flatMap((line) => line.points);
  if (points.length === 0) return null;
  const xs = points.map(([x]) => x), ys = points.map(([, y]) => scale(y));
  if (limit !== null) ys.push(scale(limit));
  const low = log ? Math.min(...ys, 0) : 0, high = Math.max(...ys, low + 1e-9);
  const first = Math.min(...xs), last = Math.max(...xs, first + 1);
  const x = (value) => LEFT + ((value - first) / (last - first)) * (WIDTH - LEFT - 10);
  const y = (value) => HEIGHT - BOTTOM - ((scale(value) - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  const said = (value) => (log ? 10 ** value : value).toLocaleString("en", { maximumSignificantDigits: 3 });
  return svg(
    "svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    svg("line", { class: "axis", x1: LEFT, y1: HEIGHT - BOTTOM, x2: WIDTH - 10, y2: HEIGHT - BOTTOM }),
    svg("line", { class: "axis", x1: LEFT, y1: TOP, x2: LEFT, y2: HEIGHT - BOTTOM }),
    svg("text", { x: 4, y: TOP + 8 }, said(high)),
    svg("text", { x: 4, y: HEIGHT - BOTTOM }, said(low)),
    svg("text", { x: LEFT, y: HEIGHT - 6 }, `${xName} ${first}`),
    svg("text", { x: WIDTH - 10, y: HEIGHT - 6, "text-anchor": "end" }, String(last)),
    limit === null ? [] : [svg("line", { class: "limit", x1: LEFT, x2: WIDTH - 10, y1: y(limit), y2: y(limit) })],
    drawn.flatMap((line) => [
      svg("polyline", { class: line.kind, points: line.points.map(([px, py]) => `${x(px)},${y(py)}`).join(" ") }),
      ...(line.kind === "first" && line.points.length <= MOST_DOTS ? line.points.map(([px, py]) => svg("circle", { class: "dot", cx: x(px), cy: y(py), r: 3 })) : []),
    ]),
  );
}
