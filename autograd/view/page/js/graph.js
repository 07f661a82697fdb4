
// ---- Graph: what of the layout is in view, as SVG -------------------------------------------------------------------

const mostElements = 400;
let layout = null, scale = 1, strongest = 1;

function relayout() {
  layout = makeLayout();
  strongest = Math.max(1e-300, ...layout.edges.map((edge) => edge.norm = edgeNorm(edge)).filter(Number.isFinite));
  drawTree();
  fit();
  follow(false);
  draw();
}

function fit() {
  const room = $("graph-scroll").clientWidth;
  const snug = Math.max(0.56, Math.min(1.12, room / layout.width));
  scale = snug * state.zoom;
  const svg = $("graph");
  svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
  svg.setAttribute("width", Math.floor(layout.width * scale));
  svg.setAttribute("height", Math.ceil(layout.height * scale));
  svg.setAttribute("aria-label", `Graph of ${plural(layout.units.length, "box")}`.replace("boxs", "boxes"));
}

function edgeNorm(edge) {
  let sum = 0;
  for (const use of edge.uses) sum += norm(nodes[use.node].gradients[use.input]) ** 2 || 0;
  return Math.sqrt(sum);
}

const currentUnit = () => {
  const node = nodeAt(state.step);
  return node ? layout.unitOf.get(node.id) || chipOwner(node) : null;
};
function chipOwner(source) {
  return layout.units.find((unit) => unit.chips.includes(source)) || consumers[source.id].map((use) => layout.unitOf.get(use.node))[0] || null;
}

// Scrolls to the step's place when it is near or beyond the edge of what can be seen.
function follow(smooth) {
  const pane = $("graph-scroll"), unit = currentUnit();
  if (!unit) {
    if (state.step === 0) pane.scrollTop = 0;
    return;
  }
  const y = unit.cy * scale, x = unit.cx * scale, edge = Math.min(110, pane.clientHeight / 4);
  const top = y < pane.scrollTop + edge || y > pane.scrollTop + pane.clientHeight - edge ? y - pane.clientHeight / 2 : pane.scrollTop;
  const left = x < pane.scrollLeft + 90 || x > pane.scrollLeft + pane.clientWidth - 160 ? x - pane.clientWidth / 2 : pane.scrollLeft;
  if (top === pane.scrollTop && left === pane.scrollLeft) return;
  const near = Math.abs(top - pane.scrollTop) < 2 * pane.clientHeight;
  pane.scrollTo({top, left, behavior: smooth && near && !calm.matches ? "smooth" : "auto"});
}

function unitState(unit) {
  const {step} = state;
  const computed = unit.ids.filter((id) => isComputed(nodes[id], step)).length;
  const given = unit.ids.filter((id) => hasGradient(nodes[id], step)).length;
  const reached = unit.ids.filter((id) => nodes[id].backward_index !== null).length;
  return {computed: computed / unit.ids.length, given: reached ? given / reached : 0};
}

function clipped(text, room) { return text.length > room ? text.slice(0, room - 1) + "…" : text; }

function chipSvg(unit, source, i) {
  const x = unit.x + sizes.width + sizes.chipGap, count = unit.chips.length, pitch = sizes.chipHeight + 2;
  const y = unit.cy - count * pitch / 2 + i * pitch + 1, middle = y + sizes.chipHeight / 2;
  const shown = nodeAt(state.step) === source, computed = isComputed(source, state.step), given = hasGradient(source, state.step);
  const shape = source.outputs[0] ? shapeText(source.outputs[0].shape) : "";
  return `<g class="chip ${source.op}${computed ? " computed" : ""}${given ? " given" : ""}${shown ? " current" : ""}${source.verdict === "wrong" ? " wrong" : ""}" data-node="${source.id}"><path d="M${unit.x + sizes.width} ${middle}H${x}"/><rect x="${x}" y="${y}" width="${sizes.chipWidth}" height="${sizes.chipHeight}" rx="${sizes.chipHeight / 2}"/><text x="${x + 9}" y="${middle + 4}">${source.verdict === "wrong" ? "✗ " : ""}${escaped(clipped(label(source), 11))}</text>${sizes.chipWidth > 100 ? `<text class="shape" x="${x + sizes.chipWidth - 9}" y="${middle + 4}" text-anchor="end">${clipped(shape, 8)}</text>` : ""}<title>${escaped(title(source))} ${shape}</title></g>`;
}

