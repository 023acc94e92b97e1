// Live pages, the search and the copy buttons. Without this script every page can still be read and
// used. It changes pages with morph.js and shows times with times.js.
"use strict";

let source = null;

function say(text) {
  document.getElementById("live-state").textContent = text;
}

function listen() {
  const main = document.querySelector("main[data-live]");
  if (source || !main || document.hidden) return;
  const page = location.pathname + location.search;
  source = new EventSource(`/live?page=${encodeURIComponent(page)}`);
  source.addEventListener("open", () => say(" · live"));
  source.addEventListener("error", () => say(" · not live: the console does not answer"));
  source.addEventListener("page", (event) => {
    const fresh = new DOMParser().parseFromString(event.data, "text/html");
    morph(document.getElementById("main"), fresh.getElementById("main"));
    morph(document.querySelector("footer time"), fresh.querySelector("footer time"));
    document.title = fresh.title;
    tick();
    if (!document.querySelector("main[data-live]")) stop();
  });
}

function stop() {
  if (source) source.close();
  source = null;
  say("");
}

// A hidden tab reads nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? stop() : listen()));

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
    text = "Refused"; // by the browser; the text beside the button can be selected
  }
  button.textContent = text;
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

listen();
