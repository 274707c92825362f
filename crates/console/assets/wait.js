// Counts down until the same can be asked again. What only reads is asked again then; what writes is sent by who wants it sent.
const wait = document.querySelector("[data-wait]"), left = wait.querySelector("b");
const until = Date.now() + 1000 * wait.dataset.wait;
for (const told of wait.querySelectorAll("[hidden]")) told.hidden = false;
const ticking = setInterval(() => {
  const seconds = Math.max(0, Math.ceil((until - Date.now()) / 1000));
  left.textContent = seconds;
  if (seconds) return;
  clearInterval(ticking);
  if ("again" in wait.dataset) location.reload();
}, 1000);
