// The page: the list of watches, the one that is looked at, and the line that brings its news.

import { read, wish } from "./asking.js";
import { duration, el, keep } from "./dom.js";
import { panels } from "./panels.js";

const LISTING_MS = 5000;
const BOARD_MS = 1500;
const WORDS = { done: "done", well: "well", held: "held", stale: "stale", needs_you: "needs you" };

const state = { watches: [], chosen: null, card: null, tab: "work", source: null, panel: null };
const place = (id) => document.getElementById(id);

// -- the list

async function list() {
  try {
    const listing = await read("/api/watches");
    state.watches = listing.watches;
    place("link").textContent = `${state.watches.length === 1 ? "1 watch" : `${state.watches.length} watches`}, live`;
    const shown = listing.watches.map((card) => [card.id, card.name, card.health.level, card.status.phase, card.status.steps[0]]);
    keep(place("watches"), [shown, listing.broken, state.chosen], () => [
      ...listing.watches.map((card) => watchButton(card)),
      ...listing.broken.map(([folder, why]) => el("li", { class: "small bad" }, `${folder}: ${why}`)),
    ]);
    const wanted = decodeURIComponent(location.hash.slice(1)) || state.chosen;
    const found = state.watches.find((card) => card.id === wanted) ?? state.watches[0];
    if (found && found.id !== state.chosen) choose(found);
  } catch (error) {
    place("link").textContent = `The page cannot be reached (${error.message}). The watches go on without it.`;
  }
}

function watchButton(card) {
  const now = card.status.steps[0];
  return el("li", {}, el(
    "button", { "aria-current": card.id === state.chosen ? "true" : null, "data-name": card.id, onclick: () => choose(card), title: card.status.watch },
    el("strong", {}, card.name), " ", el("span", { class: "small quiet" }, card.status.kind),
    el("br"), badge(card.health.level), el("span", { class: "small" }, ` ${card.status.phase}`),
    now ? bar(now) : null,
  ));
}

function badge(level) {
  return el("span", { class: `badge ${level}` }, WORDS[level] ?? level);
}

// -- one watch

