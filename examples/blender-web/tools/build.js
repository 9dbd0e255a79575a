// Compiles the application: one script out of the page's modules and every ported operator.

import { copyFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const ports = readdirSync("web/operators")
  .filter((name) => name.endsWith(".js"))
  .sort();
const entry = [
  'import { start } from "./main.js";',
  ...ports.map((name, index) => `import { operator as operator${index} } from "./operators/${name}";`),
  `start([${ports.map((_, index) => `operator${index}`).join(", ")}]);`,
].join("\n");

await build({
  stdin: { contents: entry, resolveDir: "web", sourcefile: "entry.js" },
  bundle: true,
  format: "iife",
  target: "es2022",
  outfile: "dist/app.js",
  logLevel: "warning",
});
copyFileSync("web/index.html", "dist/index.html");
console.log(`dist/app.js holds ${ports.length} operators: ${ports.join(", ") || "none yet"}`);
