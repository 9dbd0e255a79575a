// The views of one watch. Each is made once and told of news: `event(one, card)` at once, `refresh(card)` soon after.

import { read } from "./asking.js";
import { lines } from "./charts.js";
import { clock, duration, el, moment, table, there } from "./dom.js";

export function panels(kind) {
  return [
    { id: "work", title: kind === "learn" ? "Experiments" : "Jobs", make: kind === "learn" ? experiments : jobs },
    { id: "events", title: "Events", make: events },
    { id: "time", title: "Time", make: time },
    { id: "receipts", title: "Receipts", make: receipts },
    { id: "logs", title: "Logs", make: logs },
  ];
}

// Draw what `look` brings, again at each refresh; trouble is said where the picture would be.
function drawn(panel, card, look) {
  const refresh = async () => {
    try {
      panel.replaceChildren(...there(await look()));
    } catch (error) {
      panel.replaceChildren(el("p", { class: "bad" }, error.message));
    }
  };
  refresh();
  return { refresh };
}

const path = (card, rest) => `/api/watches/${card.id}/${rest}`;

// -- migrate

function jobs(panel, card) {
  const open = new Set();
  return drawn(panel, card, async () => {
    const board = await read(path(card, "board"));
    const counts = new Map();
    for (const job of board.jobs) counts.set(job.status, (counts.get(job.status) ?? 0) + 1);
    const rows = board.jobs.map((job) => [
      el("span", {}, el("strong", {}, job.title), el("br"), el("span", { class: "small quiet" }, job.id + (job.after.length ? `, after ${job.after.join(", ")}` : ""))),
      el("span", { class: job.status }, job.status.replace("_", " ")),
      String(job.starts || ""), reason(job), change(card, job, open),
    ]);
    const cost = `${board.tokens.toLocaleString("en")} tokens${board.tokens_limit ? ` of ${board.tokens_limit.toLocaleString("en")}` : ""}, ${board.usd.toFixed(2)} USD${board.usd_limit ? ` of ${board.usd_limit.toFixed(2)}` : ""}`;
    const told = [...counts].map(([status, count]) => `${count} ${status.replace("_", " ")}`).join(", ");
    return [
      el("p", {}, `${board.jobs.length} jobs: ${told || "none yet"}. `, el("span", { class: "quiet" }, cost)),
      share([...counts].map(([status, count]) => ({ name: status.replace("_", " "), value: count, kind: status }))),
      board.task ? el("p", {}, `Task ${board.task}`) : null,
      table("The queue, in its order", [["job"], ["standing"], ["starts", "number"], ["why"], ["change"]], rows),
    ];
  });
}

function reason(job) {
  if (!job.failure) return "";
  const [first, ...rest] = job.failure.split("\n");
  if (first.length < 120 && rest.length === 0) return first;
  return el("details", {}, el("summary", {}, first.slice(0, 120)), el("pre", {}, job.failure));
}

function change(card, job, open) {
  if (!job.commit) return "";
  const text = el("pre", { tabindex: "0" });
  const checks = el("div", {});
  const details = el("details", { open: open.has(job.id) }, el("summary", {}, job.commit.slice(0, 10)), text, checks);
  const load = async () => {
    try {
      const patch = await read(path(card, `patches/${encodeURIComponent(job.id)}`));
      text.textContent = patch.text + (patch.cut ? "\n... the rest: git show " + patch.commit : "");
      checks.replaceChildren(...(await checksOf(card, job)));
    } catch (error) {
      text.textContent = error.message;
    }
  };
  details.addEventListener("toggle", () => {
    if (!details.open) return open.delete(job.id);
    open.add(job.id);
    return load();
  });
  return details;
}

// What the checks printed that ran on the change itself, newest attempt first.
async function checksOf(card, job) {
  const logs = await read(path(card, `logs?${new URLSearchParams({ of: `attempts/${job.id}.` })}`));
  const mine = logs.filter(({ name }) => name.startsWith(`attempts/${job.id}.`) && /\/verify\/candidate\/[^/]+\/log\.txt$/.test(name));
  return mine.map(({ name }) => {
    const [, attempt, , , check] = name.split("/");
    const text = el("pre", { tabindex: "0" });
    const details = el("details", {}, el("summary", {}, `check ${check} of ${attempt}`), text);
    details.addEventListener("toggle", async () => {
      if (!details.open) return;
      const seen = await read(path(card, `log?${new URLSearchParams({ name })}`));
      text.textContent = seen.head + (seen.left_out ? "\n...\n" : "") + seen.tail || "It printed nothing.";
    });
    return details;
  });
}

// One bar, divided: what is there of the whole.
function share(parts) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  if (!whole) return null;
  const told = parts.map((part) => `${part.name} ${Math.round((100 * part.value) / whole)} %`).join(", ");
  const bar = el("div", { class: "stack", role: "img", "aria-label": told });
  parts.forEach((part, at) => {
    const piece = el("span", { class: part.kind, title: `${part.name}: ${part.told ?? part.value}` });
    piece.style.flexGrow = part.value / whole;
    piece.style.background = part.kind ? "currentColor" : `hsl(${175 + at * 41} 35% ${45 + (at % 2) * 12}%)`;
    bar.append(piece);
  });
  return el("figure", {}, bar, el("figcaption", {}, told));
}

