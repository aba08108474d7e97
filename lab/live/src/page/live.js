// Replaces parts of the page with the server's new versions. Keeps what the user has opened, focused,
// or scrolled.
const link = document.getElementById("link");
const state = (text, bad) => {
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("bad", bad);
};
const FOCUSED = "button,summary,a[href],[tabindex]";
// The elements of a part, named by their text and, for equal texts, by their number.
const named = (part, selector) => {
  const times = new Map();
  return [...part.querySelectorAll(selector)].map((one) => {
    const says = one.querySelector("summary,thead") || one;
    const text = one.id || one.getAttribute("aria-label") || says.textContent;
    times.set(text, (times.get(text) || 0) + 1);
    return { one, name: `${times.get(text)} ${text}` };
  });
};
// Finds the element of the new part that corresponds to an element of the old part. An element whose text has changed
// is found by its position, unless it has an id: after the removal of a button, "Stop" must never be taken for "Skip".
const again = (was, before, now) => {
  const same = now.find((other) => other.name === was.name);
  if (same || was.one.id) return same && same.one;
  const other = now[before.indexOf(was)];
  return other && !other.one.id && !before.some((one) => one.name === other.name) ? other.one : undefined;
};
const carry = (part, selector, keep) => {
  const before = named(part, selector);
  const kept = before.flatMap((was) => { const take = keep(was.one); return take ? [[was, take]] : []; });
  return () => {
    const now = kept.length ? named(part, selector) : [];
    for (const [was, take] of kept) take(again(was, before, now));
  };
};
const sorted = (table) => {
  const heads = (of) => [...of.querySelectorAll("thead tr:last-child th")];
  const at = heads(table).findIndex((head) => head.hasAttribute("aria-sort"));
  if (at < 0) return null;
  const order = heads(table)[at].getAttribute("aria-sort");
  return (next) => {
    const head = next && heads(next)[at];
    const button = head && head.querySelector("button");
    for (let times = 0; button && times < 2 && head.getAttribute("aria-sort") !== order; times += 1) button.click();
  };
};
const put = (id, html) => {
  const part = document.getElementById(id);
  if (!part) return;
  const had = part.contains(document.activeElement) ? document.activeElement : null;
  const carried = [
    carry(part, "details", (one) => one.open && ((next) => { if (next) next.open = true; })),
    carry(part, "table.sorts", sorted),
    carry(part, ".scroll", (one) => {
      const at = [one.scrollLeft, one.scrollTop];
      return (next) => { if (next) next.scrollTo(...at); };
    }),
    carry(part, FOCUSED, (one) => one === had && ((next) => { if (next) next.focus({ preventScroll: true }); })),
  ];
  part.innerHTML = html;
  dress(part);
  for (const each of carried) each();
  // If the focused element is gone, focus its part, so that keyboard users do not restart at the top of the page.
  if (had && !part.contains(document.activeElement)) {
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  }
};
const entitle = () => {
  const where = document.querySelector("[data-title]");
  if (where) document.title = where.dataset.title;
};
const source = new EventSource("events");
source.addEventListener("open", () => state("live", false));
source.addEventListener("parts", (event) => {
  for (const [id, html] of Object.entries(JSON.parse(event.data))) put(id, html);
  entitle();
});
source.addEventListener("end", () => {
  source.close();
  state("the run is over", false);
});
source.addEventListener("error", () => {
  if (source.readyState !== EventSource.CLOSED) state("no connection; the run goes on by itself", true);
});
// Closes the confirmation after the action, so that a repeated key press does not affect the next trial.
const fold = (id) => {
  const button = document.getElementById(id);
  const details = button && button.closest("details");
  if (!details) return;
  details.open = false;
  details.querySelector("summary").focus({ preventScroll: true });
};
document.addEventListener("submit", async (event) => {
  const button = event.submitter;
  if (!button || button.name !== "do") return;
  event.preventDefault();
  // aria-disabled, because a disabled button loses the keyboard focus.
  if (button.ariaDisabled === "true") return;
  button.ariaDisabled = "true";
  try {
    const answer = await fetch("control", { method: "POST", body: new URLSearchParams({ do: button.value }) });
    if (answer.ok) fold(button.id);
    else state(await answer.text(), true);
  } catch {
    state("no connection; nothing was changed", true);
  }
  button.ariaDisabled = "false";
});
