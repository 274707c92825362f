// Looks at the pages that scripts/console-preview serves.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
const [what, tools, ...pages] = process.argv.slice(2);
const require = createRequire(`${tools}/package.json`);
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--force-color-profile=srgb"] });
const into = "/tmp/console-preview/pictures";
mkdirSync(into, { recursive: true });
let wrong = 0;
const say = (...words) => { wrong += 1; console.log(...words); };
for (const name of pages) for (const [width, height, theme] of [[1440, 900, "light"], [1440, 900, "dark"], [768, 1024, "light"], [320, 700, "light"], [320, 700, "dark"]]) {
  if (what === "--pictures" && theme === "dark" && width < 1000) continue;
  const page = await browser.newPage();
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && say(name, width, message.text()));
  page.on("pageerror", (error) => say(name, width, error.message));
  await page.setBypassCSP(what === "--check");
  await page.goto(`http://127.0.0.1:8899/${name}.html`, { waitUntil: "load", timeout: 90000 });
  await page.evaluate(() => document.fonts.ready.then(() => new Promise((done) => setTimeout(done, 150))));
  if (what === "--pictures") await page.screenshot({ path: `${into}/${name}-${width}-${theme}.png` });
  else {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) say(name, width, `is ${over} px too wide`);
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const rule of found.violations) say(name, width, theme, rule.id, rule.nodes.map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).slice(0, 4));
  }
  await page.close();
}
await browser.close();
console.log(wrong ? `${wrong} found` : "nothing found");
process.exit(wrong && what === "--check" ? 1 : 0);
