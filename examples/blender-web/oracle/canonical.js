// The one form in which states of Blender and of the port are compared and digested.
//
// JSON without blanks, keys sorted. A number is rounded to single precision, which is what Blender stores, and written
// with the fewest digits that give it back; minus zero is zero.

import { createHash } from "node:crypto";

/** Six digits show whatever fewer would; nine are enough for every single. */
const DIGITS = { least: 6, most: 9 };
/** Absolute, or relative to the oracle's number if that is greater than 1. */
const TOLERANCE = 1e-5;

/** Return the canonical text of a state. */
export function canonical(state) {
  return JSON.stringify(sorted(state));
}

export function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}

function sorted(value) {
  if (typeof value === "number") {
    return shortest(value);
  }
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]));
}

function shortest(number) {
  const single = Math.fround(number);
  for (let digits = DIGITS.least; digits < DIGITS.most; digits += 1) {
    const text = Number(single.toPrecision(digits));
    if (Math.fround(text) === single) {
      return text + 0;
    }
  }
  return Number(single.toPrecision(DIGITS.most)) + 0;
}

/**
 * Return the port's state with the oracle's number wherever the two agree within the tolerance. Two libraries for sine
 * and cosine may differ in the last bit of a single; everything else must be the same, and stays as the port has it.
 */
export function aligned(port, oracle) {
  if (typeof port === "number" && typeof oracle === "number") {
    return Math.abs(port - oracle) <= TOLERANCE * Math.max(1, Math.abs(oracle)) ? oracle : port;
  }
  if (Array.isArray(port) && Array.isArray(oracle)) {
    return port.map((one, at) => aligned(one, oracle[at]));
  }
  if (isObject(port) && isObject(oracle)) {
    return Object.fromEntries(Object.entries(port).map(([key, one]) => [key, aligned(one, oracle[key])]));
  }
  return port;
}

/** Say where two states differ first; empty if they do not. */
export function difference(port, oracle, path = "main") {
  if (typeof port !== "object" || typeof oracle !== "object" || port === null || oracle === null) {
    return Object.is(port, oracle) || port === oracle
      ? ""
      : `${path}: Blender ${told(oracle)}, port ${told(port)}`;
  }
  for (const key of new Set([...Object.keys(oracle), ...Object.keys(port)])) {
    const found = difference(
      port[key],
      oracle[key],
      Array.isArray(oracle) ? `${path}[${key}]` : `${path}.${key}`,
    );
    if (found) {
      return found;
    }
  }
  return "";
}

function told(value) {
  return value === undefined ? "nothing" : JSON.stringify(value).slice(0, 60);
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
