// The parts of the page, as the server makes them anew. What a person opened, focused, or scrolled
// stays as it was.
const link = document.getElementById("link");
const state = (text, bad) => {
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("bad", bad);
};
const put = (id, html) => {
  const part = document.getElementById(id);
  if (!part) return;
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  const scrolls = [...part.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  const focused = active && [...part.querySelectorAll("button,summary,[tabindex]")].indexOf(active);
  part.innerHTML = html;
  dress(part);
  part.querySelectorAll("details").forEach((one, at) => { if (open[at]) one.open = true; });
  part.querySelectorAll(".scroll").forEach((one, at) => { if (scrolls[at]) one.scrollTo(...scrolls[at]); });
  if (active) {
    const same = active.id && document.getElementById(active.id);
    const next = same || part.querySelectorAll("button,summary,[tabindex]")[focused];
    if (next) next.focus({ preventScroll: true });
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
document.addEventListener("submit", async (event) => {
  const button = event.submitter;
  if (!button || button.name !== "do") return;
  event.preventDefault();
  button.disabled = true;
  try {
    const answer = await fetch("control", { method: "POST", body: new URLSearchParams({ do: button.value }) });
    if (!answer.ok) state(await answer.text(), true);
  } catch {
    state("no connection; nothing was changed", true);
  }
  button.disabled = false;
});
