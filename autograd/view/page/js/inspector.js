
// ---- Inspector: all there is to see of one node ----------------------------------------------------------------------

function verdictChip(node) {
  if (node.verdict === "none") return "";
  const error = worstError(node);
  return `<p class="verdict ${node.verdict}"><span class="glyph" aria-hidden="true">${glyphs[node.verdict]}</span> ${verdictWords[node.verdict]}${error === null ? "" : `<span class="error">relative error ${short(error, 2)}</span>`}</p>`;
}
function worstError(node) {
  const errors = node.checks.filter((check) => check && check.error !== undefined).map((check) => asNumber(check.error));
  return errors.length ? Math.max(...errors) : null;
}

function checkLine(check) {
  if (!check) return "";
  if (check.mode === "none") return `<p class="verdict unchecked"><span class="glyph" aria-hidden="true">–</span> not checked: ${escaped(check.reason)}</p>`;
  return `<p class="verdict ${check.ok ? "ok" : "wrong"}"><span class="glyph" aria-hidden="true">${check.ok ? "✓" : "✗"}</span> ${check.ok ? "agrees" : "disagrees"}<span class="error" data-v="${check.error}">relative error ${short(check.error, 2)}</span></p>${check.reason ? `<p class="quiet">${escaped(check.reason)}</p>` : ""}`;
}

function gradientView(node, input) {
  const gradient = node.gradients[input], check = node.checks[input], from = node.inputs[input];
  if (!from) return "";
  const name = inputName(node, input), source = nodes[from.node];
  const head = `<h4>to <i>${escaped(prettyName(name))}</i> <a href="#" data-go="${source.id}">${escaped(title(source))}</a></h4>`;
  if (!gradient) return `<div class="out"><div class="out-head">${head}</div><p class="quiet">${source.op === "constant" ? "no gradient is asked for it" : "none"}</p></div>`;
  let body;
  if (check && check.mode === "direction") {
    body = `${tensorView(gradient, `gradient for ${name}`)}<table class="pair"><caption class="hidden">Derivative along one direction</caption><tbody><tr><th scope="row">gradient · direction</th><td data-v="${check.gradient}">${short(check.gradient, 10)}</td></tr><tr><th scope="row">finite difference</th><td data-v="${check.difference}">${short(check.difference, 10)}</td></tr></tbody></table>`;
  } else if (check && check.difference) {
    const scale = Math.max(largestSize(gradient), largestSize(check.difference));
    body = `<div class="beside"><figure><figcaption>gradient</figcaption>${tensorView(gradient, `gradient for ${name}`, scale)}</figure><figure><figcaption>finite difference</figcaption>${tensorView(check.difference, `finite difference for ${name}`, scale)}</figure></div>${worstElement(gradient, check)}`;
  } else {
    body = tensorView(gradient, `gradient for ${name}`);
  }
  return `<div class="out" data-input="${input}"><div class="out-head">${head}${checkLine(check)}</div>${body}</div>`;
}
function worstElement(gradient, check) {
  if (check.ok || !gradient.values || !check.difference.values) return "";
  let worst = 0, at = 0;
  gradient.values.forEach((value, i) => {
    const off = Math.abs(asNumber(value) - asNumber(check.difference.values[i]));
    if (!(off <= worst)) [worst, at] = [off, i];
  });
  return `<p class="facts">worst at [${position(at, gradient.shape)}]: <b>${short(gradient.values[at], 6)}</b> instead of <b>${short(check.difference.values[at], 6)}</b></p>`;
}

function sourceView(node) {
  const info = opInfo(node), source = run.sources[info.file];
  if (!source || !info.backward) return "";
  const lines = source.text.split("\n"), [from, to] = info.backward;
  const html = lines.slice(from - source.first_line, to - source.first_line + 1).map((line, i) =>
    `<span class="row"><span class="at" aria-hidden="true">${from + i}</span>${highlighted(line.replace(/^ {2}/, ""))}</span>`).join("");
  return `<section class="part" id="source"><h3>Its backward, as it ran</h3><p class="kind">${escaped(info.file)}:${from}</p>
    <pre tabindex="0" role="region" aria-label="Backward of ${escaped(node.op)} in C++"><code>${html}</code></pre>
    <details class="more" data-file="${escaped(node.op)}"><summary>the whole file, derivation included</summary><pre tabindex="0" role="region" aria-label="${escaped(info.file)}"><code></code></pre></details></section>`;
}

function valueView(node) {
  return `<section class="part" id="value"><h3>Value</h3>${node.outputs.map((output, i) =>
    `${node.outputs.length > 1 ? `<h4>output ${i}${i ? " <span>kept for backward</span>" : ""}</h4>` : ""}${tensorView(output, node.outputs.length > 1 ? `value, output ${i}` : "value")}`).slice(0, 1).join("")}${extraOutputs(node)}</section>`;
}
function extraOutputs(node) {
  if (node.outputs.length < 2) return "";
  return `<details class="more"><summary>${plural(node.outputs.length - 1, "more output")}, kept for backward</summary>${node.outputs.slice(1).map((output, i) => `<h4>output ${i + 1}</h4>${tensorView(output, `value, output ${i + 1}`)}`).join("")}</details>`;
}

