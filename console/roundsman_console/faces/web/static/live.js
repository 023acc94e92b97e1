// The strip on top of the page: whether the page is live, when it was read, or why it is stale.
//
// A live page is asked for again every few seconds, and what has changed is changed in place. Short
// requests, and not one long stream: a browser allows six connections to a host at a time, which so
// are enough for any number of tabs. A page that cannot be read keeps what was read last.
//
// How long a page may say Live is in roundsman_console/faces/web/live.py; its times are on the strip.
"use strict";

const NO_ANSWER = "The console does not answer. It ended, or this machine was asleep: look at the terminal of `roundsman ui`.";
const SIGNED_OUT = "Your session has ended.";
const OFFLINE = "This browser is offline.";
const AWS_SILENT = "AWS was not reached for 5 s.";
const OLD_READING = "The page could not be read again in time.";
const ASK_AGAIN = 250; // ms at least from an answer of the console to the next question
const ASLEEP = 2000; // ms by which the clock of the machine may run ahead of the browser's
const SHOWN_FROM = 1000; // ms; "STALE for 0 s" says nothing

const strip = document.getElementById("strip");
const times = Object.fromEntries(
  ["askEvery", "askWithin", "staleAfter", "pageWithin"].map((name) => [name, Number(strip.dataset[name])]),
);

// An instant by two clocks: one stands while the machine sleeps, and the other one can be set.
function present() {
  return { ran: performance.now(), set: Date.now() };
}

function after(instant, ms) {
  return { ran: instant.ran + ms, set: instant.set + ms };
}

function ageOf(instant) {
  return Math.max(performance.now() - instant.ran, Date.now() - instant.set);
}

const loadedAt = after(present(), -performance.now());

let consoleWhy = ""; // why the console did not answer; empty if it did
let heardAt = loadedAt; // when it answered last
let awsWhy = ""; // why AWS is not reached, as the console says; empty if it is
let answeredAt = null; // when AWS answered last
let readingWhy = ""; // why the page could not be read; empty if it was
let readAt = loadedAt; // when the reading that is shown was begun
let resumedAt = loadedAt; // since when somebody looks: what was known before is asked for again
let wokeAt = after(loadedAt, -Infinity); // when the machine was asleep last: the console, which slept too, does not know

let nextReading = null; // timers
let nextQuestion = null;
let nextLook = null;
let reading = null; // abort the requests that are under way
let question = null;
let shownSince = null;
let known = ""; // the fingerprints of the parts that are shown, as the last reading told them

function isLive() {
  return document.querySelector("main[data-live]") !== null;
}

// What the strip says now: a state, its words, and of a stale page why, and since when.
function found() {
  const stale = (why, since) => ({ state: "stale", words: "STALE", why, since });
  const isAsked = ageOf(resumedAt) < times.staleAfter;
  const unknown = { state: "read", words: "" };
  if (consoleWhy) return stale(consoleWhy, heardAt);
  if (awsWhy) return stale(awsWhy, answeredAt ?? loadedAt);
  if (answeredAt === null || ageOf(answeredAt) >= times.staleAfter) {
    return isAsked ? unknown : stale(AWS_SILENT, answeredAt ?? loadedAt);
  }
  if (readingWhy) return stale(readingWhy, readAt);
  if (isLive() && ageOf(readAt) >= longestReading()) {
    return isAsked ? unknown : stale(OLD_READING, readAt);
  }
  if (document.querySelector("#main .causes")) {
    return { state: "partly", words: "NOT WHOLE", why: "the reason is below.", since: readAt };
  }
  const once = document.querySelector("main[data-once]");
  return { state: "live", words: isLive() ? "Live" : once ? `${once.dataset.once},` : "" };
}

function longestReading() {
  return document.querySelector("main[data-live]").dataset.every * 1000 + times.pageWithin;
}

function setText(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text; // it is read aloud when it changes
}

function show() {
  if (hasSlept()) {
    resumedAt = wokeAt = present();
    ask();
  }
  const { state, words, why = "", since = null } = found();
  document.body.classList.toggle("stale", state === "stale");
  strip.dataset.state = state;
  setText("live-state", words);
  setText("live-why", why);
  if (since !== null) {
    if (since !== shownSince) {
      document.getElementById("stale-since").dateTime = new Date(consoleNow() - ageOf(since)).toISOString();
    }
    document.getElementById("stale-for").hidden = ageOf(since) < SHOWN_FROM;
  }
  shownSince = since;
  const again = document.getElementById("again");
  if (again) again.textContent = state === "live" || state === "read" ? "Read again" : "Try again";
  tick();
  planLook();
}

// Whether the machine was asleep, or its clock was set, since this was asked last.
let looked = present();
function hasSlept() {
  const before = looked;
  looked = present();
  return looked.set - before.set - (looked.ran - before.ran) > ASLEEP;
}

// Looks again when what is known has become too old, also if nothing answers.
function planLook() {
  clearTimeout(nextLook);
  const ends = [];
  if (answeredAt !== null) ends.push(times.staleAfter - ageOf(answeredAt));
  if (isLive()) ends.push(longestReading() - ageOf(readAt));
  ends.push(times.staleAfter - ageOf(resumedAt));
  const next = Math.min(...ends.filter((one) => one > 0));
  if (Number.isFinite(next)) nextLook = setTimeout(show, next);
}

function sentenceOf(fresh) {
  return fresh.querySelector("#main .problem")?.textContent.trim() || NO_ANSWER;
}

