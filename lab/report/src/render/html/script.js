"use strict";
const dress = (root) => { for (const table of root.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (table.classList.contains("sorts")) {
    const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
    [...heads].forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === (at ? "descending" : "ascending");
        const up = at ? down : !down;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[at];
          return cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell ? cell.textContent : "";
        };
        const rows = [...body.rows];
        rows.sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === "–" || y === "–") return (x === "–") - (y === "–");
          const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
  }
  const box = table.closest(".scroll");
  if (!box || !navigator.clipboard) continue;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "copy";
  copy.textContent = "Copy table";
  copy.addEventListener("click", async () => {
    const rows = [...table.rows].map((row) =>
      [...row.cells].flatMap((cell) => [cell.textContent.trim(), ...Array(cell.colSpan - 1).fill("")]).join("\t"));
    try {
      await navigator.clipboard.writeText(rows.join("\n"));
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not allowed here";
    }
    setTimeout(() => { copy.textContent = "Copy table"; }, 1500);
  });
  const details = box.closest("details");
  if (!details) box.before(copy);
} };
const zoom = (figure) => {
  const graph = figure.querySelector("svg.flames");
  const frames = [...graph.querySelectorAll("svg")].map((box) => {
    const [x, width, y] = ["x", "width", "y"].map((name) => parseFloat(box.getAttribute(name)));
    return { box, x, width, y, name: box.querySelector("title").textContent.split("\n")[0] };
  });
  let [from, span] = [0, 100];
  const draw = () => {
    const letters = graph.clientWidth / 6.2;
    for (const { box, x, width, name } of frames) {
      const [start, end] = [(x - from) / span, (x + width - from) / span];
      const [left, right] = [Math.max(start, 0), Math.min(end, 1)];
      const shown = right - left > 0.0003;
      box.style.display = shown ? "" : "none";
      if (!shown) continue;
      box.setAttribute("x", `${100 * left}%`);
      box.setAttribute("width", `${100 * (right - left)}%`);
      box.classList.toggle("above", start < -1e-6 || end > 1 + 1e-6);
      const room = Math.floor((right - left) * letters);
      let text = box.querySelector("text");
      if (!text) {
        if (room < 3) continue;
        text = document.createElementNS(graph.namespaceURI, "text");
        text.setAttribute("x", "4");
        text.setAttribute("y", "13");
        box.append(text);
      }
      const fits = name.length <= room ? name : name.split("/").pop().split("::").slice(-2).join("::");
      text.textContent = room < 3 ? "" : fits.length <= room ? fits : `${fits.slice(0, room - 1)}…`;
    }
    whole.hidden = span >= 100;
  };
  const element = (kind, settings) => Object.assign(document.createElement(kind), settings);
  const whole = element("button", { type: "button", textContent: "Show all", hidden: true });
  const input = element("input", { type: "search", placeholder: "Search functions" });
  input.setAttribute("aria-label", "Search functions");
  const found = element("span", {});
  found.setAttribute("role", "status");
  const into = (x, width) => { [from, span] = [x, width]; draw(); };
  whole.addEventListener("click", () => into(0, 100));
  for (const one of frames) one.box.addEventListener("click", () => into(one.x, one.width));
  input.addEventListener("input", () => {
    const sought = input.value.trim().toLowerCase();
    let [sum, count, outer] = [0, 0, null];
    for (const one of frames) {
      const hit = sought !== "" && one.name.toLowerCase().includes(sought);
      one.box.classList.toggle("hit", hit);
      if (!hit) continue;
      count += 1;
      // Frames are in order after their callers: skip a frame inside the last counted one.
      if (outer && one.y > outer.y && one.x + one.width <= outer.x + outer.width + 0.01) continue;
      sum += one.width;
      outer = one;
    }
    found.textContent = sought === "" ? "" : `${count} frames, ${sum.toFixed(1)} %`;
  });
  const bar = element("div", { className: "seek" });
  bar.append(input, whole, found);
  figure.prepend(bar);
  let width = 0;
  new ResizeObserver(() => {
    if (graph.clientWidth === width) return;
    width = graph.clientWidth;
    draw();
  }).observe(graph);
};
for (const figure of document.querySelectorAll("figure.flame")) zoom(figure);
dress(document);
