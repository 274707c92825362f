// What pages cannot do alone: live search, endless lists, the palette, unsaved changes, keys. It knows no resource, and
// every page works without it. Nodes are made by the DOM; fetched pages are read by DOMParser, which runs no script.
const plain = { createHTML: (text) => text };
const policy = globalThis.trustedTypes?.createPolicy("console", plain) ?? plain;
const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const node = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const language = document.documentElement.lang;

// A bar appears when an answer takes long; the style sheet delays it.
const loading = node("div", { class: "loading", "aria-hidden": "true" });
document.body.append(loading);

// Null when another fetch for the same purpose began, or when it was refused.
const running = new Map();
const read = async (answer) => new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
async function fetched(address, purpose, parse = read, how = {}) {
  running.get(purpose)?.abort();
  const control = new AbortController();
  running.set(purpose, control);
  loading.classList.add("on");
  try {
    const answer = await fetch(address, { ...how, signal: control.signal });
    // Whoever was signed out meanwhile gets the page that says so.
    if (answer.redirected && new URL(answer.url).pathname !== new URL(address, location.href).pathname) location.assign(answer.url);
    if ([429, 503].includes(answer.status) && !how.body && (how.tries ?? 0) < 3) {
      await new Promise((done) => setTimeout(done, 1000 * Math.min(answer.headers.get("retry-after") ?? 1, 30)));
      return control.signal.aborted ? null : fetched(address, purpose, parse, { tries: (how.tries ?? 0) + 1 });
    }
    if (answer.ok) warn();
    return answer.ok || (how.body && [400, 409].includes(answer.status)) ? await parse(answer) : null;
  } catch {
    return null;
  } finally {
    if (running.get(purpose) === control) running.delete(purpose);
    loading.classList.toggle("on", running.size > 0);
  }
}
const later = (work, pause = 130) => {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(work, pause, ...given); };
};

// Times: the page says them in UTC; here they become relative, or in the zone that was chosen, else the browser's own, with the moment in full on hover.
const timeZone = document.documentElement.dataset.zone;
const moment = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short", timeZone });
const full = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long", timeZone });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
function tell(root) {
  for (const time of all("time[datetime]", root)) {
    const at = new Date(time.dateTime);
    if (isNaN(at) || !time.dateTime.includes("T")) continue;
    const seconds = (at - Date.now()) / 1000, far = Math.abs(seconds), ago = "ago" in time.dataset;
    const text = far < 45 ? relative.format(0, "second") : far < 3600 ? relative.format(Math.round(seconds / 60), "minute")
      : far < 43200 ? relative.format(Math.round(seconds / 3600), "hour") : ago && far < 2592000 ? relative.format(Math.round(seconds / 86400), "day") : moment.format(at);
    time.title = full.format(at);
    time.replaceChildren(text, ...ago ? [node("span", { class: "unseen" }, `, ${full.format(at)}`)] : []);
  }
}

// Cards whose content costs more arrive after the page.
for (const card of all("[data-later]")) {
  fetched(card.dataset.later, card).then((page) => {
    const found = page && (one(".card", page) ?? one("main", page));
    if (!found) return;
    one(".later", card)?.remove();
    for (const child of [...found.children]) if (child.tagName !== "HEADER") card.append(document.adoptNode(child));
    tell(card);
  });
}

/* Lists */

