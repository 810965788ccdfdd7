// The log: follow it while it grows, wrap it, find in it, jump to the next error.
const log = document.getElementById("log");
const button = (id) => document.getElementById(id);

if (log) {
  const list = log.querySelector("ol");
  let follow = button("follow")?.getAttribute("aria-pressed") === "true";
  let next = log.dataset.next, live = log.dataset.live === "yes" && log.dataset.tail === "yes";

  const press = (element, on) => element?.setAttribute("aria-pressed", String(on));
  const toEnd = () => { log.scrollTop = log.scrollHeight; };

  async function more() {
    if (!document.hidden) {
      try {
        const answer = await fetch(`${log.dataset.url}&from=${next}`);
        if (!answer.ok) throw new Error(String(answer.status));
        const lines = await answer.text();
        next = answer.headers.get("X-Next");
        live = answer.headers.get("X-Live") === "yes";
        if (lines.trim()) {
          log.querySelector(".empty")?.remove();
          list.insertAdjacentHTML("beforeend", lines);
          if (follow) toEnd();
        }
      } catch { /* asked again in a moment */ }
    }
    if (live) setTimeout(more, 1000);
  }

  button("follow")?.addEventListener("click", (event) => { follow = !follow; press(event.target, follow); if (follow) toEnd(); });
  log.addEventListener("wheel", (event) => { if (event.deltaY < 0 && follow) { follow = false; press(button("follow"), false); } }, { passive: true });

  const wrap = (on) => { log.classList.toggle("wrap", on); press(button("wrap"), on); localStorage.setItem("log-wrap", on ? "yes" : ""); };
  button("wrap")?.addEventListener("click", () => wrap(!log.classList.contains("wrap")));
  wrap(localStorage.getItem("log-wrap") === "yes");

  let hits = [], at = -1;
  const show = (line) => line?.scrollIntoView({ block: "center" });
  button("find")?.addEventListener("input", (event) => {
    const text = event.target.value.toLowerCase();
    hits = [];
    for (const line of list.children) {
      const hit = text !== "" && line.textContent.toLowerCase().includes(text);
      line.classList.toggle("hit", hit);
      if (hit) hits.push(line);
    }
    at = hits.length ? 0 : -1;
    button("found").textContent = text ? String(hits.length) : "";
    show(hits[0]);
  });
  button("find")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !hits.length) return;
    at = (at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    show(hits[at]);
  });

  let error = -1;
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "e") { const errors = list.querySelectorAll(".l-error, .l-critical"); if (errors.length) { error = (error + 1) % errors.length; show(errors[error]); } }
    if (event.key === "w") wrap(!log.classList.contains("wrap"));
    if (event.key === "G") toEnd();
  });

  if (!location.hash && log.dataset.tail === "yes") toEnd();
  if (live) setTimeout(more, 1000);
}
