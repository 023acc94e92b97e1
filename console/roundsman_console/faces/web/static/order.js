// The page of one order. Without this script it can still be read and used.
"use strict";

// Copies a long text from beside the button, so that the page need not have it twice.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copies]");
  if (!button) return;
  let text = "Copied";
  try {
    await navigator.clipboard.writeText(button.closest(".copied").querySelector("pre").textContent);
  } catch {
    text = "Could not copy"; // the browser refused; the text beside the button can be selected
  }
  button.textContent = text;
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

// A drawing that is wider or higher than its place begins where the trouble is.
for (const region of document.querySelectorAll(".graph-scroll")) {
  const trouble = region.querySelector("[data-trouble]");
  if (!trouble) continue;
  const place = region.getBoundingClientRect();
  const box = trouble.getBoundingClientRect();
  region.scrollLeft += box.left + box.width / 2 - place.left - place.width / 2;
  region.scrollTop += box.top + box.height / 2 - place.top - place.height / 2;
}
