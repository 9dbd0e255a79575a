// SPDX-License-Identifier: GPL-2.0-or-later
// Port of bl_operators/add_mesh_torus.py, and of what it uses of bpy_extras/object_utils.py.

/**
 * @import { Main, Mesh, UVLayer, Vector } from "../data.js"
 * @import { Matrix } from "../mathutils.js"
 * @import { Operator } from "../operator.js"
 */

import { f32, uniqueName } from "../data.js";
import { fromEuler, toEuler } from "../mathutils.js";

const TURN = Math.PI * 2;
const RADIUS = { min: 0, max: 10000 };

/** @type {Operator} */
export const operator = {
  id: "mesh.primitive_torus_add",
  label: "Add Torus",
  route: "/add/mesh/torus",
  properties: {
    major_segments: { type: "int", default: 48, min: 3, max: 256 },
    minor_segments: { type: "int", default: 12, min: 3, max: 256 },
    mode: { type: "enum", default: "MAJOR_MINOR", items: ["MAJOR_MINOR", "EXT_INT"] },
    major_radius: { type: "float", default: 1, ...RADIUS },
    minor_radius: { type: "float", default: 0.25, ...RADIUS },
    abso_major_rad: { type: "float", default: 1.25, ...RADIUS },
    abso_minor_rad: { type: "float", default: 0.75, ...RADIUS },
    generate_uvs: { type: "bool", default: true },
    align: { type: "enum", default: "WORLD", items: ["WORLD", "VIEW", "CURSOR"] },
    location: { type: "vector", default: null, min: -Infinity, max: Infinity },
    rotation: { type: "vector", default: null, min: -Infinity, max: Infinity },
  },
  // In edit mode Blender joins the torus into the active mesh; that is not ported.
  poll: (main) => main.mode === "OBJECT",
  execute(main, properties) {
    const [major, minor] = radii(properties);
    const { major_segments: majors, minor_segments: minors } = properties;
    const name = uniqueName(
      "Torus",
      main.meshes.map((one) => one.name),
    );
    /** @type {Mesh} */
    const mesh = {
      name,
      vertices: vertices(major, minor, majors, minors),
      faces: faces(majors, minors),
      flat: true,
      uv_layers: properties.generate_uvs ? [uvLayer(majors, minors)] : [],
    };
    main.meshes = [...main.meshes, mesh].sort((one, other) => (one.name < other.name ? -1 : 1));
    addObject(main, name, properties);
    return "FINISHED";
  },
};

/**
 * @param {any} properties
 * @returns {[number, number]}
 */
function radii(properties) {
  if (properties.mode !== "EXT_INT") {
    return [properties.major_radius, properties.minor_radius];
  }
  const half = (properties.abso_major_rad - properties.abso_minor_rad) * 0.5;
  /** @param {number} value */
  const stored = (value) => f32(Math.min(Math.max(value, RADIUS.min), RADIUS.max));
  return [stored(properties.abso_minor_rad + half), stored(half)];
}

/**
 * @param {number} major
 * @param {number} minor
 * @param {number} majors
 * @param {number} minors
 */
function vertices(major, minor, majors, minors) {
  /** @type {Vector[]} */
  const found = [];
  for (let ring = 0; ring < majors; ring += 1) {
    const turn = f32((ring / majors) * TURN);
    const [cos, sin] = [f32(Math.cos(turn)), f32(Math.sin(turn))];
    for (let at = 0; at < minors; at += 1) {
      const angle = (TURN * at) / minors;
      const x = f32(major + Math.cos(angle) * minor);
      found.push([f32(cos * x), f32(sin * x), f32(Math.sin(angle) * minor)]);
    }
  }
  return found;
}

/**
 * @param {number} majors
 * @param {number} minors
 */
function faces(majors, minors) {
  const total = majors * minors;
  /** @type {number[][]} */
  const found = [];
  for (let first = 0; first < total; first += 1) {
    const isLast = (first + 1) % minors === 0;
    const second = isLast ? first + 1 - minors : first + 1;
    found.push([first, (first + minors) % total, (second + minors) % total, second]);
  }
  return found;
}

/**
 * @param {number} majors
 * @param {number} minors
 * @returns {UVLayer}
 */
function uvLayer(majors, minors) {
  const across = steps(majors);
  const along = steps(minors);
  /** @type {[number, number][]} */
  const uvs = [];
  for (const [u, uNext] of across) {
    for (const [v, vNext] of along) {
      uvs.push([u, v], [uNext, v], [uNext, vNext], [u, vNext]);
    }
  }
  return { name: "UVMap", uvs };
}

/**
 * Where each segment begins and ends on the map. Beginning in its middle, the map wraps where it exceeds 1.
 * @param {number} segments
 */
function steps(segments) {
  const step = 1 / segments;
  const wrap = 1 - step / 2;
  /** @type {[number, number][]} */
  const found = [];
  let begin = 0.5 + (0.5 % step);
  for (let at = 0; at < segments; at += 1) {
    const end = begin + step;
    found.push([f32(begin), f32(end)]);
    begin = end > wrap ? end - 1 : end;
  }
  return found;
}

/**
 * @param {Main} main
 * @param {string} data
 * @param {any} properties
 */
function addObject(main, data, properties) {
  for (const item of main.objects) {
    item.selected = false;
  }
  const name = uniqueName(
    data,
    main.objects.map((one) => one.name),
  );
  main.objects.push({
    name,
    data,
    location: properties.location ?? [...main.cursor.location],
    rotation_euler: toEuler(orientation(main, properties)),
    scale: [1, 1, 1],
    delta_location: [0, 0, 0],
    delta_rotation_euler: [0, 0, 0],
    delta_scale: [1, 1, 1],
    selected: true,
  });
  main.active = name;
}

/**
 * Without a rotation the preference decides how to align, which is to the world. Without a 3D view, as here, there is no
 * view to align to.
 * @param {Main} main
 * @param {any} properties
 * @returns {Matrix}
 */
function orientation(main, properties) {
  const isToCursor = properties.rotation !== null && properties.align === "CURSOR";
  return fromEuler(isToCursor ? main.cursor.rotation_euler : (properties.rotation ?? [0, 0, 0]));
}