// -- learn

function experiments(panel, card) {
  return drawn(panel, card, async () => {
    const board = await read(path(card, "board"));
    const blocks = (await read(path(card, "events?kind=block.confirmed&limit=500"))).events.reverse();
    return [
      figure("Development tasks passed, round by round", "The solid line is the round's adapter, dashed the champion before it, dotted base. They nominate and decide nothing.", passed(board.rounds)),
      ...evidence(blocks),
      figure("Loss at the end of each round", "", loss(board.rounds)),
      el("p", {}, `Alpha-wealth left: ${board.alpha_wealth.toPrecision(3)}; the next confirmation has alpha ${board.next_alpha.toPrecision(3)}.`),
      table("Experiments, newest first", [["number", "number"], ["decision"], ["in words"]], board.experiments.toReversed().map((one) => [
        String(one.number), one.running ? `now: ${one.decision}` : one.decision, one.sentences.join(" "),
      ])),
      board.scores.length ? table("Audits: they only report", [["language"], ["base"], ["champion"], ["tasks", "number"]], board.scores.toReversed().map((one) => [
        one.language, ...(one.void ? [`void: ${one.void}`, ""] : [rate(one.base, one.base_low, one.base_high, one.total), rate(one.champion, one.champion_low, one.champion_high, one.total)]), String(one.total),
      ])) : null,
    ];
  });
}

const percent = (value) => `${(100 * value).toFixed(1)} %`;
const rate = (passed, low, high, total) => `${percent(passed / total)} (95 %: ${percent(low)} to ${percent(high)})`;

function figure(title, told, chart) {
  return chart ? el("figure", {}, el("h3", {}, title), chart, el("figcaption", {}, told)) : null;
}

function passed(rounds) {
  const points = (value) => rounds.map((one, at) => [at + 1, (100 * value(one)) / (one.asked || 1)]);
  return lines(`Percent of development tasks passed in ${rounds.length} rounds`, [
    { kind: "first", points: points((one) => one.passed) },
    { kind: "second", points: rounds.map((one, at) => [at + 1, (100 * one.champion) / (one.total || 1)]) },
    { kind: "third", points: rounds.map((one, at) => [at + 1, (100 * one.base) / (one.total || 1)]) },
  ], { xName: "round" });
}

// One path for each of the newest confirmations.
function evidence(blocks) {
  const told = blocks.filter(({ data }) => data.evidence !== undefined);
  const numbers = [...new Set(told.map(({ data }) => data.experiment))].slice(-5);
  return numbers.toReversed().map((number) => {
    const mine = told.filter(({ data }) => data.experiment === number);
    const needed = mine.at(-1).data.needed;
    const points = [[0, 1], ...mine.map(({ data }) => [data.judged, data.evidence])];
    const chart = lines(`Evidence of experiment ${number} after each block, ${needed.toPrecision(3)} needed`, [{ kind: "first", points }], { limit: needed, log: true, xName: "problems" });
    return figure(`Evidence of experiment ${number}, by fresh problems`, `It accepts above the red line, at ${needed.toPrecision(3)}: one over alpha. The scale is logarithmic.`, chart);
  });
}

function loss(rounds) {
  return lines("Training loss at the end of each round", [{ kind: "first", points: rounds.map((one, at) => [at + 1, one.loss_last]) }], { xName: "round" });
}

// -- events

function events(panel, card) {
  const shown = el("ol", { class: "events", tabindex: "0", "aria-label": "Events, newest first" });
  const kind = el("input", { type: "search", placeholder: "job.", size: 14 });
  const text = el("input", { type: "search", placeholder: "any words", size: 18 });
  const more = el("button", { onclick: () => older() }, "Older");
  const told = el("p", { class: "small quiet", role: "status" });
  let oldest = null, newest = 0, asked = 0;

  const fits = (one) => one.kind.startsWith(kind.value) && JSON.stringify(one).toLowerCase().includes(text.value.toLowerCase());
  async function older() {
    const mine = ++asked;
    const query = new URLSearchParams({ kind: kind.value, text: text.value, limit: 100 });
    if (oldest !== null) query.set("before", oldest);
    try {
      const page = await read(path(card, `events?${query}`));
      if (mine !== asked) return;
      if (oldest === null) {
        // What came by the stream meanwhile is in this answer, too.
        shown.replaceChildren();
        newest = page.events[0]?.seq ?? 0;
      }
      shown.append(...page.events.map((one) => line(one, card)));
      oldest = page.events.at(-1)?.seq ?? oldest;
      more.hidden = !page.more;
      told.textContent = shown.children.length ? "" : "No event fits.";
    } catch (error) {
      told.textContent = error.message;
    }
  }
  let soon = null;
  const again = () => { clearTimeout(soon); soon = setTimeout(() => { oldest = null; shown.replaceChildren(); older(); }, 200); };
  kind.addEventListener("input", again);
  text.addEventListener("input", again);
  panel.replaceChildren(
    el("div", { class: "filters" }, el("label", {}, "Kind begins with", kind), el("label", {}, "Contains", text)), told, shown, more,
  );
  older();
  return { event: (one) => {
    if (!fits(one) || one.seq <= newest) return;
    newest = one.seq;
    shown.prepend(line(one, card));
    // What is far below is asked for again by "Older"; the page stays light for days.
    while (shown.children.length > 1000) shown.lastElementChild.remove();
    oldest = Number(shown.lastElementChild.dataset.seq);
  } };
}

