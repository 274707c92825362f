// Fills a text area with a file that was chosen or dropped, or with several one after the other where the form takes them:
// they go nowhere before it is sent.
const place = document.querySelector("[data-fill]"), chosen = place.querySelector("input"), area = document.getElementById(place.dataset.fill);
async function read(file) {
  const bytes = await file.arrayBuffer();
  const base64 = () => btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
  try {
    return "base64" in place.dataset ? base64() : new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // what is no text goes as base64 where the form takes it; else it is what old spreadsheets write
    return "binary" in place.dataset ? base64() : new TextDecoder("windows-1252").decode(bytes);
  }
}
async function fill(files) {
  if (!files.length) return;
  area.value = (await Promise.all(Array.from(chosen.multiple ? files : [files[0]], read))).join("\n");
  area.dispatchEvent(new Event("input", { bubbles: true }));
  area.form.querySelector("[data-check], .bar .main").focus();
}
place.hidden = false;
chosen.addEventListener("change", () => fill(chosen.files));
area.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
area.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) { event.preventDefault(); fill(event.dataTransfer.files); } });
