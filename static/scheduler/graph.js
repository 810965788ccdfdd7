// The graph: drag to move, wheel to zoom, "0" to fit; pointing at a task lights what it depends on and what follows.
const svg = document.getElementById("graph");

if (svg) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const fitButton = document.getElementById("fit");
  let view = { x: 0, y: 0, w: width, h: height };
  const draw = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);

  function fit() {
    // A small graph is not blown up: one pixel stays one pixel at most.
    const box = svg.getBoundingClientRect();
    const w = Math.max(width, box.width), h = Math.max(height, box.height);
    view = { x: (width - w) / 2, y: (height - h) / 2, w, h };
    draw();
  }

  const scale = () => { const box = svg.getBoundingClientRect(); return Math.max(view.w / box.width, view.h / box.height); };
  function zoom(factor, clientX, clientY) {
    const box = svg.getBoundingClientRect();
    const px = (clientX - box.left) / box.width, py = (clientY - box.top) / box.height;
    const w = Math.min(Math.max(view.w * factor, 80), width * 8 + box.width);
    const h = view.h * (w / view.w);
    view = { x: view.x + (view.w - w) * px, y: view.y + (view.h - h) * py, w, h };
    draw();
  }
  svg.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, event.clientX, event.clientY); }, { passive: false });

  let grip = null, moved = false;
  svg.addEventListener("pointerdown", (event) => { if (event.button === 0) { grip = { x: event.clientX, y: event.clientY }; moved = false; } });
  svg.addEventListener("pointermove", (event) => {
    if (!grip) return;
    const dx = event.clientX - grip.x, dy = event.clientY - grip.y;
    if (!moved && Math.hypot(dx, dy) < 4) return;
    if (!moved) svg.setPointerCapture(event.pointerId);
    moved = true;
    const k = scale();
    view.x -= dx * k; view.y -= dy * k;
    grip = { x: event.clientX, y: event.clientY };
    draw();
  });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { grip = null; });
  svg.addEventListener("click", (event) => { if (moved) event.preventDefault(); }, true);

  const wires = [...svg.querySelectorAll(".wire")], nodes = new Map([...svg.querySelectorAll("[data-node]")].map((one) => [one.dataset.node, one]));
  function reach(start, from, to) {
    const seen = new Set([start]), queue = [start];
    while (queue.length) {
      const node = queue.pop();
      for (const wire of wires) if (wire.dataset[from] === node) { wire.classList.add("lit"); if (!seen.has(wire.dataset[to])) { seen.add(wire.dataset[to]); queue.push(wire.dataset[to]); } }
    }
    return seen;
  }
  function light(node) {
    const near = new Set([...reach(node, "from", "to"), ...reach(node, "to", "from")]);
    for (const [id, element] of nodes) element.classList.toggle("dim", !near.has(id));
  }
  function dark() {
    for (const wire of wires) wire.classList.remove("lit");
    for (const element of nodes.values()) element.classList.remove("dim");
  }
  for (const [id, element] of nodes) {
    element.addEventListener("pointerenter", () => light(id));
    element.addEventListener("pointerleave", dark);
    element.addEventListener("focusin", () => light(id));
    element.addEventListener("focusout", dark);
  }

  // A long graph begins at its left end, at a size that can be read; "Fit" shows all of it.
  function begin() {
    const box = svg.getBoundingClientRect(), k = Math.max(width / box.width, height / box.height);
    if (k <= 1.5) { fit(); return; }
    view = { x: 0, y: Math.max(0, (height - box.height * 1.2) / 2), w: box.width * 1.2, h: box.height * 1.2 };
    if (view.h > height) view.y = (height - view.h) / 2;
    draw();
  }

  if (fitButton) { fitButton.hidden = false; fitButton.addEventListener("click", fit); }
  begin();
}
