
// ---- Tensors: heat-maps with their numbers --------------------------------------------------------------------------

function statistics(tensor) {
  if (tensor.stats) return tensor.stats;
  if (!tensor.values) return {};
  if (tensor.cachedStats) return tensor.cachedStats;
  const values = tensor.values.map(asNumber), finite = values.filter(Number.isFinite);
  const s = {nan: values.filter(Number.isNaN).length, zeros: finite.filter((v) => v === 0).length};
  s.inf = values.length - finite.length - s.nan;
  if (finite.length) {
    s.min = Math.min(...finite);
    s.max = Math.max(...finite);
    s.mean = finite.reduce((a, b) => a + b, 0) / finite.length;
    s.std = Math.sqrt(finite.reduce((a, b) => a + (b - s.mean) ** 2, 0) / finite.length);
    s.norm = Math.sqrt(finite.reduce((a, b) => a + b * b, 0));
  }
  return tensor.cachedStats = s;
}
const norm = (tensor) => tensor ? asNumber(statistics(tensor).norm ?? NaN) : NaN;
const normText = (tensor) => Number.isFinite(norm(tensor)) ? short(norm(tensor), 3) : "";
const largestSize = (tensor) => {
  const s = tensor ? statistics(tensor) : {};
  return Math.max(0, Math.abs(asNumber(s.min ?? 0)), Math.abs(asNumber(s.max ?? 0)));
};

// A tensor as one matrix: leading dimensions go down the rows.
function matrixOf(tensor) {
  const {shape} = tensor, cols = shape.length ? shape[shape.length - 1] : 1;
  return {rows: cols ? tensor.values.length / cols : 0, cols, values: tensor.values};
}

// Blue below zero, orange above; stronger means larger. Mixed with the paper, so that numbers on it can be read.
let palette = null;
function colours() {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
  };
  return palette = {paper: read("--paper"), low: read("--low"), high: read("--high")};
}
function shade(value, scale, most = 1) {
  const {paper, low, high} = colours(), number = asNumber(value);
  if (!Number.isFinite(number)) return "var(--wrong-soft)";
  const part = scale > 0 ? Math.min(1, Math.abs(number) / scale) ** 0.7 * most : 0, end = number < 0 ? low : high;
  return `rgb(${paper.map((c, i) => Math.round(c + (end[i] - c) * part)).join(",")})`;
}

