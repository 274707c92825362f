// A script of the sign-in pages: it hands what the server asks to the browser's passkeys, and the answer back. What is asked
// stands in the script's own element, which no view of a customer can write.
"use strict";
(() => {
  const { passkey: kind, options } = document.currentScript.dataset;
  const forms = [...document.querySelectorAll("form[data-passkey]")];
  const parse = {
    get: (options) => PublicKeyCredential.parseRequestOptionsFromJSON(options),
    create: (options) => PublicKeyCredential.parseCreationOptionsFromJSON(options),
  };
  const isAble = () =>
    typeof PublicKeyCredential === "function" &&
    typeof PublicKeyCredential.parseRequestOptionsFromJSON === "function";
  let waiting = null;

  const ask = async (form, more) => {
    const publicKey = parse[kind](JSON.parse(options));
    const credential = await navigator.credentials[kind]({ publicKey, ...more });
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  };

  // while a person types the name, the browser offers the passkeys that it has
  const offer = async (form) => {
    const can = PublicKeyCredential.isConditionalMediationAvailable;
    if (kind !== "get" || !document.querySelector("[autocomplete~=webauthn]")) return;
    if (typeof can !== "function" || !(await PublicKeyCredential.isConditionalMediationAvailable())) return;
    waiting = new AbortController();
    await ask(form, { mediation: "conditional", signal: waiting.signal }).catch(() => {});
  };

  for (const form of forms) {
    if (!isAble() || !options) continue;
    form.hidden = false;
    for (const shown of form.querySelectorAll("[data-with]")) shown.hidden = false;
    for (const gone of form.querySelectorAll("[data-without]")) gone.hidden = true;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      waiting?.abort();
      const refused = form.querySelector("[data-refused]");
      refused.hidden = true;
      ask(form).catch(() => {
        refused.hidden = false;
      });
    });
    offer(form);
  }
})();