const said = one("#said");
let at = null;
function go(to) {
  at?.classList.remove("at");
  at = to;
  to.classList.add("at");
  one("th a", to)?.focus({ preventScroll: true });
  to.scrollIntoView({ block: "nearest" });
}
function step(by) {
  const list = all("#list tbody tr:not(.away)"), now = list.indexOf(document.activeElement?.closest("#list tr") ?? at);
  const to = list[now < 0 ? 0 : Math.min(Math.max(now + by, 0), list.length - 1)];
  if (to) go(to);
}
// Rows far away are put aside, and their height stays; selected ones are not, because the form sends them.
const aside = new WeakMap();
const watch = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting, boundingClientRect } of changes) {
    if (isIntersecting) {
      if (aside.has(target)) { target.replaceChildren(...aside.get(target)); aside.delete(target); }
    } else if (!aside.has(target) && boundingClientRect.height && !one(":checked, :focus", target)) {
      const space = node("tr", { class: "away", "aria-hidden": "true" }, node("td", { colspan: "99" }));
      space.firstChild.style.blockSize = `${boundingClientRect.height}px`;
      aside.set(target, [...target.rows]);
      target.replaceChildren(space);
    }
  }
}, { rootMargin: "3000px" });
const near = new IntersectionObserver((changes) => { if (changes.some((change) => change.isIntersecting)) more(); }, { rootMargin: "1200px" });
async function more() {
  const next = one("#list [rel=next]");
  if (!next || running.has("next")) return;
  const page = await fetched(`${next.href}&part=1`, "next"), table = one("#list table");
  if (!page || !next.isConnected) return;
  const place = next.closest("p"), then = one("[rel=next]", page);
  for (const body of all("tbody", page)) {
    const made = table.appendChild(document.adoptNode(body));
    tell(made);
    watch.observe(made);
  }
  near.unobserve(place);
  if (then) { next.href = then.href; near.observe(place); } else place.remove();
}
function chosen() {
  const boxes = all("#list tbody .pick input"), every = one("#list [data-all]"), count = boxes.filter((box) => box.checked).length;
  if (!every) return;
  every.checked = count > 0 && count === boxes.length;
  every.indeterminate = count > 0 && count < boxes.length;
}
let last = null;
function list() {
  const every = one("#list [data-all]"), place = one("#list .next");
  for (const body of all("#list tbody")) watch.observe(body);
  if (every) every.hidden = false;
  if (place) near.observe(place);
  chosen();
}
one("#list")?.addEventListener("click", (event) => {
  const box = event.target;
  if (box.matches("[data-all]")) for (const other of all("#list tbody .pick input")) other.checked = box.checked;
  else if (box.matches(".pick input")) {
    const boxes = all("#list tbody .pick input");
    if (event.shiftKey && last?.isConnected) {
      const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
      for (const other of boxes.slice(from, to + 1)) other.checked = box.checked;
    }
    last = box;
  } else return;
  chosen();
});
document.addEventListener("reset", () => setTimeout(chosen));
list();

const search = one("form[data-live]");
const look = later(async () => {
  const address = new URL(search.action);
  for (const [key, value] of new FormData(search)) if (value) address.searchParams.set(key, value);
  const page = await fetched(address, "search"), found = page && one("#list", page);
  if (!found) return;
  one("#list").replaceChildren(...found.childNodes);
  for (const part of [".views", ".head p"]) {
    const now = one(part), then = one(part, page);
    if (now && then) now.replaceWith(document.adoptNode(then));
  }
  history.replaceState(null, "", address);
  at = null;
  tell(document);
  list();
  if (said) said.textContent = one("#list .empty h2")?.textContent ?? one(".head p")?.textContent ?? "";
});
search?.addEventListener("input", look);

/* Forms */

const form = one("form[data-edit]");
let leaving = false;
const differs = (field) => field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
  : field.tagName === "SELECT" ? field.value !== ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value
  : field.type === "file" ? field.files.length > 0 : field.value !== field.defaultValue;
const edited = () => all("input[name]:not([type=hidden]), select[name], textarea[name], [data-search] input[type=hidden]", form).filter(differs);
function count() {
  const changed = edited(), says = one(".bar [role=status]", form), known = changed.map((field) => field.closest(".field"));
  for (const field of all(".field", form)) one("label", field)?.classList.toggle("dot", known.includes(field));
  if (one(".problems") && !changed.length) return;
  form.classList.toggle("changed", changed.length > 0);
  const text = changed.length === 0 || form.matches("[data-new]") ? "" : changed.length === 1 ? says.dataset.one : says.dataset.many.replace("{n}", changed.length);
  if (says.textContent !== text) says.textContent = text;
}
if (form) {
  form.addEventListener("input", count);
  form.addEventListener("submit", (event) => { leaving = !event.submitter?.formTarget; });
  one("[data-discard]", form)?.addEventListener("click", () => { leaving = true; });
  addEventListener("beforeunload", (event) => { if (!leaving && edited().length) event.preventDefault(); });
  addEventListener("pageshow", () => { leaving = false; count(); });
}
// What is new is judged while it is filled in: a name that is taken is told before anything is sent.
if (form?.matches("[data-check]")) form.addEventListener("change", later(async () => {
  const body = new URLSearchParams(new FormData(form));
  body.set("check", "true");
  const page = await fetched(form.action, form, read, { method: "POST", body });
  for (const field of page ? edited().filter((known) => known.id) : []) {
    const place = field.closest(".field"), other = page.getElementById(field.id), wrong = other && one(".wrong", other.closest(".field"));
    one(".wrong", place)?.remove();
    if (wrong) place.append(document.adoptNode(wrong));
    for (const name of ["aria-invalid", "aria-describedby"]) {
      const told = other?.getAttribute(name);
      if (told) field.setAttribute(name, told); else field.removeAttribute(name);
    }
  }
}, 50));
(one(".problems") ?? one(".alone .field :is(input, select)"))?.focus();

