// Proves one entry of the audit trail in this browser: the five checks that `chancery audit verify` makes of an entry too.
// What is checked is what the page shows; keys come from the address at which they are published for everybody.
const place = document.querySelector("[data-proof]");
const { subtle } = globalThis.crypto;
const utf8 = (text) => new TextEncoder().encode(text);
const bytes = (base64) => Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
const hex = (buffer) => [...buffer].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const digest = async (...parts) => new Uint8Array(await subtle.digest("SHA-256", Uint8Array.from(parts.flatMap((part) => [...part]))));
const same = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);

/* Keys */

const WAYS = { OKP: { name: "Ed25519" }, EC: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" }, RSA: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } };
// A key with the DER form by which entries name it; null where this browser knows no such keys.
async function key({ kty, crv, x, y, n, e }) {
  try {
    const made = await subtle.importKey("jwk", { kty, crv, x, y, n, e }, WAYS[kty], true, ["verify"]);
    return { kty, made, info: base64(await subtle.exportKey("spki", made)), raw: kty === "OKP" && new Uint8Array(await subtle.exportKey("raw", made)) };
  } catch {
    return null;
  }
}
// ECDSA signatures are DER; browsers take both numbers in 32 bytes each.
function flat(der) {
  const number = (at) => der.slice(at + 2, at + 2 + der[at + 1]), r = number(2), s = number(4 + r.length);
  return Uint8Array.from([r, s].flatMap((part) => [...Array(32).fill(0), ...part].slice(-32)));
}
const signed = ({ kty, made }, signature, message) => subtle.verify(WAYS[kty], made, kty === "EC" ? flat(signature) : signature, message);

/* The checks */

// RFC 8785: members in order, and strings as JSON.stringify writes them.
const canonical = (members) => utf8(JSON.stringify(Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1)))));
function stamp({ action, area, category, currentDigest, dataSource, id, originalDigest, primaryKey, timestamp, user }) {
  return { action, area, category, currentDigest, dataSource, id, originalDigest, primaryKey, timestamp, user };
}
async function contents(entry) {
  const sides = await Promise.all(["original", "current"].map(async (side) => {
    const shown = document.querySelector(`[data-content=${side}]`)?.textContent ?? null;
    const [content, salt, expected] = [entry[`${side}Content`], entry[`${side}Salt`], entry[`${side}Digest`]];
    if (shown !== content) return "bad";
    if (content === null && salt === null) return expected === null ? "none" : "erased";
    if (content === null || salt === null || expected === null) return "bad";
    const salted = bytes(salt);
    return salted.length === 32 && hex(await digest(salted, utf8(content))) === expected ? "good" : "bad";
  }));
  return sides.includes("bad") || (sides.includes("erased") && sides.includes("good")) ? "bad" : sides.includes("erased") ? "erased" : "good";
}
// The leaf binds the person, too, where the key does not begin with that person's id.
function leaf(entry) {
  const { person, primaryKey, signature, signaturePublicKeyInfo } = entry;
  const bare = (id) => id.toLowerCase().replace(/^urn:uuid:|[{}-]/g, "");
  const other = person !== null && bare(primaryKey.split("|")[0]) !== bare(person) ? { person } : {};
  return digest([0], canonical({ ...stamp(entry), ...other, signature, signaturePublicKeyInfo }));
}
// RFC 9162, 2.1.3.2.
async function included(hash, at, size, hashes, root) {
  if (!(at < size)) return false;
  let last = size - 1;
  const half = (number) => Math.floor(number / 2);
  for (const other of hashes) {
    if (last === 0) return false;
    const isRight = at % 2 === 1 || at === last;
    hash = isRight ? await digest([1], other, hash) : await digest([1], hash, other);
    while (isRight && at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && same(hash, root);
}
// A signed note (C2SP): its text, an empty line, and signatures that begin with the key's id.
async function checkpoint(note, keys) {
  const end = note.lastIndexOf("\n\n") + 1, text = note.slice(0, end), [origin, size, root] = text.split("\n");
  const lines = note.slice(end + 1).split("\n").filter((line) => line.startsWith(`— ${origin} `)).map((line) => bytes(line.slice(origin.length + 3)));
  let isSigned = false;
  for (const one of keys.filter((known) => known.raw)) {
    const id = (await digest(utf8(`${origin}\n`), [1], one.raw)).slice(0, 4);
    for (const line of lines.filter((other) => same(other.slice(0, 4), id))) {
      if (!(await signed(one, line.slice(4), utf8(text)))) return { size: 0, root: [], state: "bad" };
      isSigned = true;
    }
  }
  return { size: Number(size), root: bytes(root), state: isSigned ? "good" : "bad" };
}

/* What is told */

const icons = (icon, name) => icon.setAttribute("href", icon.getAttribute("href").replace(/#.*/, `#${name}`));
function tell(name, state) {
  const line = place.querySelector(`[data-check=${name}]`);
  line.className = state === "erased" ? "warn" : state;
  line.querySelector("span").textContent = line.dataset[state] ?? place.dataset[state];
  icons(line.querySelector("use"), { good: "check", bad: "x", wait: "clock" }[state] ?? "triangle-alert");
}
const say = (text) => { place.querySelector("[role=status]").textContent = text; };
const fetched = async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(answer.status);
  return answer.json();
};

// Checks once; whether the entry is in the tree.
async function check(published) {
  const { entry, place: found } = await fetched(place.dataset.proof), begun = performance.now();
  const all = await Promise.all(published.keys.map(key)), keys = all.filter(Boolean), states = {};
  const own = keys.find((known) => known.info === entry.signaturePublicKeyInfo);
  const lacks = all.includes(null) ? "unknown" : "bad";
  states.contents = await contents(entry);
  states.key = own ? "good" : lacks;
  states.signature = own ? ((await signed(own, bytes(entry.signature), canonical(stamp(entry)))) ? "good" : "bad") : lacks;
  if (found) {
    const tree = await checkpoint(found.checkpoint, keys);
    states.place = (await included(await leaf(entry), found.position, tree.size, found.hashes.map(bytes), tree.root)) ? "good" : "bad";
    states.checkpoint = tree.state === "bad" && all.includes(null) ? "unknown" : tree.state;
  } else states.place = states.checkpoint = "wait";
  for (const [name, state] of Object.entries(states)) tell(name, state);
  const told = Object.values(states), bad = told.find((state) => state === "bad" || state === "unknown");
  place.classList.remove("good", "bad", "warn");
  place.classList.add("told", bad === "bad" ? "bad" : bad || !found ? "warn" : "good");
  const number = (count) => count.toLocaleString(document.documentElement.lang);
  const took = Math.max(1, Math.round(performance.now() - begun));
  say(found ? place.dataset.place.replace("{n}", number(found.position + 1)).replace("{all}", number(found.treeSize)).replace("{ms}", took) : place.dataset.soon);
  return Boolean(found);
}
if (place) {
  try {
    const published = await fetched(place.dataset.keys);
    for (let tries = 0; !(await check(published)) && tries < 5; tries += 1) await new Promise((done) => setTimeout(done, 1200));
  } catch {
    place.classList.add("told", "bad");
    say(place.dataset.failed);
  }
}
