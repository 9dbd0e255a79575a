// The cases of each unit: what is entered where. What has to come of it stands nowhere; that is Blender's to say.

import { existsSync, readFileSync } from "node:fs";
import { sha256 } from "./canonical.js";

const SCENES = read("oracle/scenes.json");

/** Return the cases of a unit, with values drawn by the word of this run: nobody can know those beforehand. */
export function casesOf(unit, word) {
  const path = `oracle/cases/${unit}.json`;
  if (!existsSync(path)) {
    throw new Error(`the page has the operator ${unit}, and there is no ${path}`);
  }
  return read(path).map((one) => ({
    ...one,
    unit,
    scene: SCENES[one.scene],
    properties: Object.fromEntries(
      Object.entries(one.properties).map(([name, value]) => [
        name,
        drawn(value, `${word} ${one.case} ${name}`),
      ]),
    ),
  }));
}

function read(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

function drawn(value, seed) {
  if (value === null || typeof value !== "object" || !("draw" in value)) {
    return value;
  }
  const share = (part) => Number.parseInt(sha256(`${seed} ${part}`).slice(0, 8), 16) / 2 ** 32;
  const between = (part) => value.from + (value.to - value.from) * share(part);
  switch (value.draw) {
    case "int":
      return Math.floor(value.from + (value.to - value.from + 1) * share(0));
    case "float":
      return thousandths(between(0));
    case "vector":
      return [0, 1, 2].map((part) => thousandths(between(part)));
    case "one":
      return value.of[Math.floor(value.of.length * share(0))];
    default:
      throw new Error(`${value.draw} is no way to draw`);
  }
}

function thousandths(number) {
  return Math.round(number * 1000) / 1000;
}
