// Asks Blender: one process for all cases of a run.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PYTHON = ".venv/bin/python";

/** Return what Blender's Main holds before and after each case, by the case's name. */
export function askBlender(cases) {
  const folder = mkdtempSync(join(tmpdir(), "blender-"));
  try {
    const path = join(folder, "answers.json");
    const asked = spawnSync(PYTHON, ["oracle/blender.py", path], {
      input: JSON.stringify(cases),
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
    if (asked.error || asked.status !== 0) {
      throw new Error(
        `Blender did not answer: ${asked.error?.message ?? `exit code ${asked.status}\n${asked.stderr}`}`,
      );
    }
    const answers = JSON.parse(readFileSync(path, "utf8"));
    return new Map(cases.map((one, at) => [one.case, answers[at]]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
