// The strip on top of the page: whether the page is live, when it was read, or why it is stale.
//
// A live page is asked for again every few seconds, and what has changed is changed in place. Short
// requests, and not one long stream: a browser allows six connections to a host at a time, which so
// are enough for any number of tabs. A page that cannot be read keeps what was read last.
"use strict";

const ALIVE_EVERY = 4000; // ms from one sign of life of the console to the next
const ALIVE_WITHIN = 4000; // ms for such a sign; a dead console shows after at most both together
const PAGE_WITHIN = 15000; // ms for a page; the console itself gives up after 10 s
const NO_ANSWER = "The console does not answer. It ended, or this machine was asleep: look at the terminal of `roundsman ui`.";

let nextReading = null; // the timer
let asking = null; // aborts the request for the page
let known = ""; // the fingerprints of the parts that are shown, as the last reading told them
let isSilent = false; // whether the console did not answer, and so not AWS

function isLive() {
  return document.querySelector("main[data-live]") !== null;
}

function showState(state, words, why) {
  document.body.classList.toggle("stale", state === "stale");
  const strip = document.getElementById("strip");
  const line = document.getElementById("live-state");
  const since = document.getElementById("stale-since");
  if (state !== strip.dataset.state) since.dateTime = new Date(consoleNow()).toISOString();
  strip.dataset.state = state;
  if (line.textContent !== words) line.textContent = words; // it is read aloud when it changes
  const reason = document.getElementById("live-why");
  if (reason.textContent !== why) reason.textContent = why;
  const again = document.getElementById("again");
  if (again) again.textContent = state === "live" ? "Read again" : "Try again";
  tick();
}

// Nothing was read: the page shows what was read last.
function fail(why, silent) {
  isSilent = silent;
  showState("stale", "STALE", why);
}

function succeed() {
  isSilent = false;
  const isWhole = document.querySelector("#main .causes") === null;
  if (!isWhole) showState("partly", "NOT WHOLE", "the reason is below.");
  else showState("live", isLive() ? "Live" : "", "");
}

function sentenceOf(fresh) {
  return fresh.querySelector("#main .problem")?.textContent.trim() || NO_ANSWER;
}

// A part that could not be read this time keeps what it had.
function keepOldParts(fresh) {
  for (const hole of fresh.querySelectorAll("section[data-hole]")) {
    const name = CSS.escape(hole.getAttribute("aria-labelledby"));
    const shown = document.querySelector(`#main section[aria-labelledby="${name}"]`);
    if (!shown || shown.matches("[data-hole]")) continue;
    const kept = shown.cloneNode(true);
    kept.classList.add("old");
    hole.replaceWith(kept);
  }
}

// A part that is the same was not sent again.
function keepSameParts(fresh) {
  for (const same of fresh.querySelectorAll("section[data-same]")) {
    const name = CSS.escape(same.getAttribute("aria-labelledby"));
    const shown = document.querySelector(`#main section[aria-labelledby="${name}"]`);
    if (shown) same.replaceWith(shown.cloneNode(true));
    else known = ""; // it is sent as a whole the next time
  }
}

// Nothing is new: only the time of the reading is.
function showSame(readAt) {
  learnClock(readAt);
  document.getElementById("read-at").dateTime = readAt;
  succeed();
}

function showPage(fresh) {
  keepSameParts(fresh);
  keepOldParts(fresh);
  morph(document.getElementById("main"), fresh.getElementById("main"));
  const readAt = fresh.getElementById("read-at").dateTime;
  learnClock(readAt);
  document.getElementById("read-at").dateTime = readAt;
  document.title = fresh.title;
  succeed();
}

async function readAgain() {
  stopReading();
  const mine = (asking = new AbortController());
  const tooLong = setTimeout(() => mine.abort("too long"), PAGE_WITHIN);
  try {
    const page = location.pathname + location.search;
    const answer = await fetch(`/live?page=${encodeURIComponent(page)}`, {
      signal: mine.signal,
      headers: known ? { "If-None-Match": known } : {},
    });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asking) return;
    if (answer.ok || answer.status === 304) known = answer.headers.get("ETag") ?? "";
    if (answer.status === 304) showSame(answer.headers.get("Read-At"));
    else if (answer.ok) showPage(fresh);
    else fail(sentenceOf(fresh), answer.status === 403);
  } catch {
    if (mine !== asking) return; // this tab was hidden, or asked again
    fail(NO_ANSWER, true);
  } finally {
    clearTimeout(tooLong);
    if (mine === asking) {
      asking = null;
      planReading();
    }
  }
}

function planReading() {
  clearTimeout(nextReading);
  const main = document.querySelector("main[data-live]");
  if (main && !document.hidden) nextReading = setTimeout(readAgain, main.dataset.every * 1000);
}

function stopReading() {
  clearTimeout(nextReading);
  const before = asking;
  asking = null;
  before?.abort();
}

// Every page shows within seconds that the console has ended, also one that is not live.
async function askWhetherAlive() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/alive", { signal: AbortSignal.timeout(ALIVE_WITHIN) });
    if (!answer.ok) {
      fail(sentenceOf(new DOMParser().parseFromString(await answer.text(), "text/html")), true);
    } else if (isSilent && isLive()) {
      if (!asking) readAgain();
    } else if (isSilent) {
      succeed();
    }
  } catch {
    fail(NO_ANSWER, true);
  }
}

// A hidden tab reads nothing.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stopReading();
  else if (isLive()) readAgain();
  else askWhetherAlive();
});

document.getElementById("again")?.addEventListener("click", (event) => {
  if (!isLive()) return; // the link loads the page again
  event.preventDefault();
  readAgain();
});

if (document.querySelector("main[data-unread]")) {
  fail(sentenceOf(document), false);
} else {
  succeed();
}
planReading();
setInterval(askWhetherAlive, ALIVE_EVERY);
