// The part of Blender's Main that the ported operators read and write. Numbers are single precision, as in Blender:
// whoever stores one rounds it with `f32`.

/**
 * @typedef {[number, number, number]} Vector
 *
 * @typedef {object} Item An object of the scene.
 * @property {string} name
 * @property {string} data Name of its mesh.
 * @property {Vector} location
 * @property {Vector} rotation_euler Radians, order XYZ.
 * @property {Vector} scale
 * @property {Vector} delta_location
 * @property {Vector} delta_rotation_euler
 * @property {Vector} delta_scale
 * @property {boolean} selected
 *
 * @typedef {object} UVLayer
 * @property {string} name
 * @property {[number, number][]} uvs One for each corner of each face.
 *
 * @typedef {object} Mesh
 * @property {string} name
 * @property {Vector[]} vertices
 * @property {number[][]} faces Indices of vertices.
 * @property {boolean} flat Whether all faces are shaded flat.
 * @property {UVLayer[]} uv_layers
 *
 * @typedef {object} Main
 * @property {string | null} active Name of the active object.
 * @property {{location: Vector, rotation_euler: Vector}} cursor The 3D cursor.
 * @property {"OBJECT" | "EDIT"} mode
 * @property {Item[]} objects In the order in which they were linked to the scene.
 * @property {Mesh[]} meshes Sorted by name.
 */

/** Round to single precision. */
export const f32 = Math.fround;

/**
 * Return a document without objects.
 * @returns {Main}
 */
export function emptyMain() {
  return {
    active: null,
    cursor: { location: [0, 0, 0], rotation_euler: [0, 0, 0] },
    mode: "OBJECT",
    objects: [],
    meshes: [],
  };
}

/**
 * Return the name that Blender gives to what shall be called `wanted`: with the first free number if it is taken.
 * @param {string} wanted
 * @param {string[]} taken
 */
export function uniqueName(wanted, taken) {
  if (!taken.includes(wanted)) {
    return wanted;
  }
  const base = wanted.replace(/\.\d+$/, "");
  let number = 1;
  while (taken.includes(numbered(base, number))) {
    number += 1;
  }
  return numbered(base, number);
}

/**
 * @param {string} base
 * @param {number} number
 */
function numbered(base, number) {
  return `${base}.${String(number).padStart(3, "0")}`;
}

/**
 * Return the mesh of an object.
 * @param {Main} main
 * @param {Item} item
 * @returns {Mesh}
 */
export function meshOf(main, item) {
  const found = main.meshes.find((mesh) => mesh.name === item.data);
  if (!found) {
    throw new Error(`${item.name}: its mesh ${item.data} is missing`);
  }
  return found;
}
