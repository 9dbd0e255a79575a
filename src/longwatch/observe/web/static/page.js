// The page: the list of watches, the one that is looked at, and the line that brings its news.

import { read, wish } from "./asking.js";
import { duration, el, keep, moment } from "./dom.js";
import { panels } from "./panels.js";

const LISTING_MS = 5000;
const BOARD_MS = 1500;
const WORDS = { done: "done", well: "well", held: "held", stale: "stale", needs_you: "needs you" };

const state = { watches: [], broken: [], chosen: null, card: null, tab: "work", source: null, panel: null };
const place = (id) => document.getElementById(id);

// -- where we are: `#WATCH/VIEW`, so that an address can be kept and sent

function here() {
  const [watch, tab = ""] = decodeURIComponent(location.hash.slice(1)).split("/");
  return { watch, tab };
}

function remember() {
  history.replaceState(null, "", `#${state.chosen}/${state.tab}`);
}

// -- the list

async function list() {
  try {
    const listing = await read("/api/watches");
    Object.assign(state, { watches: listing.watches, broken: listing.broken });
    place("link").textContent = `${state.watches.length === 1 ? "1 watch" : `${state.watches.length} watches`}, live`;
    drawList();
    find();
  } catch (error) {
    place("link").textContent = `The page cannot be reached (${error.message}). The watches go on without it.`;
  }
}

function drawList() {
  const { watches, broken, chosen } = state;
  const cards = watches.map((card) => [card.id, card.name, card.health, extent(card), card.status.steps[0]]);
  keep(place("watches"), [cards, broken, chosen], () => [
    ...broken.map(([folder, why]) => unreadable(folder, why)), ...watches.map((card) => watchButton(card)),
  ]);
}

function find() {
  const known = (id) => state.watches.find((card) => card.id === id);
  if (state.chosen && !known(state.chosen)) return gone("It is not where it was, or cannot be read any more. What is shown is the last that was seen of it.");
  if (state.chosen) return undefined;
  const wanted = here().watch;
  const found = known(wanted) ?? state.watches[0];
  if (!found) return place("watch").replaceChildren(el("p", { class: "quiet" }, "There is no watch here that can be read."));
  choose(found, here().tab);
  return wanted && found.id !== wanted ? gone("The watch of this address is not here. This is the first of those that are.") : undefined;
}

function gone(sentence) {
  keep(place("told"), sentence, () => el("p", { class: "said stale" }, badge("stale"), ` ${sentence}`));
}

function watchButton(card) {
  const now = card.status.steps[0];
  return el("li", {}, el(
    "button", { "aria-current": card.id === state.chosen ? "true" : null, "data-name": card.id, onclick: () => choose(card), title: card.status.watch },
    el("strong", {}, card.name), " ", el("span", { class: "small quiet" }, card.status.kind),
    el("span", { class: "brief" }, badge(card.health.level), ` ${card.health.sentence}`),
    extent(card) ? el("span", { class: "brief quiet" }, extent(card)) : null,
    now ? bar(now) : null,
  ));
}

function unreadable(folder, why) {
  return el("li", { class: "broken", title: why }, el("strong", {}, folder.split("/").slice(-2).join("/")), el("span", { class: "small" }, badge("needs_you"), ` ${why}`));
}

// How far it is, in its own words.
function extent(card) {
  const told = card.status.summary.find(([name]) => name === "jobs" || name === "experiment");
  return told ? told.join(" ") : "";
}

function badge(level) {
  return el("span", { class: `badge ${level}` }, WORDS[level] ?? level);
}

// -- one watch