// A reference looks for rows, and posts the id of the one chosen.
all("[data-search]").forEach((place, index) => {
  const kept = one("input", place), id = kept.id;
  const box = node("input", { type: "text", id, role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": `picks-${index}` });
  const picks = node("div", { class: "picks", id: `picks-${index}`, role: "listbox", hidden: "" });
  for (const name of ["aria-describedby", "aria-invalid", "required", "disabled"]) if (kept.hasAttribute(name)) box.setAttribute(name, kept.getAttribute(name));
  const known = kept.defaultValue;
  let shown = place.dataset.shown || kept.value, now = -1, found;
  box.value = shown;
  picks.ariaLabel = kept.labels[0]?.textContent.trim();
  kept.removeAttribute("id");
  kept.type = "hidden";
  // A hidden input's default follows its value: what it was is needed to tell what changed.
  Object.defineProperty(kept, "defaultValue", { value: known });
  kept.after(box);
  place.append(picks);
  const close = () => { picks.hidden = true; box.ariaExpanded = "false"; box.removeAttribute("aria-activedescendant"); now = -1; };
  const take = (row) => { kept.value = row.id; box.value = shown = row.label; close(); kept.dispatchEvent(new Event("input", { bubbles: true })); };
  const mark = (to) => {
    const options = all("[role=option]", picks);
    if (!options.length) return;
    now = (to + options.length) % options.length;
    options.forEach((option, i) => { option.ariaSelected = String(i === now); });
    box.setAttribute("aria-activedescendant", options[now].id);
    options[now].scrollIntoView({ block: "nearest" });
  };
  const ask = later(async (entered) => {
    const address = new URL(place.dataset.search, location.href);
    address.searchParams.set("q", box.value);
    const rows = await fetched(address, place, (answer) => answer.json());
    if (!rows || document.activeElement !== box) return;
    found = rows;
    picks.replaceChildren(...found.map((row, i) => {
      const option = node("div", { role: "option", id: `picks-${index}-${i}`, "aria-selected": "false" }, row.label, ...(row.sub ? [node("small", {}, row.sub)] : []));
      option.addEventListener("pointerdown", (event) => { event.preventDefault(); take(row); });
      return option;
    }));
    if (!found.length) picks.append(node("p", {}, place.dataset.none));
    picks.hidden = false;
    box.ariaExpanded = "true";
    now = -1;
    if (entered && found[0]) take(found[0]);
  });
  box.addEventListener("input", (event) => {
    event.stopPropagation();
    if (!box.value) { kept.value = shown = ""; kept.dispatchEvent(new Event("input", { bubbles: true })); }
    ask();
  });
  box.addEventListener("focus", () => { box.select(); });
  // Text that names no row is put back, unless it is an id somebody pasted.
  box.addEventListener("blur", () => {
    if (/^[0-9a-f-]{32,36}$/i.test(box.value.trim())) take({ id: box.value.trim(), label: box.value.trim() });
    else box.value = shown;
    close();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (picks.hidden) ask(); else mark(event.key === "ArrowDown" ? now + 1 : now - (now < 0 ? 0 : 1));
    } else if (event.key === "Enter" && (box.value !== shown || !picks.hidden)) {
      event.preventDefault();
      // What is listed, if anything, may answer a part of what was typed.
      if (now < 0) ask(true); else take(found[now]);
    } else if (event.key === "Escape" && !picks.hidden) { event.stopPropagation(); event.preventDefault(); box.value = shown; close(); }
  });
});

/* What lies above */

const palette = one("#palette"), keys = one("#keys");
if (palette) {
  const box = one("input", palette), found = one("#found"), says = one("[role=status]", palette);
  let now = 0;
  const options = () => all("[role=option]", found);
  const mark = (to) => {
    const list = options();
    now = list.length ? (to + list.length) % list.length : 0;
    list.forEach((option, i) => { option.ariaSelected = String(i === now); });
    if (list.length) { box.setAttribute("aria-activedescendant", list[now].id); list[now].scrollIntoView({ block: "nearest" }); } else box.removeAttribute("aria-activedescendant");
  };
  // What was opened last comes first: this tab keeps where it led, and no names.
  const opened = JSON.parse(sessionStorage.found ?? "[]"), used = (item) => opened.indexOf(one("a", item).pathname);
  found.addEventListener("click", (event) => {
    const to = event.target.closest("a")?.pathname;
    if (to) sessionStorage.found = JSON.stringify([...opened.filter((other) => other !== to), to].slice(-20));
  });
  const ask = later(async (entered) => {
    const address = new URL(palette.dataset.source, location.href);
    address.searchParams.set("q", box.value);
    address.searchParams.set("part", "1");
    const begun = performance.now(), page = await fetched(address, "palette");
    if (!page || !palette.open) return;
    found.replaceChildren(...page.body.childNodes);
    all("section", found).forEach((group, i) => {
      const title = one("h2", group);
      if (title) { title.id = `found-${i}`; title.setAttribute("role", "presentation"); group.setAttribute("aria-labelledby", title.id); }
      group.setAttribute("role", "group");
    });
    for (const list of all("ul", found)) list.append(...[...list.children].sort((a, b) => used(b) - used(a)));
    for (const item of all("ul, li", found)) item.setAttribute("role", "presentation");
    all("a", found).forEach((link, i) => { link.setAttribute("role", "option"); link.id = `option-${i}`; link.tabIndex = -1; });
    box.ariaExpanded = String(options().length > 0);
    says.textContent = options().length ? `${options().length} · ${Math.round(performance.now() - begun)} ms` : "";
    mark(0);
    if (entered) options()[now]?.click();
  }, 60);
  box.addEventListener("input", () => ask());
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); mark(now + (event.key === "ArrowDown" ? 1 : -1)); }
    else if (event.key === "Enter") { event.preventDefault(); if (now) options()[now]?.click(); else ask(true); }
  });
  palette.addEventListener("find", () => { palette.showModal(); box.select(); ask(); });
}
const find = () => { if (palette && !palette.open) { all("dialog[open]").forEach((dialog) => dialog.close()); palette.dispatchEvent(new Event("find")); } };
for (const dialog of all("dialog")) dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-palette]");
  if (opener && !(event.ctrlKey || event.metaKey || event.shiftKey)) { event.preventDefault(); one("#navigation")?.hidePopover?.(); find(); }
  for (const menu of all("details.drop[open]")) if (!menu.contains(event.target)) menu.open = false;
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const words = one("span", copy), text = words.textContent;
    navigator.clipboard.writeText(one("pre, code", copy.parentElement).textContent).then(() => {
      words.textContent = copy.dataset.done;
      setTimeout(() => { words.textContent = text; }, 2000);
    });
  }
});
if (navigator.clipboard) for (const button of all("[data-copy]")) button.hidden = false;
// What is fetched is a use of the session, too: its end is as far away again, but for the last one.
let warning;
function warn() {
  const ends = one("[data-ends]");
  if (!ends) return;
  ends.hidden = true;
  clearTimeout(warning);
  const left = Math.min(ends.dataset.ends, ends.dataset.last - performance.now() / 1000);
  warning = setTimeout(() => { ends.hidden = false; one("output", ends).textContent += ""; }, (left - 120) * 1000);
}
warn();
const note = one(".note:not([data-ends])");
if (note) {
  // What was there from the beginning is not read out: it is said again. Then the address, which may be mailed, tells of it no more.
  const says = one("output", note), end = () => { if (note.matches(":hover, :focus-within")) setTimeout(end, 1000); else { note.remove(); history.replaceState(null, "", location.href.replace(/[?&]done=.*/, "")); } };
  setTimeout(() => { says.textContent += ""; }, 200);
  setTimeout(end, one("form", note) ? 60000 : 4000);
}