function parsed(text) {
  return new DOMParser().parseFromString(text, "text/html");
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

function wasRead(stamp, begunAt) {
  learnClock(stamp);
  document.getElementById("read-at").dateTime = stamp;
  readingWhy = "";
  readAt = begunAt;
}

function showPage(fresh, begunAt) {
  keepSameParts(fresh);
  keepOldParts(fresh);
  morph(document.getElementById("main"), fresh.getElementById("main"));
  document.title = fresh.title;
  wasRead(fresh.getElementById("read-at").dateTime, begunAt);
}

async function readAgain() {
  stopReading();
  const mine = (reading = new AbortController());
  const begunAt = present();
  const tooLong = setTimeout(() => mine.abort(), times.pageWithin);
  try {
    const page = location.pathname + location.search;
    const answer = await fetch(`/live?page=${encodeURIComponent(page)}`, {
      signal: mine.signal,
      headers: known ? { "If-None-Match": known } : {},
      redirect: "manual", // a load balancer sends who is not signed in elsewhere
    });
    const fresh = parsed(await answer.text());
    if (mine !== reading) return;
    const isSame = answer.status === 304; // only the time of the reading is new
    if (answer.ok || isSame) known = answer.headers.get("ETag") ?? "";
    if (isSame) wasRead(answer.headers.get("Read-At"), begunAt);
    else if (answer.ok) showPage(fresh, begunAt);
    else if (answer.type === "opaqueredirect") consoleWhy = SIGNED_OUT;
    else if (answer.status === 401 || answer.status === 403) consoleWhy = sentenceOf(fresh);
    else readingWhy = sentenceOf(fresh);
  } catch {
    if (mine !== reading) return; // this tab was hidden, or asked again
    if (mine.signal.aborted) readingWhy = OLD_READING;
    else consoleWhy = unreached();
  } finally {
    clearTimeout(tooLong);
    if (mine === reading) {
      reading = null;
      planReading();
      show();
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
  const before = reading;
  reading = null;
  before?.abort();
}

function unreached() {
  return navigator.onLine ? NO_ANSWER : OFFLINE;
}

// Every page shows within seconds that the console has ended or that AWS is not reached, also one
// that is not live.
async function ask() {
  clearTimeout(nextQuestion);
  const before = question;
  question = null;
  before?.abort();
  if (document.hidden) return;
  const mine = (question = new AbortController());
  const askedAt = present();
  const tooLong = setTimeout(() => mine.abort(), times.askWithin);
  let next = times.askEvery;
  try {
    const answer = await fetch("/alive", { signal: mine.signal, redirect: "manual" });
    const text = await answer.text();
    if (mine !== question) return;
    if (answer.ok) next = take(JSON.parse(text), askedAt);
    else if (answer.type === "opaqueredirect") consoleWhy = SIGNED_OUT;
    else consoleWhy = sentenceOf(parsed(text));
  } catch {
    if (mine !== question) return;
    consoleWhy = unreached();
  } finally {
    clearTimeout(tooLong);
    if (mine === question) {
      question = null;
      nextQuestion = setTimeout(ask, Math.max(ASK_AGAIN, next - ageOf(askedAt)));
      show();
    }
  }
}

// Takes what the console says, and returns after how many ms of the question to ask again.
function take(said, askedAt) {
  const wasStale = consoleWhy || awsWhy || (isLive() && ageOf(readAt) >= longestReading());
  consoleWhy = "";
  heardAt = askedAt;
  awsWhy = said.why;
  const at = said.answeredAfter === null ? null : after(askedAt, said.answeredAfter);
  if (at !== null && at.ran >= wokeAt.ran) answeredAt = at;
  showNotes(said.notes);
  if (wasStale && !awsWhy) heal();
  return said.nextAfter;
}

// What could not be read is read now, and not only when its time has come.
function heal() {
  const again = document.getElementById("again");
  if (isLive()) {
    if (!reading) readAgain();
  } else if (document.querySelector("main[data-unread]") && again) {
    location.replace(again.href); // a page that is not live, and that shows nothing but the error
  }
}

// What is wrong beside the page: the supervisor is silent, a clock is wrong.
let notesShown = null;
function showNotes(notes) {
  const text = JSON.stringify(notes);
  if (text === notesShown) return;
  notesShown = text;
  const made = notes.map(({ sentence, lastPassAt }) => {
    const note = document.createElement("p");
    note.className = "frame shared";
    note.textContent = sentence;
    if (lastPassAt === null) return note;
    const time = document.createElement("time");
    time.dateTime = time.title = lastPassAt;
    time.dataset.relative = "ago";
    note.append(" Last pass: ", time, ".");
    return note;
  });
  document.getElementById("strip-notes").replaceChildren(...made);
}

// Somebody looks again: nothing of what was known before is believed until it is asked for.
function resume() {
  resumedAt = present();
  ask();
  if (isLive()) readAgain();
  show();
}

// A hidden tab reads nothing.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    resume();
    return;
  }
  stopReading();
  clearTimeout(nextQuestion);
});
addEventListener("pageshow", (event) => event.persisted && resume());
addEventListener("online", ask);
addEventListener("offline", ask);

document.getElementById("again")?.addEventListener("click", (event) => {
  if (!isLive()) return; // the link loads the page again
  event.preventDefault();
  readAgain();
});

setInterval(() => document.hidden || show(), 1000);

if (document.querySelector("main[data-unread]")) readingWhy = sentenceOf(document);
show();
planReading();
ask();
