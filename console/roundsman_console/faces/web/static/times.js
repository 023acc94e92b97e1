// Instants as a person chose to see them: relative, in UTC or in the zone of the browser.
"use strict";

// The words of roundsman_console/faces/web/times.py for a time in milliseconds.
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

// The choice of roundsman_console/faces/web/time_style.py: a cookie, so that the server shows the same.
const TIMES_COOKIE = "roundsman_times";

function timeStyle() {
  const found = document.cookie.split("; ").find((one) => one.startsWith(`${TIMES_COOKIE}=`));
  const style = found ? found.slice(TIMES_COOKIE.length + 1) : "relative";
  return ["utc", "local"].includes(style) ? style : "relative";
}

function two(number) {
  return String(number).padStart(2, "0");
}

// An instant in epoch ms as `2026-12-01 09:42:05 UTC`, or with the offset of the browser's zone.
function instantWords(instant, style) {
  const offset = style === "local" ? -new Date(instant).getTimezoneOffset() : 0; // minutes
  const shown = new Date(instant + offset * 60000).toISOString();
  const sign = offset < 0 ? "-" : "+";
  const away = `${sign}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${shown.slice(0, 10)} ${shown.slice(11, 19)} ${style === "local" ? away : "UTC"}`;
}

const BEFORE_INSTANT = { at: "at ", since: "since ", left: "until ", by: "by " };

// By how much the clock of the console is ahead of that of the browser, in ms: the instants of a
// page are those of the console. What is less than the time that a page may take is no difference.
let clockAhead = 0;
const CLOCKS_DIFFER = 15000;

function learnClock(readAt) {
  const ahead = Date.parse(readAt) - Date.now();
  clockAhead = Math.abs(ahead) < CLOCKS_DIFFER ? 0 : ahead;
}

function consoleNow() {
  return Date.now() + clockAhead;
}

function shownTime(kind, instant, style) {
  if (style === "relative") return relativeWords(kind, instant - consoleNow());
  return (BEFORE_INSTANT[kind] ?? "") + instantWords(instant, style);
}

// Counts the relative times up and down, so that a page need not be read again for them.
function tick() {
  const style = timeStyle();
  document.documentElement.dataset.times = style;
  // A sentence that is read aloud when it changes is not read again for a time that is counted on.
  for (const time of document.querySelectorAll("[role=status] time, [role=alert] time")) time.ariaLive = "off";
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const text = shownTime(time.dataset.relative, Date.parse(time.dateTime), style);
    if (time.textContent !== text) time.textContent = text;
  }
  for (const link of document.querySelectorAll("a[data-times-as]")) {
    if (link.dataset.timesAs === style) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// The switch works without this script too: it is a link. With it, the page stays as it is.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-times-as]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const kept = "; Path=/; Max-Age=31536000; SameSite=Strict";
  document.cookie = `${TIMES_COOKIE}=${link.dataset.timesAs}${kept}`;
  tick();
});

// What is copied has its instants as ISO 8601, whatever is shown.
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0);
  const around = range.commonAncestorContainer;
  const alone = (around.nodeType === Node.TEXT_NODE ? around.parentElement : around).closest("time");
  const part = document.createElement("div");
  part.append(range.cloneContents());
  const times = part.querySelectorAll("time[datetime]");
  if (!alone && !times.length) return;
  for (const time of times) time.textContent = time.dateTime;
  part.className = "hidden";
  document.body.append(part); // the text of an element is as it is laid out, with its lines
  event.clipboardData.setData("text/plain", alone ? alone.dateTime : part.innerText);
  part.remove();
  event.preventDefault();
});

learnClock(document.getElementById("read-at").dateTime);
setInterval(() => document.hidden || tick(), 1000);
tick();
