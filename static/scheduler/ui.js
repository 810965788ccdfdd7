// What every page gains from JavaScript. Without it everything still reads and acts.
const root = document.documentElement;
const find = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

// Controls that need a script are hidden in the markup.
function reveal(from = document) {
  for (const button of all("#theme, [data-keys], [data-copy], #find, #wrap, #follow", from)) button.hidden = false;
}

// Theme: automatic → light → dark; the server reads the cookie.
find("#theme")?.addEventListener("click", nextTheme);
function nextTheme() {
  const order = ["auto", "light", "dark"];
  const theme = order[(order.indexOf(root.dataset.theme) + 1) % 3];
  root.dataset.theme = theme;
  document.cookie = `scheduler_theme=${theme};path=/;max-age=31536000;samesite=lax${location.protocol === "https:" ? ";secure" : ""}`;
  const select = find('select[name="theme"]');
  if (select) select.value = theme;
}

// The clock counts on from the server's; elapsed times tick.
const clock = find("#clock");
const skew = clock ? Date.parse(clock.dateTime) - Date.now() : 0;
const zone = clock?.parentElement.lastChild.textContent.trim() || "UTC";
const format = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: zone });
function words(seconds) {
  const pad = (n) => String(n).padStart(2, "0");
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.floor(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}
setInterval(() => {
  if (document.hidden) return;
  const now = Date.now() + skew;
  if (clock) clock.textContent = format.format(now);
  for (const one of all("[data-since]")) one.textContent = words(Math.max(0, (now - Date.parse(one.dataset.since)) / 1000));
}, 1000);

// Toasts leave by themselves, unless somebody points at them.
function watchToasts() {
  for (const toast of all(".toast:not([data-seen])")) {
    toast.dataset.seen = "yes";
    const wait = toast.classList.contains("error") ? 15000 : 8000;
    const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : toast.remove());
    setTimeout(leave, wait);
  }
}
export function toast(text, kind = "") {
  const box = document.createElement("div");
  box.className = `toast ${kind}`;
  box.textContent = text;
  find("#toasts")?.append(box);
  watchToasts();
}

// The pause switch moves at once; the answer puts it right.
document.addEventListener("htmx:beforeRequest", (event) => {
  const button = event.detail.elt;
  if (button.matches(".switch")) button.setAttribute("aria-checked", button.getAttribute("aria-checked") !== "true");
  // hidden now, removed later: the answer is put in place from the element that asked
  const box = event.detail.elt.closest(".toast");
  if (box) box.hidden = true;
});
document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.elt.closest(".toast")?.hidden) event.detail.elt.closest(".toast").remove(); });
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401 || event.detail.xhr.status === 403) toast("You are logged out, or may not do this.", "error");
  else toast(`The server answered ${event.detail.xhr.status}.`, "error");
});
document.addEventListener("htmx:sendError", () => toast("The server cannot be reached.", "error"));
document.addEventListener("htmx:afterSettle", (event) => { reveal(event.target); watchToasts(); });

document.addEventListener("change", (event) => { if (event.target.matches("[data-submit]")) event.target.form.requestSubmit(); });
document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) navigator.clipboard?.writeText(find(`#${copy.dataset.copy}`).textContent);
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// Search in a dialog: the page behind the link, without its frame.
async function palette(event) {
  event.preventDefault();
  (await import("./palette.js")).open(find("#palette"), find("#search").href);
}
find("#search")?.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey && !event.shiftKey) palette(event); });
document.addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "k") palette(event); });

// The list of keys comes with the search page alone: no page carries it that nobody asks.
async function keys() {
  let list = find("#keys");
  if (!list) {
    const answer = await fetch(find("#search").href);
    list = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("keys");
    if (!list) return;
    document.body.append(list);
  }
  if (!list.open) list.showModal();
}

// Shift ticks everything between two boxes.
let ticked;
document.addEventListener("click", (event) => {
  if (!event.target.matches("[form=bulk][type=checkbox]")) return;
  const boxes = all("[form=bulk][type=checkbox]"), [from, to] = [boxes.indexOf(ticked), boxes.indexOf(event.target)];
  if (event.shiftKey && from >= 0) for (const box of boxes.slice(Math.min(from, to), Math.max(from, to))) box.checked = event.target.checked;
  ticked = event.target;
});

// Keys: never in inputs, never with a modifier; "/" goes to the filter, "g d" and its kin to a page.
let leader = false;
const places = { h: "/", d: "/dags/", r: "/runs/", t: "/timeline/", f: "/failures/", b: "/backfills/", p: "/pools/", j: "/jobs/", a: "/audit/" };
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const menu of all("details.menu[open]")) menu.open = false;
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (leader && places[event.key]) { location.href = places[event.key]; return; }
  leader = event.key === "g";
  if (event.key === "t") nextTheme();
  if (event.key === "?") keys();
  const target = all("[data-key]").find((one) => one.dataset.key === event.key);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input")) target.focus(); else target.click();
});

find("[data-keys]")?.addEventListener("click", () => { find("details.menu[open]").open = false; keys(); });

reveal();
watchToasts();
// The next part of a deed on many things: once, since a click on its button would send it a second time.
const rest = find("[data-go-on]");
if (rest) {
  rest.requestSubmit();
  rest.querySelector("button").disabled = true;
}
if (document.body.dataset.page) import("./live.js").then((live) => live.start());
