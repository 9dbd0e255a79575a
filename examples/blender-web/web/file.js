// The file format: the document as JSON, with a head that says what it is.

/** @import { Main } from "./data.js" */

const APPLICATION = "blender-web";
const VERSION = 1;

/**
 * Return the content of a file that holds this document.
 * @param {Main} main
 */
export function save(main) {
  return JSON.stringify({ application: APPLICATION, version: VERSION, main });
}

/**
 * Return the document that a file holds, or throw with the reason why it holds none.
 * @param {string} text
 * @returns {Main}
 */
export function open(text) {
  const file = JSON.parse(text);
  if (file?.application !== APPLICATION || file.version !== VERSION) {
    throw new Error(`this is no file of ${APPLICATION} ${VERSION}`);
  }
  for (const key of ["active", "cursor", "mode", "objects", "meshes"]) {
    if (!(key in file.main)) {
      throw new Error(`the file has no ${key}`);
    }
  }
  return file.main;
}