function line(one, card) {
  const zone = card.status.zone;
  return el("li", { "data-seq": one.seq }, el("time", { datetime: one.at, title: moment(one.at, zone) }, clock(one.at, zone)), el("span", { class: "kind" }, one.kind), el("span", { class: "text" }, one.text));
}

// -- time

function time(panel, card) {
  return drawn(panel, card, async () => {
    const seen = await read(path(card, "timings"));
    const rest = { phase: "not measured", covered_s: seen.table.unaccounted_s };
    const parts = [...seen.purposes, rest].map((one) => ({ name: one.phase, value: one.covered_s, told: duration(one.covered_s) }));
    return [
      el("p", {}, `${duration(seen.table.wall_s)} since the watch began.`),
      share(parts.filter((part) => part.value > 0)),
      table("By what it was for", [["for"], ["time", "number"], ["share", "number"], ["times", "number"], ["longest", "number"]], seen.purposes.map((one) => [
        one.phase, duration(one.covered_s), percent(one.share), String(one.count), duration(one.max_s),
      ])),
      seen.traces.length ? table("Attempts, newest first", [["attempt"], ["active", "number"], ["first action", "number"], ["phases"]], seen.traces.toReversed().slice(0, 200).map((one) => [
        one.attempt, duration(one.active_s), duration(one.first_action_s), one.phases.map(({ phase, seconds }) => `${phase} ${duration(seconds)}`).join(", "),
      ])) : null,
    ];
  });
}

// -- receipts

function receipts(panel, card) {
  const answer = el("div", {});
  const button = el("button", { class: "strong", onclick: () => look() }, "Verify everything now");
  async function look() {
    button.disabled = true;
    answer.replaceChildren(el("p", { class: "quiet", role: "status" }, "Signatures, subjects, evidence and the event log are checked."));
    try {
      const seen = await read(path(card, "verification"));
      const wrong = seen.receipts.filter((one) => one.answer !== "ok");
      const chain = seen.chain.answer === "ok";
      answer.replaceChildren(...there([
        el("p", { class: wrong.length || !chain ? "bad" : "ok", role: "status" }, wrong.length || !chain ? `${wrong.length} of ${seen.receipts.length} receipts do not hold; the event log ${chain ? "is whole" : "is broken"}.` : `${seen.receipts.length} receipts and the event log hold.`),
        chain ? null : el("p", { class: "bad" }, seen.chain.detail),
        table("Receipts", [["answer"], ["about"], ["receipt"], ["detail"]], [...wrong, ...seen.receipts.filter((one) => one.answer === "ok")].map((one) => [
          el("span", { class: one.answer === "ok" ? "ok" : "bad" }, one.answer), one.about, el("code", { title: one.receipt }, one.receipt.slice(0, 16)), one.detail,
        ])),
      ]));
    } catch (error) {
      answer.replaceChildren(el("p", { class: "bad" }, error.message));
    }
    button.disabled = false;
  }
  panel.replaceChildren(el("p", {}, "Each accepted change and each check that passed has a signed receipt. ", el("code", {}, "longwatch verify"), " does the same offline."), button, answer);
  return {};
}

// -- logs

function logs(panel, card) {
  const text = el("pre", { tabindex: "0", "aria-label": "The log" }, "Choose one.");
  const names = el("div", {});
  async function look(name) {
    try {
      const seen = await read(path(card, `log?${new URLSearchParams({ name })}`));
      const gap = seen.left_out ? `\n\n... ${seen.left_out.toLocaleString("en")} bytes are left out here ...\n\n` : "";
      text.textContent = `${seen.head}${gap}${seen.tail}` || "It is empty.";
    } catch (error) {
      text.textContent = error.message;
    }
  }
  const of = el("input", { type: "search", size: 24, placeholder: "a job, worker.log, checks" });
  async function listed() {
    try {
      const found = await read(path(card, `logs?${new URLSearchParams({ of: of.value })}`));
      names.replaceChildren(table("Newest first", [["log"], ["bytes", "number"], ["written", "number"]], found.map((one) => [
        el("button", { onclick: () => look(one.name) }, one.name), one.size.toLocaleString("en"), clock(one.at, card.status.zone),
      ])));
    } catch (error) {
      names.replaceChildren(el("p", { class: "bad" }, error.message));
    }
  }
  let soon = null;
  of.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(listed, 200); });
  panel.replaceChildren(el("div", { class: "filters" }, el("label", {}, "Name contains", of)), text, names);
  listed();
  return {};
}
