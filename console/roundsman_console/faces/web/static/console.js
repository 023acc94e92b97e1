// The search and the copy buttons. Without this script every page can still be read and used.
"use strict";

// "/" goes to the search, as on many pages.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("find").focus();
  }
});

// Copies an id or a command. The buttons are shown only where this script runs.
document.documentElement.classList.add("scripts");
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  let text = "Copied";
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    text = "Could not copy"; // the browser refused; the text beside the button can be selected
  }
  button.textContent = text;
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

// Several forms stand on one page. What is typed in the others stays when one of them is sent, until
// the page is shown again in this tab.
const typedHere = () => [...document.querySelectorAll("form.inline input[name=reason], form.inline textarea")];
const placeOf = (field) => `${field.form.getAttribute("action")} ${field.name}`;
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form.inline")) return;
  const kept = typedHere()
    .filter((one) => one.form !== event.target && one.value !== one.defaultValue)
    .map((one) => [placeOf(one), one.value]);
  sessionStorage.setItem(`typed ${location.pathname}`, JSON.stringify(kept));
});
const typedBefore = new Map(JSON.parse(sessionStorage.getItem(`typed ${location.pathname}`) ?? "[]"));
sessionStorage.removeItem(`typed ${location.pathname}`);
for (const field of typedHere()) {
  if (!field.value && typedBefore.has(placeOf(field))) field.value = typedBefore.get(placeOf(field));
}
