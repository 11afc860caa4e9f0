// Shows the objects that match the filters. The filters are part of the address, so that a link shows the same.
"use strict";
const form = document.getElementById("filter");
const objects = [...document.querySelectorAll(".object")];

function show() {
  const filter = new FormData(form);
  const text = filter.get("text").trim().toLowerCase();
  const actions = new Set(filter.getAll("action"));
  for (const object of objects) {
    const matches = object.textContent.toLowerCase().includes(text);
    object.hidden = !(matches && actions.has(object.dataset.action));
  }
  const isFiltered = text !== "" || form.querySelector("[name=action]:not(:checked)") !== null;
  for (const section of document.querySelectorAll("section")) {
    // A root without changed objects has something else to say, such as why it does not build.
    section.hidden = isFiltered && section.querySelector(".object:not([hidden])") === null;
    for (const link of document.querySelectorAll(`nav a[href="#${section.id}"]`)) {
      link.hidden = section.hidden;
    }
  }
  const shown = objects.filter((object) => !object.hidden).length;
  form.querySelector("output").value = isFiltered ? `${shown} of ${objects.length} objects` : "";
}

function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has("text")) form.elements.text.value = wanted.get("text");
  if (wanted.has("action")) {
    const actions = wanted.get("action").split(",");
    for (const box of form.querySelectorAll("[name=action]")) box.checked = actions.includes(box.value);
  }
  show();
}

function writeAddress() {
  const filter = new FormData(form);
  const wanted = new URLSearchParams();
  if (filter.get("text") !== "") wanted.set("text", filter.get("text"));
  if (form.querySelector("[name=action]:not(:checked)")) wanted.set("action", filter.getAll("action").join(","));
  history.replaceState(null, "", `#${wanted}`);
  show();
}

form.addEventListener("input", writeAddress);
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", readAddress);
readAddress();
