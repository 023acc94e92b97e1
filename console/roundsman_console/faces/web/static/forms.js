// A form is sent only while the console lets this browser in. Otherwise nothing leaves the page, and so
// nothing that somebody has typed is lost.
"use strict";

const mayGo = new WeakSet(); // the forms of which the console has just said so
const waits = new WeakSet(); // those of which it is asked now

async function isLetIn() {
  try {
    const wanted = { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(times.askWithin) };
    return (await fetch("/alive", wanted)).ok;
  } catch {
    return false;
  }
}

function sayNotSent(form, why) {
  const said = form.querySelector(".not-sent") ?? document.createElement("p");
  said.className = "problem not-sent";
  said.setAttribute("role", "alert");
  if (!said.isConnected) form.append(said);
  said.textContent = `Nothing was sent. ${why} What you typed stays here. Open the console in another tab, and then send this form again.`;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || mayGo.delete(form)) return;
  event.preventDefault();
  if (waits.has(form)) return; // it was pressed twice
  waits.add(form);
  const go = await isLetIn();
  if (!go) await ask(); // it finds out why not
  waits.delete(form);
  if (!go) {
    sayNotSent(form, consoleWhy || NO_ANSWER);
    return;
  }
  form.querySelector(".not-sent")?.remove();
  mayGo.add(form);
  form.requestSubmit(event.submitter);
});
