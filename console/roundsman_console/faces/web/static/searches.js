// Searches of orders with names, kept in this browser alone. Without this script, a bookmark keeps one.
"use strict";

const PLACE = ["after", "before", "skip", "count"]; // where in the list a page is: no search keeps it
const MOST_SEARCHES = 20;

const saved = document.getElementById("saved");
const searches = saved.querySelector("ul");
const typed = saved.querySelector("input");
const store = `searches of ${saved.dataset.stack}`;

function keptSearches() {
  try {
    const found = JSON.parse(localStorage.getItem(store) ?? "[]");
    return found.filter((one) => typeof one?.name === "string" && typeof one?.query === "string");
  } catch {
    return []; // the browser keeps nothing, or something else is kept there
  }
}

// Keeps the searches; says so if the browser does not.
function keep(all) {
  try {
    localStorage.setItem(store, JSON.stringify(all.slice(-MOST_SEARCHES)));
    say("");
  } catch {
    say("This browser keeps nothing. A bookmark of this page keeps the search.");
  }
  showSearches();
}

function say(words) {
  document.getElementById("saved-says").textContent = words;
}

function askedNow() {
  const query = new URLSearchParams(location.search);
  for (const name of PLACE) query.delete(name);
  return query.toString();
}

function showSearches() {
  const now = askedNow();
  searches.replaceChildren(
    ...keptSearches().map(({ name, query }) => {
      const row = document.createElement("li");
      const link = document.createElement("a");
      link.href = `/orders?${query}`;
      link.textContent = name;
      if (query === now) link.setAttribute("aria-current", "page");
      const forget = document.createElement("button");
      forget.type = "button";
      forget.textContent = "Forget";
      forget.setAttribute("aria-label", `Forget the search ${name}`);
      forget.addEventListener("click", () => {
        keep(keptSearches().filter((one) => one.name !== name));
        typed.focus();
      });
      row.append(link, " ", forget);
      return row;
    }),
  );
}

saved.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = typed.value.trim();
  const query = askedNow();
  if (!query) return say("Choose a filter first, then save the search.");
  if (!name) return say("Give the search a name.");
  typed.value = "";
  keep([...keptSearches().filter((one) => one.name !== name), { name, query }]);
});
addEventListener("storage", showSearches); // another tab has saved one
showSearches();
