// Asks whether the page still shows what is true, and mends it in place. Nothing is asked while the tab is hidden.
const QUICK = 2000, SLOW = 15000, WORST = 30000;
const badge = document.getElementById("live");
const words = JSON.parse(badge?.dataset.words || "{}");
let token = document.body.dataset.token, paused = false, failures = 0, quiet = 0, timer;

function say(state) {
  if (!badge) return;
  badge.dataset.live = state;
  badge.textContent = words[state];
}

function apply(answer) {
  for (const [id, [state, text]] of Object.entries(answer.set)) {
    const element = document.getElementById(id);
    if (!element) continue;
    if (state !== null) element.className = `st s-${state}`;
    if (element.textContent !== text) element.textContent = text;
  }
  const parts = answer.refresh.filter((id) => document.getElementById(id) && !busy(id));
  if (parts.length) refresh(parts);
}

// A part in which somebody types, has ticked something or has opened a menu is left alone.
function busy(id) {
  const part = document.getElementById(id);
  return part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select") || part.querySelector("details[open], [form=bulk]:checked");
}

async function refresh(parts) {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of parts) {
    const fresh = page.getElementById(id), old = document.getElementById(id);
    if (!fresh || !old || fresh.outerHTML === old.outerHTML) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(fresh);
    window.htmx?.process(fresh);
    if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  }
}

async function ask() {
  if (paused || document.hidden) return;
  try {
    const query = new URLSearchParams({ page: document.body.dataset.page, token });
    const answer = await fetch(`/live/?${query}`, { headers: { Accept: "application/json" } });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) throw new Error(String(answer.status));
    failures = 0;
    quiet += 1;
    say("on");
    if (answer.status === 200) {
      const change = await answer.json();
      token = change.v;
      quiet = 0;
      apply(change);
      if (change.done) { badge.hidden = true; return; }
    }
  } catch {
    failures += 1;
    say("offline");
  }
  timer = setTimeout(ask, failures ? Math.min(WORST, QUICK * 2 ** failures) : quiet > 30 ? SLOW : QUICK);
}

function toggle() {
  paused = !paused;
  say(paused ? "paused" : "on");
  clearTimeout(timer);
  if (!paused) ask();
}

export function start() {
  if (badge) { badge.hidden = false; badge.addEventListener("click", toggle); }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { clearTimeout(timer); quiet = 0; ask(); } });
  document.addEventListener("keydown", (event) => { if (event.key === "." && !event.target.matches("input, textarea, select")) toggle(); });
  timer = setTimeout(ask, QUICK);
}
