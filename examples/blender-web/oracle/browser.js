// Drives the compiled application in real Chromium, the way a user would: routes, forms, files and keys.

import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const PAGE = "dist/index.html";

/** Start Chromium, and say which version it is. */
export async function launch() {
  if (!existsSync("dist/app.js")) {
    throw new Error("dist/app.js is missing: run `npm run build` first");
  }
  const browser = await chromium.launch({ executablePath: chromiumPath() });
  console.log(`Chromium ${browser.version()}`);
  return browser;
}

function chromiumPath() {
  const candidates = process.env.PATH.split(delimiter).map((folder) => join(folder, "chromium"));
  const found = candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) {
    throw new Error("chromium is not on PATH: install Debian's package of that name");
  }
  return found;
}

/** Return the operators that the page offers, each with its route. */
export async function offered(browser) {
  const page = await browser.newPage();
  const thrown = [];
  page.on("pageerror", (error) => thrown.push(error.message));
  await page.goto(pathToFileURL(resolve(PAGE)).href);
  const found = await page.$$eval("#routes a", (links) =>
    links.map((link) => ({ unit: link.dataset.operator, route: link.getAttribute("href") })),
  );
  await page.close();
  if (thrown.length > 0) {
    throw new Error(`the page threw: ${thrown.join("; ")}`);
  }
  return found;
}

/** The application in one window. */
export class Application {
  constructor(page) {
    this.page = page;
    this.starts = 0;
    page.on("pageerror", (error) => console.log(`the page threw: ${error.message}`));
  }

  /** Start anew at a route, and open a document. */
  async start(route, main) {
    this.starts += 1;
    await this.page.goto(`${pathToFileURL(resolve(PAGE)).href}?start=${this.starts}${route}`);
    await this.load(JSON.stringify({ application: "blender-web", version: 1, main }));
  }

  /** Open a file. */
  async load(text) {
    await this.page.setInputFiles("#open", {
      name: "document.json",
      mimeType: "application/json",
      buffer: Buffer.from(text),
    });
    await this.page.getByText("Opened", { exact: true }).waitFor();
  }

  /** Save a file, and return its text. */
  async save() {
    const [download] = await Promise.all([this.page.waitForEvent("download"), this.page.click("#save")]);
    return readFileSync(await download.path(), "utf8");
  }

  /** What the document holds, as the application saves it. */
  async main() {
    return JSON.parse(await this.save()).main;
  }

  /** Enter properties and run the operator; return what the page says. */
  async run(properties) {
    for (const [name, value] of Object.entries(properties)) {
      const field = this.page.locator(`#operator [name="${name}"]`);
      if (typeof value === "boolean") {
        await field.setChecked(value);
      } else if ((await field.evaluate((one) => one.tagName)) === "SELECT") {
        await field.selectOption(value);
      } else {
        await field.fill(Array.isArray(value) ? value.join(", ") : String(value));
      }
    }
    await this.page.click("#operator button");
    return this.page.textContent("#report");
  }

  async undo() {
    await this.page.keyboard.press("Control+z");
  }

  async redo() {
    await this.page.keyboard.press("Control+Shift+Z");
  }
}
