// The views of one watch. Each is made once and told of news: `event(one, card)` at once, `refresh()` soon after.

import { read } from "./asking.js";
import { lines } from "./charts.js";
import { clock, duration, el, folded, keep, moment, table, there } from "./dom.js";

export function panels(kind) {
  return [
    { id: "work", title: kind === "learn" ? "Experiments" : "Jobs", make: kind === "learn" ? experiments : jobs },
    { id: "events", title: "Events", make: events },
    { id: "time", title: "Time", make: time },
    { id: "receipts", title: "Receipts", make: receipts },
    { id: "logs", title: "Logs", make: logs },
  ];
}

// Draw what is read, again at each refresh if it changed; trouble is said where the picture would be.
function drawn(panel, look, draw) {
  const refresh = async () => {
    try {
      const seen = await look();
      keep(panel, seen, () => draw(seen));
    } catch (error) {
      keep(panel, error.message, () => el("p", { class: "bad" }, error.message));
    }
  };
  refresh();
  return { refresh };
}

const path = (card, rest) => `/api/watches/${card.id}/${rest}`;

// -- migrate

const spoken = (standing) => standing.replaceAll("_", " ");

function jobs(panel, card) {
  let only = "";
  const view = drawn(panel, async () => ({ board: await read(path(card, "board")), only }), ({ board }) => {
    // What a person looks for comes first.
    const standing = ["blocked", ...new Set(board.jobs.map(({ status }) => status))];
    const counted = standing.map((status) => [status, board.jobs.filter((job) => job.status === status).length]);
    const counts = new Map(counted.filter(([, count]) => count > 0));
    if (!counts.has(only)) only = "";
    const choose = (status) => { only = only === status ? "" : status; return view.refresh(); };
    const chosen = (status, title) => el("button", { "data-name": `only ${status}`, "aria-pressed": String(only === status), class: status, onclick: () => choose(status) }, title);
    const rows = board.jobs.filter((job) => !only || job.status === only).map((job) => [
      el("span", {}, el("strong", {}, job.title), el("br"), el("span", { class: "small quiet" }, job.id + (job.after.length ? `, after ${job.after.join(", ")}` : ""))),
      el("span", { class: job.status }, spoken(job.status)),
      String(job.starts || ""), there([reason(job), tries(card, job)]), change(card, job),
    ]);
    return [
      el("p", {}, `${board.jobs.length === 1 ? "1 job" : `${board.jobs.length || "No"} jobs`}${board.jobs.length ? "" : " yet"}. `, el("span", { class: "quiet" }, cost(board))),
      share([...counts].map(([status, count]) => ({ name: spoken(status), value: count, kind: status })), { captioned: counts.size < 2 }),
      counts.size > 1 ? el("div", { class: "controls", role: "group", "aria-label": "Which jobs are shown" }, chosen("", "all"), [...counts].map(([status, count]) => chosen(status, `${spoken(status)} ${count}`))) : null,
      board.task ? el("p", {}, `Task ${board.task}`) : null,
      rows.length ? table("The queue, in its order", [["job"], ["standing", "tight"], ["starts", "number"], ["why"], ["change", "tight"]], rows, { stacks: true }) : null,
    ];
  });
  return view;
}

function cost(board) {
  const of = (limit, said) => (limit ? ` of ${said(limit)}` : "");
  const tokens = (count) => count.toLocaleString("en"), usd = (amount) => amount.toFixed(2);
  if (!board.tokens && !board.usd && !board.tokens_limit && !board.usd_limit) return "";
  return `${tokens(board.tokens)}${of(board.tokens_limit, tokens)} tokens, ${usd(board.usd)}${of(board.usd_limit, usd)} USD`;
}

function reason(job) {
  if (!job.failure) return null;
  const [first, ...rest] = job.failure.split("\n");
  if (first.length < 120 && rest.length === 0) return el("div", {}, first);
  return folded(`why ${job.id}`, `${first.slice(0, 120)}...`, () => el("pre", { tabindex: "0" }, job.failure));
}

// What became of each start that did not lead to the change, newest first.
function tries(card, job) {
  if (job.starts < 2) return null;
  return folded(`tries ${job.id}`, "earlier starts", async () => {
    const query = new URLSearchParams({ kind: "attempt.", text: `${job.id}: `, limit: 100 });
    const { events: told } = await read(path(card, `events?${query}`));
    const mine = told.filter(({ kind, data }) => data.job === job.id && /^attempt\.(refused|lost|salvaged|blocked)/.test(kind));
    return mine.length ? el("ul", {}, mine.map((one) => el("li", {}, one.text))) : "Nothing of them is in the newest events.";
  });
}