function unitSvg(unit, number) {
  const {x, y} = unit, {width, height} = sizes, node = unit.node, now = unitState(unit), current = currentUnit() === unit && !unit.chips.includes(nodeAt(state.step));
  const sum = node && node.op === "residual_add", radius = sum ? height / 2 : 9;
  const wrong = unit.ids.some((id) => nodes[id].verdict === "wrong");
  const fine = !wrong && now.given === 1 && unit.ids.some((id) => nodes[id].verdict === "ok");
  const unchecked = !wrong && !fine && now.given === 1 && unit.ids.some((id) => nodes[id].verdict === "unchecked");
  const name = unit.scope ? (unit.scope.times ? unit.scope.name : scopeName(unit.scope)) : label(node);
  const second = unit.scope ? plural(unit.ids.length, "op") : node.outputs[0] ? shapeText(node.outputs[0].shape) : "";
  let html = `<g class="unit${unit.scope ? " folded" : ""}${sum ? " sum" : ""}${node && isSource(node) ? " source" : ""}${now.computed ? " computed" : ""}${current ? " current" : ""}${wrong ? " wrong" : ""}" data-unit="${number}">`;
  if (current) html += `<rect class="halo" x="${x - 6}" y="${y - 6}" width="${width + 12}" height="${height + 12}" rx="${radius + 6}"/>`;
  if (unit.scope) {
    if (unit.scope.times) html += `<rect class="box back" x="${x + 8}" y="${y + 8}" width="${width}" height="${height}" rx="${radius}"/><rect class="box back" x="${x + 4}" y="${y + 4}" width="${width}" height="${height}" rx="${radius}"/>`;
  }
  html += `<rect class="box" x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}"/>`;
  const inset = sum ? 13 : 7, tall = height - 2 * inset;
  if (now.computed) html += `<rect class="forward" x="${x + 5}" y="${y + inset}" width="4" height="${tall * now.computed}" rx="2"/>`;
  if (now.given) html += `<rect class="backward" x="${x + width - 9}" y="${y + inset + tall * (1 - now.given)}" width="4" height="${tall * now.given}" rx="2"/>`;
  const text = x + (sum ? 40 : unit.scope ? 32 : 18);
  if (sum) html += `<circle class="plus" cx="${x + 24}" cy="${unit.cy}" r="10"/><path class="plus" d="M${x + 18} ${unit.cy}h12M${x + 24} ${unit.cy - 6}v12"/>`;
  if (unit.scope) html += `<text class="twist" x="${x + 16}" y="${unit.cy + 5}">▸</text>`;
  html += `<text class="name" x="${text}" y="${y + 18}">${escaped(clipped(name, unit.scope && unit.scope.times ? 12 : 17))}${unit.scope && unit.scope.times ? ` <tspan class="times">×${unit.scope.times}</tspan>` : ""}</text><text class="shape" x="${text}" y="${y + 33}">${escaped(second)}</text>`;
  if (wrong || fine || unchecked) html += `<text class="glyph ${wrong ? "wrong" : fine ? "ok" : "unchecked"}" x="${x + width - 16}" y="${unit.cy + 6}" text-anchor="end">${wrong ? "✗" : fine ? "✓" : "–"}</text>`;
  return html + `<title>${escaped(unit.scope ? `${unit.scope.id}: open` : title(node) + where(node))}</title></g>`;
}

