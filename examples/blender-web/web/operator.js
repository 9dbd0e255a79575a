// What an operator is, and how it is run: on a copy, so that one that is refused or fails leaves nothing behind.

/**
 * @import { Main } from "./data.js"
 *
 * @typedef {{type: "int" | "float", default: number, min: number, max: number}} NumberProperty
 * @typedef {{type: "vector", default: number[] | null, min: number, max: number}} VectorProperty
 *   Without a default it counts as not set.
 * @typedef {{type: "bool", default: boolean}} BoolProperty
 * @typedef {{type: "enum", default: string, items: string[]}} EnumProperty
 * @typedef {{type: "flags", default: string[], items: string[]}} FlagsProperty Any number of its items.
 * @typedef {NumberProperty | VectorProperty | BoolProperty | EnumProperty | FlagsProperty} Property
 *
 * @typedef {object} Operator
 * @property {string} id Blender's own name for it.
 * @property {string} label
 * @property {string} route How a user reaches it.
 * @property {Record<string, Property>} properties
 * @property {(main: Main) => boolean} poll Whether it may run now.
 * @property {(main: Main, properties: any) => "FINISHED" | "CANCELLED"} execute It may change `main`.
 */

import { f32 } from "./data.js";

/**
 * Return the document after an operator, or null if it is as it was; throws if Blender would refuse.
 * @param {Operator} operator
 * @param {Main} main
 * @param {Record<string, string | boolean>} fields What the user entered, by property.
 * @returns {Main | null}
 */
export function run(operator, main, fields) {
  if (!operator.poll(main)) {
    throw new Error(`${operator.label} cannot run in mode ${main.mode}`);
  }
  const entries = Object.entries(operator.properties);
  const properties = Object.fromEntries(
    entries.map(([name, property]) => [name, read(name, property, fields[name])]),
  );
  const changed = structuredClone(main);
  return operator.execute(changed, properties) === "FINISHED" ? changed : null;
}

/**
 * @param {string} name
 * @param {Property} property
 * @param {string | boolean} field
 */
function read(name, property, field) {
  if (property.type === "bool") {
    return Boolean(field);
  }
  const text = String(field).trim();
  const words = text === "" ? [] : text.split(/[\s,]+/);
  if (property.type === "flags" || property.type === "enum") {
    const unknown = words.find((word) => !property.items.includes(word));
    if (unknown !== undefined) {
      throw new Error(`${name}: ${unknown} is none of ${property.items.join(", ")}`);
    }
    return property.type === "flags" ? words : words[0];
  }
  if (property.type === "vector") {
    return words.length === 0 && property.default === null ? null : vector(name, property, words);
  }
  return number(name, property, text);
}

/**
 * @param {string} name
 * @param {VectorProperty} property
 * @param {string[]} words
 */
function vector(name, property, words) {
  if (words.length !== 3) {
    throw new Error(`${name}: three numbers are wanted`);
  }
  return words.map((word) => number(name, { ...property, type: "float" }, word));
}

/**
 * Values out of range are brought into it, as Blender does.
 * @param {string} name
 * @param {{type: "int" | "float", min: number, max: number}} property
 * @param {string} text
 */
function number(name, property, text) {
  const value = Number(text);
  if (text === "" || Number.isNaN(value) || (property.type === "int" && !Number.isInteger(value))) {
    throw new Error(`${name}: ${text || "nothing"} is no ${property.type === "int" ? "whole " : ""}number`);
  }
  return f32(Math.min(Math.max(value, property.min), property.max));
}