function change(card, job) {
  if (!job.commit) return "";
  return folded(`change ${job.id}`, job.commit.slice(0, 10), async () => {
    const patch = await read(path(card, `patches/${encodeURIComponent(job.id)}`));
    const text = patch.text + (patch.cut ? `\n... the rest: git show ${patch.commit}` : "");
    return [el("pre", { tabindex: "0" }, text), ...(await checksOf(card, job))];
  });
}

// What the checks printed that ran on the change itself, newest attempt first.
async function checksOf(card, job) {
  const logs = await read(path(card, `logs?${new URLSearchParams({ of: `attempts/${job.id}.` })}`));
  const mine = logs.filter(({ name }) => name.startsWith(`attempts/${job.id}.`) && /\/verify\/candidate\/[^/]+\/log\.txt$/.test(name));
  return mine.map(({ name }) => {
    const [, attempt, , , check] = name.split("/");
    return folded(name, `check ${check} of ${attempt}`, async () => {
      const seen = await read(path(card, `log?${new URLSearchParams({ name })}`));
      return el("pre", { tabindex: "0" }, seen.head + (seen.left_out ? "\n...\n" : "") + seen.tail || "It printed nothing.");
    });
  });
}

// One bar, divided: what is there of the whole.
function share(parts, { captioned = true } = {}) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  if (!whole) return null;
  const told = parts.map((part) => `${part.name} ${Math.round((100 * part.value) / whole)} %`).join(", ");
  const bar = el("div", { class: "stack", role: "img", "aria-label": told });
  parts.forEach((part, at) => {
    const piece = el("span", { class: part.kind, title: `${part.name}: ${part.told ?? part.value}` });
    piece.style.flexGrow = part.value / whole;
    piece.style.background = part.kind ? "currentColor" : colour(at);
    bar.append(piece);
  });
  return el("figure", {}, bar, captioned ? el("figcaption", {}, told) : null);
}

const colour = (at) => `hsl(${175 + at * 41} 35% ${45 + (at % 2) * 12}%)`;

function swatch(at) {
  const sign = el("span", { class: "swatch", "aria-hidden": "true" });
  sign.style.background = colour(at);
  return sign;
}

// -- learn

function experiments(panel, card) {
  const look = async () => ({
    board: await read(path(card, "board")),
    blocks: (await read(path(card, "events?kind=block.confirmed&limit=500"))).events.reverse(),
  });
  return drawn(panel, look, ({ board, blocks }) => [
    el("div", { class: "figures" }, ...there([
      figure("Development tasks passed, round by round", "The solid line is the round's adapter, dashed the champion before it, dotted base. They nominate and decide nothing.", passed(board.rounds)),
      figure("Loss at the end of each round", "", loss(board.rounds)),
      ...evidence(blocks),
    ])),
    el("p", {}, `Alpha-wealth left: ${board.alpha_wealth.toPrecision(3)}; the next confirmation has alpha ${board.next_alpha.toPrecision(3)}.`),
    table("Experiments, newest first", [["number", "number"], ["decision", "tight"], ["in words"]], board.experiments.toReversed().map((one) => [
      String(one.number), el("span", { class: one.receipt ? "ok" : null }, one.running ? `now: ${one.decision}` : one.decision), sentences(one),
    ]), { stacks: true }),
    board.scores.length ? table("Audits: they only report", [["language"], ["base"], ["champion"], ["tasks", "number"]], board.scores.toReversed().map((one) => [
      one.language, ...(one.void ? [`void: ${one.void}`, ""] : [rate(one.base, one.base_low, one.base_high, one.total), rate(one.champion, one.champion_low, one.champion_high, one.total)]), String(one.total),
    ]), { stacks: true }) : null,
  ]);
}

