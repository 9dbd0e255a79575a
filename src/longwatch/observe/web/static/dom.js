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

// The time of today, or the day and the time.
export function clock(stamp, zone) {
  const day = (date) => date.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: zone });
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone };
  const at = new Date(stamp);
  if (day(at) !== day(new Date())) return `${day(at)} ${at.toLocaleTimeString("en-GB", time)}`;
  return at.toLocaleTimeString("en-GB", { ...time, second: "2-digit" });
}

export function moment(stamp, zone) {
  const options = { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23", timeZone: zone };
  return `${new Date(stamp).toLocaleString("en-GB", options)} (${zone})`;
}

// With `stacks` a row becomes a small card where there is no room; the roles stay what they are then, too.
export function table(caption, heads, rows, { stacks = false } = {}) {
  const head = heads.map(([text, kind]) => el("th", { scope: "col", role: "columnheader", class: kind }, text));
  const cell = (content, at) => el("td", { role: "cell", class: heads[at][1], "data-label": at ? heads[at][0] : null }, content);
  const body = rows.map((row) => el("tr", { role: "row" }, row.map(cell)));
  return el("div", { class: "scroll" }, el(
    "table", { role: "table", class: stacks ? "stacks" : null }, el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)), el("tbody", { role: "rowgroup" }, body),
  ));
}

// Draw again only what changed: who is at a button with the keyboard, or reads what was opened, is not thrown out by news.
const shown = new WeakMap();

export function keep(node, value, make) {
  const key = JSON.stringify(value);
  if (shown.get(node) === key) return;
  shown.set(node, key);
  const named = (name) => node.querySelector(`[data-name="${CSS.escape(name)}"]`);
  const held = node.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
  const open = [...node.querySelectorAll("details[open][data-name]")].map((one) => one.dataset.name);
  node.replaceChildren(...there([make()].flat()));
  for (const one of open.map(named)) if (one) one.open = true;
  if (held !== undefined) named(held)?.focus();
}

// What is loaded when it is opened, and again after it was drawn again.
export function folded(name, title, fill) {
  const body = el("div", {});
  const details = el("details", { "data-name": name }, el("summary", { "data-name": `${name}: title` }, title), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.hasChildNodes()) return;
    try {
      body.replaceChildren(...there([await fill()].flat()));
    } catch (error) {
      body.replaceChildren(el("p", { class: "bad" }, error.message));
    }
  });
  return details;
}