function welcome() {
  const checked = nodes.filter((node) => node.verdict === "ok").length;
  const skipped = nodes.filter((node) => node.verdict === "unchecked").length;
  return `<div class="head"><h2>${escaped(run.title)}</h2></div>
    <p class="lead">${plural(nodes.filter((node) => !isSource(node)).length, "op")} and ${plural(nodes.filter(isSource).length, "input")}, ${plural(backwardSteps, "step")} of backward. Step through with <kbd>→</kbd>, or play with <kbd>P</kbd>.</p>
    <ul class="tally"><li class="verdict ok"><span class="glyph" aria-hidden="true">✓</span> ${plural(checked, "backward call")} agree${checked === 1 ? "s" : ""} with finite differences</li>
    <li class="verdict ${failures.length ? "wrong" : "none"}"><span class="glyph" aria-hidden="true">${failures.length ? "✗" : "○"}</span> ${failures.length ? `${failures.length} wrong: <kbd>F</kbd> goes there` : "none is wrong"}</li>
    ${skipped ? `<li class="verdict unchecked"><span class="glyph" aria-hidden="true">–</span> ${skipped} not checked</li>` : ""}</ul>
    ${run.truncated ? `<p class="quiet">To keep the file small, large tensors are summarised: statistics, a histogram, a corner and the largest entries.</p>` : ""}
    ${run.paths.map(pathView).join("")}`;
}

function inspect() {
  const panel = $("inspector"), node = nodeAt(state.step);
  pending = new Map();
  panel.innerHTML = node ? nodeView(node, isBackward(state.step)) : welcome();
  panel.dataset.node = node ? node.id : "";
  drawPending(panel);
  for (const details of panel.querySelectorAll("details[data-file]")) {
    details.addEventListener("toggle", () => {
      const code = details.querySelector("code"), info = opInfo(node);
      if (!details.open || code.firstChild) return;
      const source = run.sources[info.file];
      code.innerHTML = source.text.split("\n").map((line, i) => `<span class="row${i + source.first_line >= info.backward[0] && i + source.first_line <= info.backward[1] ? " mark" : ""}"><span class="at" aria-hidden="true">${i + source.first_line}</span>${highlighted(line)}</span>`).join("");
    });
  }
  panel.scrollTop = 0;
}

function nodeView(node, backward) {
  const info = opInfo(node);
  const arrived = node.backward_index !== null;
  let html = `<div class="head"><p class="phase ${backward ? "backward" : "forward"}">${backward ? "↑ backward" : "↓ forward"} <span>node ${node.id}</span></p><h2>${escaped(label(node))}</h2>${node.scope ? `<p class="path">${escaped(node.scope)}</p>` : ""}${backward ? verdictChip(node) : ""}</div>`;
  if (backward) html += (forkOf.get(node.id) || []).map(forkView).join("");
  if (info.formula) {
    html += `<section class="part formulas"><h3>${backward ? "Backward" : "Forward"}</h3><div class="math">${formula(backward ? info.derivative : info.formula)}</div>`;
    const numbers = backward ? node.backward_numbers : node.numbers;
    if (numbers) html += `<p class="with-numbers">${escaped(numbers)}</p>`;
    html += `<details class="more"><summary>${backward ? "its forward" : "its backward"}</summary><div class="math">${formula(backward ? info.formula : info.derivative)}</div></details>`;
    if (info.reference) html += `<p class="reference">${escaped(info.reference)}</p>`;
    html += "</section>";
  }
  if (backward) {
    if (normOf.has(node.id)) html += normView(normOf.get(node.id));
    html += `<section class="part" id="cotangent"><h3>${isSource(node) ? "Gradient" : "Gradient that arrives"}</h3>${node.cotangents.map((cotangent, i) => !cotangent && node.cotangents.length > 1 ? "" : `${node.cotangents.length > 1 && i ? `<h4>output ${i}</h4>` : ""}${tensorView(cotangent, node.cotangents.length > 1 ? `cotangent, output ${i}` : "cotangent")}`).join("")}</section>`;
    if (node.gradients.length) html += `<section class="part" id="gradients"><h3>Gradients it hands on</h3>${node.checks.some((check) => check && check.mode !== "none") ? `<p class="lead">Beside them: central differences of this op alone, in float64${node.checks.some((check) => check && check.mode === "direction") ? "; large tensors along one random direction" : ""}.</p>` : ""}${node.gradients.map((_, i) => gradientView(node, i)).join("")}</section>`;
    if (pathsOf.has(node.id)) html += pathView(pathsOf.get(node.id));
    html += valueView(node) + sourceView(node);
  } else {
    html += valueView(node);
    html += arrived ? `<p class="later"><a href="#" data-step="${backwardStepOf(node)}">Its gradient arrives in step ${backwardStepOf(node)} →</a></p>`
      : `<p class="later quiet">${node.op === "constant" ? "No gradient is asked for it." : "Backward does not reach it."}</p>`;
    html += sourceView(node);
  }
  return html;
}
