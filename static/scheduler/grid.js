// A cell's link opens its panel beside the grid; a second time, or with a modifier, its page. Arrows go from cell to cell.
const grid = document.querySelector(".grid"), panel = document.getElementById("cell");
const task = /\/runs\/([^/]+)\/tasks\/([^/]+)\/$/;
let asked = 0;

function mark(link) {
  for (const one of grid.querySelectorAll("td a[aria-current]")) one.removeAttribute("aria-current");
  link?.setAttribute("aria-current", "true");
}

async function open(link) {
  const mine = ++asked, [, run, name] = task.exec(link.pathname);
  mark(link);
  const answer = await fetch(`${link.pathname}panel/`);
  if (mine !== asked) return;
  if (!answer.ok || answer.redirected) { location.href = link.href; return; }
  panel.innerHTML = await answer.text();
  window.htmx?.process(panel);
  const place = new URL(location);
  place.searchParams.set("cell", `${decodeURIComponent(run)}/${decodeURIComponent(name)}`);
  history.replaceState(null, "", place);
  if (panel.getBoundingClientRect().top > innerHeight - 80) panel.scrollIntoView({ block: "nearest" });
}

grid?.addEventListener("click", (event) => {
  const link = event.target.closest("td a");
  if (!link || !task.test(link.pathname) || event.ctrlKey || event.metaKey || event.shiftKey || link.hasAttribute("aria-current")) return;
  event.preventDefault();
  open(link);
});

grid?.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const from = event.target.closest("td");
  if (!step || !from) return;
  event.preventDefault();
  let row = from.parentElement, column = from.cellIndex;
  for (;;) {
    row = step[0] ? grid.rows[row.rowIndex + step[0]] : row;
    column += step[1];
    const next = row?.cells[column];
    if (!next || next.matches("th")) return;
    const link = next.querySelector("a");
    if (link) { link.focus(); return; }
  }
});

const chosen = new URL(location).searchParams.get("cell");
if (grid && chosen) mark([...grid.querySelectorAll("td a")].find((link) => {
  const found = task.exec(link.pathname);
  return found && `${decodeURIComponent(found[1])}/${decodeURIComponent(found[2])}` === chosen;
}));
