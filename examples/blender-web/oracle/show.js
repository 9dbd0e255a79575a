// The harness: shows every case of every ported operator in Chromium, holds it against Blender, and leaves the receipts.
//
// Longwatch names the folder of the receipts and the word of this run. Without them the cases are shown all the same.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askBlender } from "./blender.js";
import { Application, launch, offered } from "./browser.js";
import { aligned, canonical, difference, sha256 } from "./canonical.js";
import { casesOf } from "./cases.js";

const FOLDER = process.env.LONGWATCH_RECEIPTS ?? mkdtempSync(join(tmpdir(), "receipts-"));
const WORD = process.env.LONGWATCH_RUN ?? "by hand";

/** By kind of case: what is observed in the browser after the operator ran. */
const OBSERVED = {
  positive: async (_, shown) => ({
    before: shown.before,
    after: shown.after,
    expected: canonical(shown.blender.after),
    actual: shown.actual,
  }),
  negative: async (_, shown) => ({ before: shown.before, after: shown.after }),
  undo_redo: async (application, shown) => {
    await application.undo();
    const undo = canonical(await application.main());
    await application.redo();
    return { before: shown.before, after: shown.after, undo, redo: canonical(await application.main()) };
  },
  save_reopen: async (application, shown) => {
    const text = await application.save();
    await shown.restart();
    await application.load(text);
    return { saved: shown.after, reopened: canonical(await application.main()) };
  },
  determinism: async (application, shown) => {
    await shown.restart();
    await application.run(shown.one.properties);
    return { first: shown.after, second: canonical(await application.main()) };
  },
};

/** By kind of case: what Blender itself shows, besides what is expected of the port. */
const NATIVE = {
  undo_redo: (answer) => ({
    before: canonical(answer.before),
    after: canonical(answer.after),
    undo: canonical(answer.undo),
    redo: canonical(answer.redo),
  }),
  save_reopen: (answer) => ({ saved: canonical(answer.after), reopened: canonical(answer.reopened) }),
  determinism: (answer) => ({ first: canonical(answer.after), second: canonical(answer.again) }),
};

async function main() {
  const browser = await launch();
  const failed = [];
  try {
    const routes = new Map((await offered(browser)).map((one) => [one.unit, one.route]));
    const cases = [...routes.keys()].flatMap((unit) => casesOf(unit, WORD));
    const answers = cases.length > 0 ? askBlender(cases) : new Map();
    const application = new Application(await browser.newPage());
    for (const one of cases) {
      const blender = answers.get(one.case);
      const fault = await show(application, routes.get(one.unit), one, blender);
      if (NATIVE[one.kind]) {
        receipt(one, "BLENDER_NATIVE", `${one.case}-native`, NATIVE[one.kind](blender), true);
      }
      failed.push(...(fault ? [one.case] : []));
      console.log(
        `${fault ? "failed" : "passed"} ${one.case} ${JSON.stringify(one.properties)}${fault && `\n  ${fault}`}`,
      );
    }
    console.log(`${cases.length - failed.length} of ${cases.length} cases passed`);
  } finally {
    await browser.close();
  }
  process.exitCode = failed.length > 0 ? 1 : 0;
}

/** Show one case in Chromium, and return what is wrong with it. */
async function show(application, route, one, blender) {
  const restart = () => application.start(route, blender.before);
  await restart();
  const before = canonical(await application.main());
  const report = await application.run(one.properties);
  const main = await application.main();
  const actual = canonical(aligned(main, blender.after));
  const shown = { one, blender, restart, before, after: canonical(main), actual };
  const observations = await OBSERVED[one.kind](application, shown);
  const fault = wrong(one, blender, shown, report);
  receipt(one, "CHROMIUM_WEBENGINE", one.case, observations, !fault);
  return fault;
}

/** Whatever its kind, a case has failed if the port does not hold what Blender holds. */
function wrong(one, blender, shown, report) {
  if (shown.before !== canonical(blender.before)) {
    return `the port did not open the document as it is: ${first(shown.before, blender.before)}`;
  }
  if (shown.actual !== canonical(blender.after)) {
    return `${first(shown.actual, blender.after)} (the page says ${report}; Blender ${blender.outcome})`;
  }
  const idle = canonical(blender.before) === canonical(blender.after);
  return idle === (one.kind === "negative")
    ? ""
    : `Blender says ${blender.outcome}: the case is not of its kind`;
}

function first(text, state) {
  return difference(JSON.parse(text), JSON.parse(canonical(state)));
}

/** Leave a receipt, and beside it the states that it is about. */
function receipt(one, runtime, name, states, passed) {
  const artifacts = Object.entries(states).map(([label, text]) => {
    const path = `${name}.${label}.json`;
    writeFileSync(join(FOLDER, path), text);
    return { path, sha256: sha256(text) };
  });
  const observations = Object.fromEntries(
    Object.entries(states).map(([label, text]) => [label, sha256(text)]),
  );
  writeFileSync(
    join(FOLDER, `${name}.case.json`),
    JSON.stringify({
      nonce: WORD,
      case: name,
      kind: one.kind,
      status: passed ? "passed" : "failed",
      runtime,
      units: [one.unit],
      observations,
      artifacts,
    }),
  );
}

await main();
