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
dress(document);
