// The rotations and matrices of Blender that operators need. A matrix is three rows; angles are radians.

/**
 * @import { Item, Vector } from "./data.js"
 * @typedef {[Vector, Vector, Vector]} Matrix
 */

import { f32 } from "./data.js";

const { atan2, cos, hypot, sin } = Math;

/**
 * Return the rotation of Euler angles in the order XYZ.
 * @param {Vector} euler
 * @returns {Matrix}
 */
export function fromEuler([x, y, z]) {
  const [cx, cy, cz] = [cos(x), cos(y), cos(z)];
  const [sx, sy, sz] = [sin(x), sin(y), sin(z)];
  return [
    [cy * cz, sy * sx * cz - cx * sz, sy * cx * cz + sx * sz],
    [cy * sz, sy * sx * sz + cx * cz, sy * cx * sz - sx * cz],
    [-sy, cy * sx, cy * cx],
  ];
}

/**
 * Return the Euler angles of a rotation: of the two that there are, the ones nearer to no rotation.
 * @param {Matrix} matrix
 * @returns {Vector}
 */
export function toEuler(matrix) {
  const [[xx, ,], [yx, yy, yz], [zx, zy, zz]] = matrix;
  const flat = hypot(xx, yx);
  if (flat <= 16 * 1.1920929e-7) {
    return [f32(atan2(-yz, yy)), f32(atan2(-zx, flat)), 0];
  }
  /** @type {Vector} */
  const one = [atan2(zy, zz), atan2(-zx, flat), atan2(yx, xx)];
  /** @type {Vector} */
  const other = [atan2(-zy, -zz), atan2(-zx, -flat), atan2(-yx, -xx)];
  const [x, y, z] = turn(one) > turn(other) ? other : one;
  return [f32(x), f32(y), f32(z)];
}

/** @param {Vector} euler */
function turn(euler) {
  return euler.reduce((sum, angle) => sum + Math.abs(angle), 0);
}

/**
 * @param {Matrix} matrix
 * @param {Vector} vector
 * @returns {Vector}
 */
export function apply(matrix, vector) {
  const [x, y, z] = matrix.map((row) => row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2]);
  return [x, y, z];
}

/**
 * @param {Matrix} left
 * @param {Matrix} right
 * @returns {Matrix}
 */
export function multiply(left, right) {
  const columns = [0, 1, 2].map((at) => apply(left, [right[0][at], right[1][at], right[2][at]]));
  const [x, y, z] = [0, 1, 2].map((at) => /** @type {Vector} */ (columns.map((column) => column[at])));
  return [x, y, z];
}

/**
 * Return where a point of an object lies in the world, its delta transform included.
 * @param {Item} item
 * @param {Vector} point
 * @returns {Vector}
 */
export function toWorld(item, point) {
  const rotation = multiply(fromEuler(item.delta_rotation_euler), fromEuler(item.rotation_euler));
  const [x, y, z] = point.map((value, at) => value * item.scale[at] * item.delta_scale[at]);
  const [wx, wy, wz] = apply(rotation, [x, y, z]).map(
    (value, at) => value + item.location[at] + item.delta_location[at],
  );
  return [wx, wy, wz];
}