/* Keys */

let lead = 0;
document.addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase(), held = event.ctrlKey || event.metaKey;
  if (held && !event.shiftKey && !event.altKey && key === "k") { event.preventDefault(); find(); return; }
  if (held && !event.altKey && key === "s" && form) { event.preventDefault(); form.requestSubmit(one(".bar .main", form)); return; }
  const dialog = one("dialog[open]");
  if (key === "escape" && !dialog) {
    const menu = one("details.drop[open]");
    if (menu) { menu.open = false; one("summary", menu).focus(); }
    else if (event.target.matches("input, select, textarea")) event.target.blur();
    else if (one("#list tbody :checked")) one("form.rows").reset();
    else if (!one(":popover-open")) one(".back a")?.click();
    return;
  }
  // Single letters never act in fields, nor where somebody turned them off.
  if (held || event.altKey || dialog || event.isComposing || document.body.dataset.keys === "off" || event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]")) return;
  if (lead && event.timeStamp - lead < 1500) {
    lead = 0;
    const to = key === "h" ? one(".side .mark") : /^[a-z]$/.test(key) && one(`.places [data-go=${key}]`);
    if (to) { event.preventDefault(); to.click(); }
    return;
  }
  const acts = {
    "/": () => { const box = one(".search input[type=search]"); if (box) box.select(); else find(); },
    j: () => step(1), k: () => step(-1),
    x: () => (document.activeElement?.closest("#list tr") ?? at)?.querySelector(".pick input")?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: event.shiftKey })),
    n: () => one("[data-new][href]")?.click(),
    g: () => { lead = event.timeStamp; },
    "?": () => keys?.showModal(),
  };
  if (acts[key]) { event.preventDefault(); acts[key](); }
});

tell(document);