const cell = (value, scale) => `<td data-v="${escaped(value)}" title="${escaped(value)}"${scale === null ? "" : ` style="background:${shade(value, scale, 0.46)}"`}>${short(value, 3)}</td>`;
function table(matrix, scale, caption) {
  let html = `<table class="numbers"><caption class="hidden">${escaped(caption)}</caption><thead><tr><td></td>`;
  for (let c = 0; c < matrix.cols; ++c) html += `<th scope="col">${c}</th>`;
  html += "</tr></thead><tbody>";
  for (let r = 0; r < matrix.rows; ++r) {
    html += `<tr><th scope="row">${r}</th>`;
    for (let c = 0; c < matrix.cols; ++c) html += cell(matrix.values[r * matrix.cols + c], scale);
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

const wide = 8;         // more columns than that are shown as a heat-map, numbers on demand
let pending = new Map();  // heat-maps to be drawn, tables to be written when they are opened
let serial = 0;

// `what` names it for those who do not see it; `scale` lets several share one range of colours.
function tensorView(tensor, what, scale = largestSize(tensor)) {
  if (!tensor) return `<p class="quiet">none</p>`;
  const head = `<p class="kind"><span>${shapeText(tensor.shape)}</span> <span>${tensor.dtype}</span>${normText(tensor) ? ` <span>norm ${normText(tensor)}</span>` : ""}</p>`;
  if (!tensor.values) return `<div class="tensor" data-what="${escaped(what)}">${head}${summaryView(tensor, what)}</div>`;
  if (tensor.shape.length === 0) return `<div class="tensor" data-what="${escaped(what)}"><p class="scalar" data-v="${escaped(tensor.values[0])}" title="${escaped(tensor.values[0])}">${short(tensor.values[0], 6)}</p></div>`;
  const matrix = matrixOf(tensor);
  const caption = `${what}, ${shapeText(tensor.shape)}`;
  if (matrix.cols <= wide && matrix.rows <= 16) return `<div class="tensor" data-what="${escaped(what)}">${head}${table(matrix, scale, caption)}</div>`;
  const id = `t${++serial}`, s = statistics(tensor);
  pending.set(id, {matrix, scale, caption});
  // A long vector is folded into rows, to be seen at all.
  const across = tensor.shape.length === 1 ? Math.min(matrix.cols, 32) : matrix.cols, down = Math.ceil(matrix.values.length / across);
  const size = Math.max(3, Math.min(14, Math.floor(320 / Math.max(across, 1))));
  return `<div class="tensor" data-what="${escaped(what)}">${head}<canvas id="${id}" class="heat" role="img" width="${across * size}" height="${down * size}" data-size="${size}" data-across="${across}"
    aria-label="Heat-map of ${escaped(caption)}: from ${short(s.min)} to ${short(s.max)}; its numbers follow"></canvas>
    <details class="more" data-table="${id}"><summary>numbers<span class="hidden"> of ${escaped(what)}</span></summary><div class="scroll" tabindex="0" role="region" aria-label="${escaped(caption)}"></div></details></div>`;
}

function summaryView(tensor, what) {
  const s = tensor.stats;
  let html = "";
  if (s && s.min !== undefined) {
    html += `<dl class="stats">${[["min", s.min], ["mean", s.mean], ["max", s.max], ["std", s.std]].map(([name, value]) => `<div><dt>${name}</dt><dd data-v="${escaped(value)}">${short(value)}</dd></div>`).join("")}`;
    for (const odd of ["zeros", "nan", "inf"]) if (s[odd]) html += `<div><dt>${odd}</dt><dd data-v="${s[odd]}">${s[odd]}</dd></div>`;
    html += "</dl>";
  }
  if (tensor.histogram) {
    const {lo, hi, counts} = tensor.histogram, most = Math.max(...counts, 1);
    html += `<div class="histogram"><svg viewBox="0 0 ${counts.length * 20} 50" preserveAspectRatio="none" role="img" aria-label="Histogram of ${escaped(what)} from ${short(lo)} to ${short(hi)}: ${counts.join(", ")}">` +
      counts.map((count, i) => `<rect x="${i * 20 + 1}" y="${50 - 48 * count / most}" width="18" height="${48 * count / most}"/>`).join("") +
      `</svg><p><span>${short(lo, 3)}</span><span>${short(hi, 3)}</span></p></div>`;
  }
  if (tensor.corner) html += `<details class="more"><summary>first ${tensor.corner.rows}×${tensor.corner.cols}${tensor.largest ? " and largest entries" : ""}</summary>${table(tensor.corner, largestSize(tensor), `Corner of ${what}`)}`;
  if (tensor.largest) html += `<p class="largest">largest: ${tensor.largest.map(([at, value]) => `<span class="entry">[${position(at, tensor.shape)}] ${short(value)}</span>`).join(" ")}</p>`;
  if (tensor.corner) html += "</details>";
  return html || `<p class="quiet">Its numbers were left out to keep the file small.</p>`;
}
function position(flat, shape) {
  const out = [];
  for (let i = shape.length - 1; i >= 0; --i) {
    out.unshift(flat % shape[i]);
    flat = Math.floor(flat / shape[i]);
  }
  return out.join(",");
}

// Draws the heat-maps that were just put in.
function drawPending(parent) {
  for (const canvas of parent.querySelectorAll("canvas.heat")) {
    const {matrix, scale} = pending.get(canvas.id), size = Number(canvas.dataset.size), across = Number(canvas.dataset.across), pen = canvas.getContext("2d");
    matrix.values.forEach((value, i) => {
      const odd = !Number.isFinite(asNumber(value));
      pen.fillStyle = odd ? getComputedStyle(document.documentElement).getPropertyValue("--wrong") : shade(value, scale);
      pen.fillRect(i % across * size, Math.floor(i / across) * size, size - (size > 5 ? 1 : 0), size - (size > 5 ? 1 : 0));
    });
    canvas.onmousemove = (event) => {
      const box = canvas.getBoundingClientRect();
      const c = Math.floor((event.clientX - box.left) / box.width * across), r = Math.floor((event.clientY - box.top) / box.height * canvas.height / size), at = r * across + c;
      canvas.title = at < matrix.values.length ? `[${Math.floor(at / matrix.cols)},${at % matrix.cols}] ${short(matrix.values[at], 6)}` : "";
    };
  }
  for (const details of parent.querySelectorAll("details[data-table]")) {
    details.addEventListener("toggle", () => {
      const {matrix, scale, caption} = pending.get(details.dataset.table), box = details.querySelector(".scroll");
      if (details.open && !box.firstChild) box.innerHTML = table(matrix, scale, caption);
    });
  }
}
