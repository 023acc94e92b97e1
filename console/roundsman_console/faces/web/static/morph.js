// Changes a page in place: what stays the same keeps its focus, its scroll and its selection.
//
// Elements with a key (`data-key`) keep it: a row that another one comes before is still the same
// row. In a list that holds its rows (`data-hold`), rows are changed but never moved: new ones wait
// until somebody asks for them, so that nothing moves under the pointer.
"use strict";

// Changes `old` into `fresh`.
function morph(old, fresh) {
  const focused = document.activeElement;
  if (!holdWhatIsGone(old, fresh)) change(old, fresh);
  if (focused?.isConnected && document.activeElement !== focused) {
    focused.focus({ preventScroll: true }); // an element that is moved loses it
  }
}

// Changes `old` into `fresh`, and returns the node that is in its place.
function change(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    const made = fresh.cloneNode(true);
    old.replaceWith(made);
    return made;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return old;
  }
  if (old.nodeType !== Node.ELEMENT_NODE || old.matches("[data-news]")) return old;
  if (old.nodeName === "FORM") return changeForm(old, fresh);
  const kept = old.nodeName === "DETAILS" ? ["open"] : [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.matches("time[data-relative], button[data-copy]")) return old; // the words are the script's
  if (old.dataset.hold !== undefined) holdRows(old, fresh);
  else changeChildren(old, fresh);
  return old;
}

// What somebody types in a form stays. What nobody types follows the page: hidden fields, and the
// words of the buttons. A form that is another one takes its place, with what both ask for.
function changeForm(old, fresh) {
  if (!old.hasAttribute("action")) return old; // its script has made what is in it
  const parts = (form) => [...form.querySelectorAll("button, input[type=hidden]")];
  const kind = (form) => [form.getAttribute("action"), ...parts(form).map((one) => one.name)].join();
  if (kind(old) !== kind(fresh)) {
    const made = fresh.cloneNode(true);
    takeTyped(old, made);
    old.replaceWith(made);
    return made;
  }
  const now = parts(fresh);
  parts(old).forEach((one, place) => {
    if (one.nodeName === "BUTTON") changeChildren(one, now[place]);
    else if (one.value !== now[place].value) one.value = now[place].value;
  });
  return old;
}

function takeTyped(old, fresh) {
  for (const one of old.querySelectorAll("input[name=reason], textarea")) {
    const same = fresh.elements.namedItem(one.name);
    if (same && one.value !== one.defaultValue) same.value = one.value;
  }
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined;
}

// Children with a key are found by it, and the others by their place among each other.
function changeChildren(old, fresh) {
  const byKey = new Map();
  const others = [];
  for (const node of old.childNodes) {
    const key = keyOf(node);
    if (key === undefined) others.push(node);
    else byKey.set(key, node);
  }
  let place = old.firstChild; // where the next child belongs
  for (const node of [...fresh.childNodes]) {
    const key = keyOf(node);
    const found = key === undefined ? others.shift() : byKey.get(key);
    byKey.delete(key);
    if (found === undefined) {
      old.insertBefore(node.cloneNode(true), place);
    } else if (found === place) {
      place = change(found, node).nextSibling;
    } else {
      old.insertBefore(change(found, node), place);
    }
  }
  for (const node of [...byKey.values(), ...others]) node.remove();
}

const waiting = new WeakMap(); // a list that holds its rows, and its rows as they are by now

// Changes the rows that are shown, and says how many others there are by now.
function holdRows(old, fresh) {
  const coming = new Map([...fresh.children].map((row) => [row.dataset.key, row]));
  const rows = [...old.children];
  const last = rows.findLastIndex((row) => coming.has(row.dataset.key));
  let gone = 0;
  rows.forEach((row, place) => {
    const now = coming.get(row.dataset.key);
    coming.delete(row.dataset.key);
    if (now) {
      change(row, now);
    } else if (place < last || coming.size === 0) {
      row.classList.add("gone"); // others at the end may only have moved to the next page
      gone += 1;
    }
  });
  waiting.set(old, fresh.cloneNode(true));
  sayNews(coming.size, gone, () => {
    changeChildren(old, waiting.get(old));
    return old;
  });
}

// A list of which no row is left stays too, until somebody asks. Returns whether it does.
function holdWhatIsGone(old, fresh) {
  const list = old.querySelector("tbody[data-hold]");
  if (!list || fresh.querySelector("tbody[data-hold]") || !fresh.querySelector(".empty")) return false;
  for (const row of list.children) row.classList.add("gone");
  const empty = fresh.cloneNode(true);
  sayNews(0, list.children.length, () => change(old, empty));
  return true;
}

// Says how many rows are new or gone, with a button that shows the list as it is by now.
function sayNews(fresh, gone, show) {
  const news = document.querySelector("[data-news]");
  if (!news) return;
  const words = [fresh ? `${fresh} new` : "", gone ? `${gone} no longer here` : ""];
  const text = words.filter(Boolean).join(", ");
  if (!text) {
    news.replaceChildren();
    return;
  }
  const button = news.querySelector("button") ?? document.createElement("button");
  button.type = "button";
  if (button.textContent !== `${text}: show`) button.textContent = `${text}: show`;
  button.onclick = () => {
    const focused = document.activeElement;
    news.replaceChildren();
    const shown = show();
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    else shown.querySelector("a")?.focus({ preventScroll: true });
  };
  if (!button.isConnected) news.append(button);
}

// The box in the head of a list ticks all boxes of its form.
document.addEventListener("change", (event) => {
  if (!event.target.matches("input[data-all]")) return;
  const boxes = document.querySelectorAll(`input[form="${event.target.dataset.all}"][type="checkbox"]`);
  for (const box of boxes) box.checked = event.target.checked;
});
