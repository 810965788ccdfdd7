// The search page in a dialog: arrows choose, Enter goes, Ctrl-Enter opens a new tab.
let timer, asked = 0, answer = Promise.resolve();

export function open(dialog, url) {
  if (dialog.open) return;
  dialog.replaceChildren();
  ask(dialog, url, "").then(() => dialog.querySelector("input")?.focus());
  dialog.showModal();
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  dialog.onkeydown = (event) => keys(dialog, event);
  dialog.oninput = (event) => { clearTimeout(timer); answer = new Promise((done) => { timer = setTimeout(() => load(dialog, url, event.target.value).then(done), 120); }); };
  dialog.onsubmit = (event) => { if (event.target.role === "search") event.preventDefault(); };
}

function ask(dialog, url, text) {
  answer = load(dialog, url, text);
  return answer;
}

async function load(dialog, url, text) {
  const mine = ++asked;
  const got = await fetch(`${url}?${new URLSearchParams({ q: text })}`);
  if (!got.ok || got.redirected || mine !== asked) { if (got.redirected) location.reload(); return; }
  const page = new DOMParser().parseFromString(await got.text(), "text/html");
  const box = page.querySelector("form[role=search]"), hits = page.getElementById("hits");
  if (!dialog.querySelector("form")) {
    box.className = "row";
    box.querySelector("input").id = "palette-text";
    box.querySelector("label").htmlFor = "palette-text";
    dialog.append(box);
  }
  hits.id = "palette-hits";
  dialog.querySelector("#palette-hits")?.remove();
  dialog.append(hits);
  choose(dialog, 0);
}

const rows = (dialog) => [...dialog.querySelectorAll(".hits a, .hits button")];
const chosen = (dialog) => dialog.querySelector(".hits [data-chosen]");

function choose(dialog, place) {
  const all = rows(dialog);
  for (const one of all) delete one.dataset.chosen;
  const next = all[(place + all.length) % all.length];
  if (!next) return;
  next.dataset.chosen = "yes";
  next.scrollIntoView({ block: "nearest" });
}

function keys(dialog, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    choose(dialog, rows(dialog).indexOf(chosen(dialog)) + step);
  } else if (event.key === "Enter" && event.target.matches("input")) {
    event.preventDefault();
    const beside = event.ctrlKey || event.metaKey;
    // Who types fast means what was typed, not what is still shown.
    answer.then(() => go(chosen(dialog), beside));
  }
}

function go(row, beside) {
  if (row?.href && beside) window.open(row.href, "_blank", "noopener");
  else row?.click();
}
