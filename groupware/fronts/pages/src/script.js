// Progressive enhancements: each page works without this script.
"use strict";

// The browser's time zone, for users without a chosen zone.
for (const field of document.querySelectorAll("[data-zone]")) {
  try {
    field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  } catch {
    field.value = "";
  }
}

// Submits a form only once, even if its button is pressed repeatedly.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
});
// After a return from the next page, the form can be submitted again.
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

// Keeps an event's duration when its start changes, and hides the times of all-day events.
const start = ["start_day", "start_time"].map((id) => document.getElementById(id));
const end = ["end_day", "end_time"].map((id) => document.getElementById(id));
const allDay = document.getElementById("all_day");
if (allDay && start.every(Boolean) && end.every(Boolean)) {
  const read = ([day, time]) => Date.parse(`${day.value}T${time.value || "00:00"}Z`);
  let distance = read(end) - read(start);
  const startMoved = () => {
    const moved = new Date(read(start) + distance);
    if (distance < 0 || Number.isNaN(moved.getTime())) return;
    const text = moved.toISOString();
    end[0].value = text.slice(0, 10);
    if (end[1].value) end[1].value = text.slice(11, 16);
  };
  for (const field of start) field.addEventListener("change", startMoved);
  for (const field of end) {
    field.addEventListener("change", () => {
      distance = read(end) - read(start);
    });
  }
  const hideTimes = () => {
    for (const field of [start[1], end[1]]) field.closest(".field").hidden = allDay.checked;
  };
  allDay.addEventListener("change", hideTimes);
  hideTimes();
}

// Adds a checkbox that selects all mails of a page.
for (const place of document.querySelectorAll("[data-select-all]")) {
  const box = document.createElement("input");
  const label = document.createElement("label");
  box.type = "checkbox";
  box.id = "all";
  label.htmlFor = "all";
  label.textContent = "All";
  place.append(box, label);
  const picks = () => [...document.querySelectorAll("input[name=pick]")];
  box.addEventListener("change", () => {
    for (const pick of picks()) pick.checked = box.checked;
  });
  document.addEventListener("change", (event) => {
    if (event.target.name === "pick") box.checked = picks().every((pick) => pick.checked);
  });
}

// Completes the last name in a list of people.
for (const field of document.querySelectorAll("input[list=people-list]")) {
  const list = document.getElementById("people-list");
  let asked = "";
  field.addEventListener("input", async () => {
    const cut = field.value.search(/[^,;]*$/);
    const before = field.value.slice(0, cut);
    const typed = field.value.slice(cut).trim();
    if (!typed || typed === asked || !list) return;
    asked = typed;
    const answer = await fetch(`/people?begin=${encodeURIComponent(typed)}`).catch(() => null);
    if (!answer || !answer.ok || asked !== typed) return;
    const names = await answer.json();
    const lead = before && !before.endsWith(" ") ? `${before} ` : before;
    list.replaceChildren(...names.map((name) => new Option(name, lead + name)));
  });
}