function sentences(one) {
  const [first = "", ...rest] = one.sentences;
  const more = () => el("ul", {}, rest.map((sentence) => el("li", {}, sentence)));
  return rest.length ? [el("div", {}, first), folded(`why ${one.number}`, `${rest.length} more`, more)] : first;
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
  let reached = null, newest = 0, asked = 0;

  const fits = ({ kind: name, text: said, data }) => name.startsWith(kind.value) && JSON.stringify({ said, data }).toLowerCase().includes(text.value.toLowerCase());

  // Each answer looks through a stretch of the log, so that one for rare words does not take long; they are asked for until
  // enough is found.
  async function older() {
    const mine = ++asked;
    let missing = 100;
    more.hidden = true;
    try {
      while (missing > 0 && reached !== 1) {
        const query = new URLSearchParams({ kind: kind.value, text: text.value, limit: missing });
        if (reached !== null) query.set("before", reached);
        const page = await read(path(card, `events?${query}`));
        if (mine !== asked) return;
        // What came by the stream meanwhile is in the first answer, too.
        if (reached === null) shown.replaceChildren();
        if (reached === null) newest = page.events[0]?.seq ?? 0;
        shown.append(...page.events.map((one) => line(one, card)));
        reached = page.more ? page.reached : 1;
        missing -= page.events.length;
        told.textContent = missing > 0 && page.more ? `Searching; back to event ${reached.toLocaleString("en")} so far.` : "";
      }
      more.hidden = reached === 1;
      told.textContent = shown.children.length ? "" : "No event fits.";
    } catch (error) {
      told.textContent = error.message;
    }
  }
  let soon = null;
  const again = () => { clearTimeout(soon); asked++; soon = setTimeout(() => { reached = null; shown.replaceChildren(); older(); }, 200); };
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
    if (shown.children.length <= 1000) return;
    shown.lastElementChild.remove();
    reached = Number(shown.lastElementChild.dataset.seq);
    more.hidden = false;
  } };
}

function line(one, card) {
  const zone = card.status.zone;
  return el("li", { "data-seq": one.seq }, el("time", { datetime: one.at, title: moment(one.at, zone) }, clock(one.at, zone)), el("span", { class: "kind" }, one.kind), el("span", { class: "text" }, one.text));
}

// -- time

function time(panel, card) {
  return drawn(panel, () => read(path(card, "timings")), (seen) => {
    if (!seen.since) return el("p", { class: "quiet" }, "No supervisor has run yet: there is nothing to measure.");
    const whole = seen.table.wall_s;
    const rest = { phase: "not measured", covered_s: seen.table.unaccounted_s, share: whole ? seen.table.unaccounted_s / whole : 0 };
    const parts = [...seen.purposes, rest].filter((one) => one.covered_s > 0);
    const traces = seen.traces.toReversed().slice(0, 200);
    return [
      el("p", {}, `${duration(whole)} since the watch began.`),
      share(parts.map((one) => ({ name: one.phase, value: one.covered_s, told: duration(one.covered_s) })), { captioned: false }),
      table("By what it was for", [["for"], ["time", "number"], ["share", "number"], ["times", "number"], ["longest", "number"]], parts.map((one, at) => [
        [swatch(at), one.phase], duration(one.covered_s), percent(one.share), one.count === undefined ? "" : one.count.toLocaleString("en"), duration(one.max_s),
      ])),
      traces.length ? table("Attempts, newest first", [["attempt"], ["active", "number"], ["first action", "number"], ["phases"]], traces.map((one) => [
        one.attempt, duration(one.active_s), duration(one.first_action_s), one.phases.map(({ phase, seconds }) => `${phase} ${duration(seconds)}`).join(", "),
      ]), { stacks: true }) : null,
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
        ]), { stacks: true }),
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
  const chosen = el("p", { class: "small quiet", role: "status" });
  const names = el("div", {});
  async function look(name) {
    try {
      const seen = await read(path(card, `log?${new URLSearchParams({ name })}`));
      const gap = seen.left_out ? `\n\n... ${seen.left_out.toLocaleString("en")} bytes are left out here ...\n\n` : "";
      text.textContent = `${seen.head}${gap}${seen.tail}` || "It is empty.";
      chosen.textContent = `${name}, ${seen.size.toLocaleString("en")} bytes`;
      chosen.scrollIntoView({ block: "nearest" });
    } catch (error) {
      text.textContent = error.message;
    }
  }
  const of = el("input", { type: "search", size: 24, placeholder: "a job, worker.log, checks" });
  async function listed() {
    try {
      const found = await read(path(card, `logs?${new URLSearchParams({ of: of.value })}`));
      if (!found.length) return names.replaceChildren(el("p", { class: "quiet" }, of.value ? "No log has such a name." : "No program has printed anything yet."));
      return names.replaceChildren(table("Newest first", [["log"], ["bytes", "number"], ["written", "number"]], found.map((one) => [
        el("button", { class: "plain", onclick: () => look(one.name) }, one.name), one.size.toLocaleString("en"), clock(one.at, card.status.zone),
      ])));
    } catch (error) {
      return names.replaceChildren(el("p", { class: "bad" }, error.message));
    }
  }
  let soon = null;
  of.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(listed, 200); });
  panel.replaceChildren(el("div", { class: "filters" }, el("label", {}, "Name contains", of)), chosen, text, names);
  listed();
  return {};
}
