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

