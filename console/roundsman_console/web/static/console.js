// Relative times, and what live pages (live.js) change in place. Without this script every page can still be read and used.
"use strict";

// The words of roundsman_console/web/times.py for a time in milliseconds.
function timeWords(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} days`;
  const rest = minutes % 60;
  return rest && hours < 10 ? `${hours} h ${rest} min` : `${hours} h`;
}

function relativeWords(kind, away) {
  const ahead = kind !== "ago" && away > 0;
  const distance = timeWords(Math.abs(away));
  const past = away > -1000 ? "just now" : `${distance} ago`;
  if (kind === "since" && !ahead) return `for ${distance}`;
  if (kind === "left") return ahead ? `for another ${distance}` : `until ${past}`;
  if (kind === "by") return ahead ? `within ${distance}` : `(due ${past})`;
  return ahead ? `in ${distance}` : past;
}

// Counts the relative times up and down, so that a page need not be read again for them.
function tick() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const text = relativeWords(time.dataset.relative, Date.parse(time.dateTime) - now);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Changes `old` into `fresh` in place: what stays the same keeps its focus, scroll and selection.
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh.cloneNode(true));
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  const kept = old.nodeName === "DETAILS" ? ["open"] : [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.matches("time[data-relative], button[data-copy]")) return; // the words are this script's
  if (old.nodeName === "FORM") return; // what somebody types there stays
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((node, place) => {
    if (place < before.length) morph(before[place], node);
    else old.append(node.cloneNode(true));
  });
  before.slice(after.length).forEach((node) => node.remove());
}

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

setInterval(() => document.hidden || tick(), 1000);