function choose(card) {
  state.source?.close();
  Object.assign(state, { chosen: card.id, card, panel: null });
  if (decodeURIComponent(location.hash.slice(1)) !== card.id) history.replaceState(null, "", `#${card.id}`);
  for (const button of place("watches").querySelectorAll("button")) {
    if (button.dataset.name === card.id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  place("watch").replaceChildren(
    el("h2", {}, card.name), el("p", { class: "small quiet" }, card.status.watch),
    el("div", { id: "told", "aria-live": "polite" }), el("div", { id: "controls", class: "controls" }),
    el("div", { id: "steps", role: "group", "aria-label": "What runs now" }), el("dl", { id: "facts" }),
    el("div", { id: "tabs", class: "tabs", role: "tablist", "aria-label": "Views" }),
    el("section", { id: "panel", role: "tabpanel", "aria-labelledby": `tab-${state.tab}`, tabindex: "0" }),
  );
  draw(card);
  show(state.tab);
  follow(card);
}

function follow(card) {
  const source = new EventSource(`/api/watches/${card.id}/stream?after=${card.status.events}`);
  state.source = source;
  source.addEventListener("card", (message) => {
    state.card = JSON.parse(message.data);
    draw(state.card);
  });
  source.addEventListener("event", (message) => {
    state.panel?.event?.(JSON.parse(message.data), state.card);
    refreshSoon();
  });
  source.addEventListener("trouble", (message) => { place("link").textContent = JSON.parse(message.data); });
  source.onopen = () => { place("link").textContent = "live"; };
  source.onerror = () => { place("link").textContent = "The page's server is gone; trying again. The watches go on without it."; };
}

let refreshing = null;
function refreshSoon() {
  refreshing ??= setTimeout(() => { refreshing = null; state.panel?.refresh?.(state.card); }, BOARD_MS);
}

function draw(card) {
  const seen = card.status;
  document.title = `${card.name}: ${WORDS[card.health.level]}`;
  keep(place("told"), card.health, () => [
    el("p", { class: "said" }, badge(card.health.level), ` ${card.health.sentence}`),
    card.health.command ? el("p", { class: "small" }, "In its folder: ", el("code", {}, card.health.command)) : null,
  ]);
  keep(place("controls"), seen.phase, () => controls(card));
  keep(place("steps"), seen.steps, () => seen.steps.map(running));
  keep(place("facts"), facts(seen), () => facts(seen).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function facts(seen) {
  const held = seen.pending_requests.length ? [["asked for", seen.pending_requests.join(", ")]] : [];
  const wait = seen.next_retry_at ? [["next try", seen.next_retry_at]] : [];
  const by = seen.supervisor;
  const who = by ? `process ${by.pid} on ${by.host}, ${by.alive ? "alive" : "gone"}` : "none yet";
  return [["phase", `${seen.phase}; wished: ${seen.desired}`], ["supervisor", who], ...held, ...wait, ...seen.summary, ["active", duration(seen.active_s)]];
}

function running(step) {
  const left = step.left_s === null ? "" : `, about ${duration(step.left_s)} left`;
  const idle = step.idle_s > 30 ? `, silent for ${duration(step.idle_s)}` : "";
  const told = `${step.phase || "begins"}${step.text && step.text !== step.phase ? `, ${step.text}` : ""} (${duration(step.active_s)}${left}${idle})`;
  return el("div", {}, el("p", {}, el("strong", { title: step.id }, step.title || step.id), `: ${told}`), bar(step));
}

function bar(step) {
  if (!step.total) return null;
  return el("progress", { value: step.done ?? 0, max: step.total, "aria-label": `${step.id}: ${step.done ?? 0} of ${step.total}` });
}

// -- buttons

const HELD = new Set(["blocked", "needs_reconcile"]);

function controls(card) {
  const phase = card.status.phase;
  const looked = HELD.has(phase);
  const buttons = [
    ["Pause", "pause", {}, "What runs now is ended in good order; a running attempt does not count.", !looked],
    ["Pause after this step", "pause", { after_step: true }, "What runs now may finish first.", phase === "running"],
    [looked ? "I looked: go on" : "Resume", "resume", looked ? { accept: true } : {}, looked ? "This says that you looked at why it stopped. Blocked jobs are tried again." : "It goes on. Waits are over.", true],
    ["Stop", "stop", {}, "Children are ended, the state is saved, and the supervisor ends.", true],
  ];
  const shown = buttons.filter(([, , , , fits]) => fits);
  return shown.map(([name, verb, more, told]) => el("button", { "data-name": name, onclick: () => ask(card, name, verb, more, told) }, name));
}

async function ask(card, name, verb, more, told) {
  place("question").textContent = `${name}: ${card.name}?`;
  place("consequence").textContent = told;
  const dialog = place("confirm");
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  if (dialog.returnValue !== "yes") return;
  dialog.returnValue = "";
  try {
    place("link").textContent = await wish(card.id, verb, more);
  } catch (error) {
    place("link").textContent = error.message;
  }
}

// -- views

function show(name) {
  state.tab = name;
  const tabs = panels(state.card.status.kind).map(({ id, title }) => el("button", {
    id: `tab-${id}`, role: "tab", "aria-selected": id === name, "aria-controls": "panel", tabindex: id === name ? 0 : -1,
    onclick: () => show(id), onkeydown: step,
  }, title));
  place("tabs").replaceChildren(...tabs);
  const panel = place("panel");
  panel.setAttribute("aria-labelledby", `tab-${name}`);
  panel.replaceChildren(el("p", { class: "quiet" }, "Looking."));
  state.panel = panels(state.card.status.kind).find(({ id }) => id === name).make(panel, state.card);
}

function step(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  const names = panels(state.card.status.kind).map(({ id }) => id);
  const next = names[(names.indexOf(state.tab) + by + names.length) % names.length];
  show(next);
  place(`tab-${next}`).focus();
}

addEventListener("hashchange", () => {
  const card = state.watches.find(({ id }) => id === decodeURIComponent(location.hash.slice(1)));
  if (card && card.id !== state.chosen) choose(card);
});
list();
setInterval(list, LISTING_MS);