function choose(card, tab = state.tab) {
  state.source?.close();
  Object.assign(state, { chosen: card.id, card, panel: null });
  for (const button of place("watches").querySelectorAll("button")) {
    if (button.dataset.name === card.id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  place("watch").replaceChildren(
    el("h2", {}, card.name), el("p", { class: "small quiet path" }, card.status.watch),
    el("div", { id: "told", "aria-live": "polite" }), el("div", { id: "controls", class: "controls" }),
    el("div", { id: "steps", role: "group", "aria-label": "What runs now" }), el("dl", { id: "facts" }),
    el("div", { id: "tabs", class: "tabs", role: "tablist", "aria-label": "Views" }),
    el("section", { id: "panel", role: "tabpanel", tabindex: "0" }),
  );
  draw(card);
  show(panels(card.status.kind).some(({ id }) => id === tab) ? tab : "work");
  follow(card);
}

function follow(card) {
  const source = new EventSource(`/api/watches/${card.id}/stream?after=${card.status.events}`);
  state.source = source;
  source.addEventListener("card", (message) => {
    state.card = JSON.parse(message.data);
    state.watches = state.watches.map((one) => (one.id === state.chosen ? state.card : one));
    place("link").textContent = "live";
    drawList();
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

// What takes long to read is read again less often.
let refreshing = null, took = 0;
function refreshSoon() {
  refreshing ??= setTimeout(async () => {
    const began = performance.now();
    await state.panel?.refresh?.();
    took = performance.now() - began;
    refreshing = null;
  }, Math.max(BOARD_MS, 5 * took));
}

function draw(card) {
  const seen = card.status;
  document.title = `${card.name}: ${WORDS[card.health.level]}`;
  keep(place("told"), card.health, () => [
    el("p", { class: `said ${card.health.level}` }, badge(card.health.level), ` ${card.health.sentence}`),
    card.health.command ? el("p", { class: "small" }, "In its folder: ", el("code", {}, card.health.command)) : null,
  ]);
  keep(place("controls"), [seen.phase, seen.desired, seen.pending_requests], () => controls(card));
  keep(place("steps"), seen.steps, () => seen.steps.map(running));
  keep(place("facts"), facts(seen), () => facts(seen).map(([name, value]) => el("div", { class: value.length > 18 ? "wide" : null }, el("dt", {}, name), el("dd", { title: value }, value))));
}

function facts(seen) {
  const wish = seen.desired === "run" || seen.phase.startsWith(seen.desired) ? [] : [["wished", seen.desired]];
  const asked = seen.pending_requests.length ? [["asked for", seen.pending_requests.join(", ")]] : [];
  const wait = seen.next_retry_at ? [["next try", moment(seen.next_retry_at, seen.zone)]] : [];
  // Why jobs are blocked stands with the jobs.
  const rows = seen.summary.filter(([name]) => !name.startsWith("blocked: "));
  return [["phase", seen.phase.replaceAll("_", " ")], ...wish, ...asked, ...wait, ...rows, ["active", duration(seen.active_s)], ["supervisor", supervisor(seen.supervisor)]];
}

function supervisor(by) {
  if (!by) return "none so far";
  return by.alive ? `process ${by.pid} on ${by.host}` : `none; the last was process ${by.pid} on ${by.host}`;
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

const LOOK = new Set(["blocked", "needs_reconcile"]);
const PAUSED = new Set(["paused", "pausing"]), STOPPED = new Set(["stopped", "stopping"]), GOING = new Set(["running", "idle"]);

function controls({ id, name: watch, status: { phase, desired, pending_requests: pending } }) {
  const looked = LOOK.has(phase);
  const held = desired !== "run" || pending.length > 0;
  const buttons = [
    ["Pause", "pause", {}, "What runs now is ended in good order; a running attempt does not count.", !looked && !PAUSED.has(phase)],
    ["Pause after this step", "pause", { after_step: true }, "What runs now may finish first.", phase === "running"],
    looked
      ? ["I looked: go on", "resume", { accept: true }, "This says that you looked at why it stopped. Blocked jobs are tried again.", true]
      : ["Resume", "resume", {}, "It goes on. Waits are over.", held || !GOING.has(phase)],
    ["Stop", "stop", {}, "Children are ended, the state is saved, and the supervisor ends.", !STOPPED.has(phase)],
  ];
  const shown = buttons.filter(([, , , , fits]) => fits);
  return shown.map(([name, verb, more, told]) => el("button", { "data-name": name, onclick: () => ask({ id, watch }, name, verb, more, told) }, name));
}

async function ask({ id, watch }, name, verb, more, told) {
  place("question").textContent = `${name}: ${watch}?`;
  place("consequence").textContent = told;
  const dialog = place("confirm");
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  if (dialog.returnValue !== "yes") return;
  dialog.returnValue = "";
  try {
    place("link").textContent = await wish(id, verb, more);
  } catch (error) {
    place("link").textContent = error.message;
  }
}

// -- views

function show(name) {
  state.tab = name;
  remember();
  const tabs = panels(state.card.status.kind).map(({ id, title }) => el("button", {
    id: `tab-${id}`, role: "tab", "aria-selected": id === name, "aria-controls": "panel", tabindex: id === name ? 0 : -1,
    onclick: () => show(id), onkeydown: step,
  }, title));
  place("tabs").replaceChildren(...tabs);
  const panel = place("panel");
  panel.setAttribute("aria-labelledby", `tab-${name}`);
  // A view of its own each time: one that is left behind may still wait for its answer, and draws where nobody looks.
  const view = el("div", {}, el("p", { class: "quiet" }, "Looking."));
  panel.replaceChildren(view);
  state.panel = panels(state.card.status.kind).find(({ id }) => id === name).make(view, state.card);
}

function step(event) {
  const names = panels(state.card.status.kind).map(({ id }) => id);
  const at = names.indexOf(state.tab);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = names.at(to % names.length);
  show(next);
  place(`tab-${next}`).focus();
}

addEventListener("hashchange", () => {
  const { watch, tab } = here();
  const card = state.watches.find(({ id }) => id === watch);
  if (card && (watch !== state.chosen || tab !== state.tab)) choose(card, tab);
});
list();
setInterval(list, LISTING_MS);
