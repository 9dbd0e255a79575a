// Elements from values. Text is always text: nothing that a watch says is ever parsed as HTML.

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("aria-")) node.setAttribute(key, String(value));
    else if (value === false) continue;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...there(children.flat()));
  return node;
}

// Without what is not there: the browser would write the word "null".
export function there(children) {
  return children.filter((child) => child !== null && child !== undefined);
}

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children.flat());
  return node;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
  const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
  const whole = Math.round(seconds);
  const [size, unit, less, smaller] = units.find(([size]) => whole >= size);
  return `${Math.floor(whole / size)} ${unit} ${String(Math.floor((whole % size) / less)).padStart(2, "0")} ${smaller}`;
}

export function clock(stamp, zone) {
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: zone };
  return new Date(stamp).toLocaleTimeString("en-GB", options);
}

export function moment(stamp, zone) {
  const options = { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23", timeZone: zone };
  return `${new Date(stamp).toLocaleString("en-GB", options)} (${zone})`;
}

export function table(caption, heads, rows) {
  const head = heads.map(([text, kind]) => el("th", { scope: "col", class: kind }, text));
  const body = rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { class: heads[at][1] }, cell))));
  return el("div", { class: "scroll" }, el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

// Draw again only what changed: who is at a button with the keyboard, or reads a line, is not thrown out by news.
export function keep(node, value, make) {
  const key = JSON.stringify(value);
  if (node.dataset.shown === key) return;
  node.dataset.shown = key;
  const held = node.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
  node.replaceChildren(...there([make()].flat()));
  if (held !== undefined) node.querySelector(`[data-name="${CSS.escape(held)}"]`)?.focus();
}