function edgeSvg(edge, near) {
  const {step} = state, passed = edge.uses.some((use) => hasGradient(nodes[use.node], step) && nodes[use.node].gradients[use.input]);
  const computed = edge.uses.some((use) => isComputed(nodes[use.node], step));
  let html = `<path class="edge ${edge.kind}${computed ? " computed" : ""}${near ? " near" : ""}" d="${edge.path}"/>`;
  if (passed) html += `<path class="edge gradient${near ? " near" : ""}" d="${edge.path}" style="stroke-width:${(1.6 + 5.4 * Math.sqrt(edge.norm / strongest || 0)).toFixed(1)}"/>`;
  return html;
}

function draw() {
  const pane = $("graph-scroll"), svg = $("graph"), node = nodeAt(state.step);
  let margin = 300, html, count;
  do {
    const top = pane.scrollTop / scale - margin, bottom = (pane.scrollTop + pane.clientHeight) / scale + margin;
    count = 0;
    html = "";
    if (layout.stream) html += `<rect class="stream" x="${layout.stream.x - 26}" y="${layout.stream.top}" width="52" height="${layout.stream.bottom - layout.stream.top}" rx="26"/>`;
    for (const frame of layout.frames) {
      if (frame.bottom < top || frame.top > bottom) continue;
      const pad = Math.max(5, 17 - 4 * frame.depth);
      ++count;
      html += `<g class="frame" data-scope="${escaped(frame.scope.id)}"><rect x="${frame.left - pad}" y="${frame.top - pad}" width="${frame.right - frame.left + 2 * pad}" height="${frame.bottom - frame.top + 2 * pad}" rx="12"/></g>`;
    }
    for (const edge of layout.edges) {
      if (edge.bottom < top || edge.top > bottom) continue;
      const mine = node && edge.uses.some((use) => use.node === node.id);
      count += 1;
      html += edgeSvg(edge, mine);
    }
    layout.units.forEach((one, i) => {
      if (one.rowBottom < top || one.rowTop > bottom) return;
      count += 1 + one.chips.length;
      html += unitSvg(one, i) + one.chips.map((source, k) => chipSvg(one, source, k)).join("");
    });
    for (const frame of layout.frames) {
      if (frame.bottom < top || frame.top > bottom) continue;
      const pad = Math.max(5, 17 - 4 * frame.depth), name = `▾ ${scopeName(frame.scope)}`, wide = name.length * 6.6 + 12;
      html += `<g class="frame-label" data-scope="${escaped(frame.scope.id)}"><rect x="${frame.left - pad + 10}" y="${frame.top - pad - 8}" width="${wide}" height="16" rx="8"/><text x="${frame.left - pad + 16}" y="${frame.top - pad + 4}">${escaped(name)}</text><title>Fold ${escaped(frame.scope.id)}</title></g>`;
    }
    margin -= 150;
  } while (count > mostElements && margin >= -150);
  svg.innerHTML = html;
  svg.dataset.elements = count;
}

// Small dots run along the edges of a step: down when values are taken, up when gradients are handed out.
function pulse() {
  const node = nodeAt(state.step), unit = currentUnit();
  if (!node || !unit || calm.matches) return;
  const backward = isBackward(state.step), svg = $("graph");
  for (const edge of unit.inputs) {
    if (!edge.uses.some((use) => use.node === node.id)) continue;
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    dot.setAttribute("r", 5);
    dot.setAttribute("class", backward ? "dot up" : "dot down");
    dot.style.offsetPath = `path("${edge.path}")`;
    svg.append(dot);
    dot.addEventListener("animationend", () => dot.remove());
  }
}

function graphClick(event) {
  const chip = event.target.closest(".chip"), unit = event.target.closest(".unit"), frame = event.target.closest(".frame-label");
  if (chip) return visit(nodes[Number(chip.dataset.node)]);
  if (frame) return setOpen(scopes.get(frame.dataset.scope), false);
  if (!unit) return;
  const one = layout.units[Number(unit.dataset.unit)];
  one.scope ? setOpen(one.scope, true) : visit(one.node);
}
