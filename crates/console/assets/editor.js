// Shows a view while it is typed, and leads from an error to its line. Without it a button shows it.
const form = document.querySelector("form[data-edit]");
const text = form.elements.content, show = document.querySelector("[data-show]");
let frame = document.querySelector("iframe[name=preview]"), timer;

// The number of each line beside it.
function withNumbers() {
  const place = document.createElement("div"), numbers = document.createElement("div");
  place.className = "numbered";
  numbers.ariaHidden = "true";
  text.replaceWith(place);
  place.append(numbers, text);
  const number = () => {
    const lines = text.value.split("\n").length;
    while (numbers.childElementCount > lines) numbers.lastChild.remove();
    while (numbers.childElementCount < lines) numbers.append(document.createElement("i"));
    numbers.scrollTop = text.scrollTop;
  };
  text.addEventListener("input", number);
  text.addEventListener("scroll", () => { numbers.scrollTop = text.scrollTop; });
  number();
}
// What is shown beside options has no text of its own.
if (text) withNumbers();

function go(line, column) {
  const before = text.value.split("\n").slice(0, line - 1).join("\n");
  const at = (line > 1 ? before.length + 1 : 0) + column - 1, end = text.value.indexOf("\n", at);
  text.focus();
  text.setSelectionRange(at, end < 0 ? text.value.length : end);
  text.scrollTop = (line - 4) * Number.parseFloat(getComputedStyle(text).lineHeight);
}
// A page that is tried is of an origin of its own: only the page that tells an error can be looked into.
function shown() {
  const place = frame.contentDocument?.querySelector("[data-line]");
  if (!place) return;
  place.hidden = false;
  place.parentElement.querySelector("span").remove();
  place.addEventListener("click", () => go(Number(place.dataset.line), Number(place.dataset.column)));
}
// A new frame each time: what an old one goes to would be steps of the way back.
function again() {
  const fresh = frame.cloneNode();
  fresh.removeAttribute("src");
  frame.replaceWith(fresh);
  frame = fresh;
  frame.addEventListener("load", shown);
  form.requestSubmit(show);
}
show.addEventListener("click", (event) => {
  event.preventDefault();
  again();
});
(text ?? show.closest("section")).addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(again, 600); });
for (const choice of document.querySelectorAll("[data-shows]")) choice.addEventListener("change", again);
frame.addEventListener("load", shown);
if (!frame.hasAttribute("src")) again();
