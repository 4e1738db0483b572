// What the pages do beyond links and forms. Everything works without this file.
"use strict";

// Copy buttons are printed hidden; whoever can run this can use them.
function showCopyButtons(root) {
  for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
}

async function copy(button) {
  const text = button.closest("figure").querySelector("code").textContent;
  const label = button.querySelector("span") || button;
  try {
    await navigator.clipboard.writeText(text);
    label.textContent = "Copied";
  } catch {
    // No clipboard outside https: select the text, so that one key copies it.
    getSelection().selectAllChildren(button.closest("figure").querySelector("code"));
    label.textContent = "Selected";
  }
  setTimeout(() => { label.textContent = "Copy"; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

const polls = (element) => (element.getAttribute("hx-trigger") || "").includes("every");

// Nobody looks: don't ask.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && polls(event.target)) event.preventDefault();
});

// The same bytes as last time: leave the page alone, with its selection, focus and open folds.
const seen = new Map();
document.addEventListener("htmx:beforeSwap", (event) => {
  const tag = event.detail.xhr.getResponseHeader("ETag");
  const path = event.detail.pathInfo.requestPath;
  if (tag && seen.get(path) === tag) event.detail.shouldSwap = false;
  if (tag) seen.set(path, tag);
});

// A fold that the reader opened stays open across a swap.
const open = new Set();
document.addEventListener("toggle", (event) => {
  if (event.target.id) open[event.target.open ? "add" : "delete"](event.target.id);
}, true);
document.addEventListener("htmx:afterSettle", () => {
  showCopyButtons(document);
  for (const id of open) {
    const fold = document.getElementById(id);
    if (fold) fold.open = true;
  }
});

// A log that is read at its end stays at its end.
let atEnd = true;
const log = () => document.querySelector(".log");
document.addEventListener("htmx:beforeSwap", () => {
  const list = log();
  atEnd = Boolean(list) && list.scrollHeight - list.scrollTop - list.clientHeight < 40;
});
function followLog() {
  const list = log();
  if (list && atEnd) list.scrollTop = list.scrollHeight;
}
document.addEventListener("htmx:afterSettle", followLog);

// Something happened on the board: whatever on this page listens for it asks anew. Nothing moves by itself.
let telling = 0;
function tellPage() {
  clearTimeout(telling);
  telling = setTimeout(() => {
    if (!document.hidden) document.body.dispatchEvent(new Event("changed"));
  }, 200);
}
document.addEventListener("visibilitychange", tellPage);

// One stream of events for all tabs, where the browser lets tabs agree on who holds it. Without it pages still poll.
const tabs = "BroadcastChannel" in window ? new BroadcastChannel("paddock") : null;
if (tabs) tabs.addEventListener("message", tellPage);
function followEvents() {
  const stream = new EventSource("/v1/events");
  const tell = () => {
    if (tabs) tabs.postMessage("changed");
    tellPage();
  };
  for (const kind of ["open", "message", "result", "note", "taskforce", "file", "trace", "verdict", "job", "moderation", "reset"]) {
    stream.addEventListener(kind, tell);
  }
  return new Promise(() => {}); // as long as this tab lives
}
if (document.querySelector("[hx-trigger^='changed']")) {
  if (navigator.locks) navigator.locks.request("paddock-events", followEvents);
  else followEvents();
}

showCopyButtons(document);
if (!location.hash) followLog();
