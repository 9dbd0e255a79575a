// Finishes a task: writes its evidence and manifest, and brings the inventory, the parity map and the queue forward.
//
// Longwatch runs this when all jobs of the task are verified, and proves what comes of it before it is committed.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const facts = read(process.env.LONGWATCH_HANDOFF);
const next = following(facts.task);

const inventory = read("migration/inventory.json");
const parity = read("migration/parity.json");
const artifacts = [];
for (const job of facts.jobs) {
  for (const unit of inventory.units.filter(({ id }) => job.units.includes(id))) {
    const path = `migration/evidence/${unit.id}.json`;
    write(path, { unit: unit.id, task: facts.task, ...job });
    unit.status = "verified";
    unit.evidence = [bound(path)];
    parity.ports.push({ unit: unit.id, files: job.paths });
  }
  artifacts.push(...job.paths.map((path) => ({ ...bound(path), kind: "port" })));
}
write("migration/inventory.json", inventory);
write("migration/parity.json", parity);
write(facts.manifest, {
  task: facts.task,
  status: "done",
  acceptance: acceptance(),
  artifacts,
  deferred: [],
  nextTask: next,
});
writeFileSync("migration/QUEUE.md", queue());

/** What was to be done, held against the backlog. */
function acceptance() {
  const covered = new Set(facts.jobs.flatMap((job) => job.units));
  return read(`migration/backlog/${facts.task}.json`).jobs.map((job) => ({
    criterion: `${job.title}: verified for ${job.units.join(", ")}.`,
    met: job.units.every((unit) => covered.has(unit)),
  }));
}

function following(task) {
  const { order } = read("migration/plan.json");
  if (!order.includes(task)) {
    throw new Error(`migration/plan.json has no task ${task}`);
  }
  return order[order.indexOf(task) + 1] ?? null;
}

function queue() {
  const card = next ? `migration/tasks/${next}.md` : "none";
  const head = "| Current task | Card | Parent manifest |\n| --- | --- | --- |";
  return `# Queue\n\n${head}\n| ${next ?? "none"} | ${card} | ${facts.manifest} |\n`;
}

function bound(path) {
  return { path, sha256: createHash("sha256").update(readFileSync(path)).digest("hex") };
}

function read(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

function write(path, value) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}
