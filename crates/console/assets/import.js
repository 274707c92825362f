// Fills a text area with a file that was chosen or dropped: it goes nowhere before the form is sent.
const place = document.querySelector("[data-fill]"), chosen = place.querySelector("input"), area = document.getElementById(place.dataset.fill);
async function fill(file) {
  if (!file) return;
  const bytes = await file.arrayBuffer();
  const base64 = () => btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
  try {
    area.value = "base64" in place.dataset ? base64() : new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // what is no text goes as base64 where the form takes it; else it is what old spreadsheets write
    area.value = "binary" in place.dataset ? base64()
      : new TextDecoder("windows-1252").decode(bytes);
  }
  area.dispatchEvent(new Event("input", { bubbles: true }));
  area.form.querySelector("[data-check], .bar .main").focus();
}
place.hidden = false;
chosen.addEventListener("change", () => fill(chosen.files[0]));
area.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
area.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) { event.preventDefault(); fill(event.dataTransfer.files[0]); } });
