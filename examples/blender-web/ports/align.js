// SPDX-License-Identifier: GPL-2.0-or-later
// Port of bl_operators/object_align.py.

/**
 * @import { Item, Main, Vector } from "../data.js"
 * @import { Operator } from "../operator.js"
 * @typedef {{low: Vector, high: Vector}} Bounds
 */

import { f32, meshOf } from "../data.js";
import { toWorld } from "../mathutils.js";

const AXES = ["X", "Y", "Z"];

/** @type {Operator} */
export const operator = {
  id: "object.align",
  label: "Align Objects",
  route: "/object/transform/align",
  properties: {
    bb_quality: { type: "bool", default: true },
    align_mode: { type: "enum", default: "OPT_2", items: ["OPT_1", "OPT_2", "OPT_3"] },
    relative_to: { type: "enum", default: "OPT_4", items: ["OPT_1", "OPT_2", "OPT_3", "OPT_4"] },
    align_axis: { type: "flags", default: [], items: AXES },
  },
  poll: (main) => main.mode === "OBJECT",
  execute(main, properties) {
    const selected = main.objects.filter((item) => item.selected);
    if (selected.length === 0) {
      return "CANCELLED";
    }
    const bounds = new Map(selected.map((item) => [item, boundsOf(main, item, properties.bb_quality)]));
    const reference = referenceOf(main, properties.relative_to, bounds);
    for (const [item, own] of bounds) {
      for (const [at, axis] of AXES.entries()) {
        if (properties.align_axis.includes(axis)) {
          const side = sideOf(own, at, properties.align_mode);
          const target = reference.point[at] + offset(reference.size[at], properties.align_mode);
          item.location[at] = f32(item.location[at] - side + target);
        }
      }
    }
    return "FINISHED";
  },
};

/**
 * The box around an object in the world: around its vertices, or around the corners of its own box.
 * @param {Main} main
 * @param {Item} item
 * @param {boolean} isExact
 * @returns {Bounds}
 */
function boundsOf(main, item, isExact) {
  const { vertices } = meshOf(main, item);
  const points = isExact ? vertices : corners(around(vertices));
  return around(points.map((point) => toWorld(item, point)));
}

/**
 * @param {Vector[]} points
 * @returns {Bounds}
 */
function around(points) {
  /** @param {(...values: number[]) => number} choose */
  const side = (choose) =>
    /** @type {Vector} */ ([0, 1, 2].map((at) => choose(...points.map((point) => point[at]))));
  return { low: side(Math.min), high: side(Math.max) };
}

/**
 * @param {Bounds} bounds
 * @returns {Vector[]}
 */
function corners({ low, high }) {
  return [low, high].flatMap(([x]) =>
    [low, high].flatMap(([, y]) => [low, high].map((one) => /** @type {Vector} */ ([x, y, one[2]]))),
  );
}

/**
 * What is aligned to: a point, and half the size of the active object where that matters.
 * @param {Main} main
 * @param {string} relativeTo
 * @param {Map<Item, Bounds>} bounds
 */
function referenceOf(main, relativeTo, bounds) {
  const nothing = [0, 0, 0];
  if (relativeTo === "OPT_1") {
    return { point: nothing, size: nothing };
  }
  if (relativeTo === "OPT_2") {
    return { point: main.cursor.location, size: nothing };
  }
  if (relativeTo === "OPT_3") {
    const all = [...bounds.values()];
    return { point: middle(around(all.flatMap(({ low, high }) => [low, high]))), size: nothing };
  }
  const active = [...bounds].find(([item]) => item.name === main.active);
  if (!active) {
    throw new Error("the active object is not selected");
  }
  const [, { low, high }] = active;
  return { point: middle(active[1]), size: low.map((value, at) => (high[at] - value) / 2) };
}

/** @param {Bounds} bounds */
function middle({ low, high }) {
  return low.map((value, at) => (value + high[at]) / 2);
}

/**
 * @param {Bounds} bounds
 * @param {number} at
 * @param {string} mode
 */
function sideOf({ low, high }, at, mode) {
  return { OPT_1: low[at], OPT_2: (low[at] + high[at]) / 2, OPT_3: high[at] }[mode] ?? 0;
}

/**
 * @param {number} size
 * @param {string} mode
 */
function offset(size, mode) {
  return { OPT_1: -size, OPT_2: 0, OPT_3: size }[mode] ?? 0;
}
