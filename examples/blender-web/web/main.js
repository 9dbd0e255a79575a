// The page: a route for each ported operator, and what every editor of documents has.

/**
 * @import { Operator, Property } from "./operator.js"
 */

import { emptyMain } from "./data.js";
import { open, save } from "./file.js";
import { History } from "./history.js";
import { run } from "./operator.js";

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
function element(id) {
  return /** @type {T} */ (document.getElementById(id));
}

/**
 * Begin with an empty document and these operators.
 * @param {Operator[]} operators
 */
export function start(operators) {
  let history = new History(emptyMain());
  const report = element("report");
  const form = /** @type {HTMLFormElement} */ (element("operator"));
  const opener = /** @type {HTMLInputElement} */ (element("open"));

  /** @param {string} text */
  function say(text) {
    report.textContent = text;
    const items = history.current.objects.map((item) => {
      const line = document.createElement("li");
      line.textContent = `${item.selected ? "● " : "○ "}${item.name}`;
      return line;
    });
    element("objects").replaceChildren(...items);
  }

  /** @param {() => string} action */
  function attempt(action) {
    try {
      say(action());
    } catch (error) {
      say(`Refused: ${error instanceof Error ? error.message : error}`);
    }
  }

  const undo = () => attempt(() => (history.undo() ? "Undone" : "Nothing to undo"));
  const redo = () => attempt(() => (history.redo() ? "Redone" : "Nothing to redo"));

  function show() {
    const operator = operators.find((one) => `#${one.route}` === location.hash);
    const fields = operator ? Object.entries(operator.properties).map(([name, one]) => field(name, one)) : [];
    const button = document.createElement("button");
    button.textContent = operator?.label ?? "";
    form.replaceChildren(...fields, ...(operator ? [button] : []));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const operator = operators.find((one) => `#${one.route}` === location.hash);
    attempt(() => {
      const changed = operator && run(operator, history.current, entered(form));
      if (!changed) {
        return "Cancelled";
      }
      history.push(changed);
      return "Finished";
    });
  });

  opener.addEventListener("change", async () => {
    const text = (await opener.files?.[0]?.text()) ?? "";
    opener.value = "";
    attempt(() => {
      history = new History(open(text));
      return "Opened";
    });
  });

  element("save").addEventListener("click", () => download("document.json", save(history.current)));
  element("undo").addEventListener("click", undo);
  element("redo").addEventListener("click", redo);
  window.addEventListener("hashchange", show);
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key.toLowerCase() === "z") {
      event.preventDefault();
      (event.shiftKey ? redo : undo)();
    }
  });

  element("routes").replaceChildren(...operators.map(link));
  show();
}

/** @param {Operator} operator */
function link(operator) {
  const anchor = document.createElement("a");
  anchor.href = `#${operator.route}`;
  anchor.textContent = operator.label;
  anchor.dataset.operator = operator.id;
  return anchor;
}

/**
 * @param {string} name
 * @param {Property} property
 */
function field(name, property) {
  const label = document.createElement("label");
  label.append(name, control(name, property));
  return label;
}

/**
 * @param {string} name
 * @param {Property} property
 */
function control(name, property) {
  if (property.type === "enum") {
    const select = document.createElement("select");
    select.name = name;
    select.append(...property.items.map((item) => new Option(item, item, false, item === property.default)));
    return select;
  }
  const input = document.createElement("input");
  input.name = name;
  if (property.type === "bool") {
    input.type = "checkbox";
    input.checked = property.default;
  } else {
    input.value = Array.isArray(property.default)
      ? property.default.join(", ")
      : String(property.default ?? "");
  }
  return input;
}

/** @param {HTMLFormElement} form */
function entered(form) {
  /** @type {Record<string, string | boolean>} */
  const fields = {};
  for (const one of form.elements) {
    if (one instanceof HTMLInputElement) {
      fields[one.name] = one.type === "checkbox" ? one.checked : one.value;
    } else if (one instanceof HTMLSelectElement) {
      fields[one.name] = one.value;
    }
  }
  return fields;
}

let offered = "";

/**
 * Offer a file. Its content must stay until the browser has read it, so it is given up with the next one only.
 * @param {string} name
 * @param {string} text
 */
function download(name, text) {
  URL.revokeObjectURL(offered);
  offered = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = offered;
  anchor.download = name;
  anchor.click();
}
