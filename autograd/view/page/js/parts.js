
// ---- What gradients are made of: forks, LayerNorm's three parts, path lengths -----------------------------------------

// Bars that add up to a whole: [{name, share, kind, note}]. Negative shares reach to the left of the zero line.
function bars(parts, what) {
  const least = Math.min(0, ...parts.map((part) => part.share)), most = Math.max(1, ...parts.map((part) => part.share), 0);
  let before = 0, low = least, high = most;
  const rows = parts.map((part) => {
    const from = before, to = before + part.share;
    before = to;
    low = Math.min(low, from, to);
    high = Math.max(high, from, to);
    return {...part, from: Math.min(from, to), to: Math.max(from, to)};
  });
  const place = (value) => 100 * (value - low) / (high - low);
  return `<table class="bars"><caption class="hidden">${escaped(what)}</caption><tbody>${rows.map((row) =>
    `<tr><th scope="row">${escaped(row.name)}<span class="note">${row.note}</span></th><td class="bar"><span class="zero" style="left:${place(0)}%"></span><span class="zero" style="left:${place(1)}%"></span><span class="fill ${row.kind}" style="left:${place(row.from)}%;width:${Math.max(0.6, place(row.to) - place(row.from))}%"></span></td><td class="share">${percent(row.share)}</td></tr>`).join("")}</tbody></table>`;
}

// A part's share: its length along the total over the total's. Shares add up to 1.
function forkShares(fork) {
  const {parts, total} = fork;
  if (total.values && parts.every((part) => part.gradient.values)) {
    const all = total.values.map(asNumber), square = all.reduce((sum, v) => sum + v * v, 0);
    if (square > 0) return parts.map((part) => part.gradient.values.reduce((sum, v, i) => sum + asNumber(v) * all[i], 0) / square);
  }
  if (parts.length === 2 && fork.cosine !== null) {
    const [a, b] = parts.map((part) => asNumber(part.norm)), both = a * b * fork.cosine, square = a * a + b * b + 2 * both;
    if (square > 0) return [(a * a + both) / square, (b * b + both) / square];
  }
  return null;
}

function cosineText(cosine) {
  const meaning = cosine > 0.3 ? "they pull the same way" : cosine < -0.3 ? "they pull against each other" : "nearly at right angles";
  return `cosine <b>${short(cosine, 3)}</b>: ${meaning}`;
}

function forkView(fork) {
  const names = fork.parts.map((part) => part.role || `by ${nodes[part.consumer].op}`);
  const shares = forkShares(fork);
  const skip = fork.parts.some((part) => part.role === "skip");
  let html = `<section class="part" id="fork"><h3>${skip ? "Skip + branch" : `${fork.parts.length} parts added up`}</h3>
    <p class="lead">This value is used ${fork.parts.length === 2 ? "twice" : `${fork.parts.length} times`}, so its gradient is the sum of ${skip ? "what comes down the skip and what comes through the branch" : "what each use gives back"}.</p>`;
  const note = (part) => `norm ${short(part.norm, 3)} <a href="#" data-go="${part.consumer}">${escaped(nodes[part.consumer].op)}</a>`;
  if (shares) {
    html += bars(fork.parts.map((part, i) => ({name: names[i], share: shares[i], kind: part.role === "skip" ? "skip" : part.role === "branch" ? "branch" : `k${i % 4}`, note: note(part)})), "Shares of the gradient");
  } else {
    html += `<ul>${fork.parts.map((part, i) => `<li>${escaped(names[i])}: ${note(part)}</li>`).join("")}</ul>`;
  }
  const lines = [];
  if (normText(fork.total)) lines.push(`sum: norm <b>${normText(fork.total)}</b>`);
  if (fork.cosine !== null && fork.cosine !== undefined) lines.push(cosineText(fork.cosine));
  html += `<p class="facts">${lines.join(" · ")}</p>`;
  if (fork.ok === false) html += `<p class="verdict wrong">✗ The parts do not add up to the gradient that arrived (relative error ${short(fork.error, 2)}).</p>`;
  const small = fork.total.values && fork.total.values.length <= 64;
  if (fork.total.values) {
    const scale = Math.max(largestSize(fork.total), ...fork.parts.map((part) => largestSize(part.gradient)));
    const views = fork.parts.map((part, i) => `<figure><figcaption>${escaped(names[i])}</figcaption>${tensorView(part.gradient, `${names[i]} part of the gradient`, scale)}</figure>`);
    html += `<details class="more"${small && fork.parts.length <= 3 ? " open" : ""}><summary>element by element</summary><div class="sum">${views.join(`<span class="sign" aria-hidden="true">+</span>`)}<span class="sign" aria-hidden="true">=</span><figure><figcaption>sum</figcaption>${tensorView(fork.total, "sum of the parts", scale)}</figure></div></details>`;
  }
  return html + "</section>";
}

function normView(split) {
  const n = split.norms, all = n.incoming ** 2 || 1;
  const parts = [];
  if (split.mean_part) parts.push({name: "mean", key: "mean_part", kind: "removed", note: `norm ${short(n.mean_part, 3)} <em>removed</em>`});
  parts.push({name: "along x\u0302", key: "x_hat_part", kind: "removed two", note: `norm ${short(n.x_hat_part, 3)} <em>removed</em>`},
    {name: "the rest", key: "passed", kind: "passed", note: `norm ${short(n.passed, 3)} <em>passes</em>`});
  const sigma = statistics(split.sigma);
  const range = sigma.min === undefined ? "" : sigma.min === sigma.max ? short(sigma.min, 3) : `${short(sigma.min, 3)} … ${short(sigma.max, 3)}`;
  let html = `<section class="part" id="norm-parts"><h3>What the norm lets through</h3>
    <p class="lead">${split.mean_part ? "Shifting a row or scaling it does not change the output, so two parts of" : "Scaling a row does not change the output, so one part of"} <i>g</i> = <i>γ</i>·<i>dy</i> never reach${split.mean_part ? "" : "es"} <i>x</i>. The parts are at right angles: their squared norms add up.</p>
    ${bars(parts.map((part) => ({...part, share: n[part.key] ** 2 / all})), "Shares of the squared norm of g")}
    <p class="facts"><i>g</i>: norm <b>${short(n.incoming, 3)}</b> → passes <b>${short(n.passed, 3)}</b> → divided by σ${range ? ` (<b>${range}</b>${split.sigma.shape.reduce((a, b) => a * b, 1) > 1 ? ", a row each" : ""})` : ""}</p>`;
  if (split.incoming.values) {
    const scale = largestSize(split.incoming);
    const views = [["g = γ·dy", "incoming", ""], ...parts.map((part) => [part.name, part.key, part.key === "passed" ? "=" : "−"])];
    html += `<details class="more"${split.incoming.values.length <= 64 ? " open" : ""}><summary>element by element</summary><div class="sum">${views.map(([name, key, sign]) => `${sign && `<span class="sign" aria-hidden="true">${sign}</span>`}<figure><figcaption>${escaped(name)}</figcaption>${tensorView(split[key], `${name} of the incoming gradient`, scale)}</figure>`).join("")}<span class="sign" aria-hidden="true">÷</span><figure><figcaption>σ, a row each</figcaption>${tensorView(split.sigma, "sigma", 0)}</figure></div></details>`;
  }
  return html + "</section>";
}

function pathView(path) {
  const shares = path.shares.map(asNumber), most = Math.max(...shares.map(Math.abs), 1e-12), count = shares.length;
  let sum = 0, few = 0;
  while (few < count - 1 && (sum += shares[few]) < 0.9) ++few;
  if (few === count - 1) sum = shares.reduce((a, b) => a + b, 0);
  const width = 24, height = 96, low = Math.min(0, ...shares), zero = height * most / (most - low);
  const bar = (share, k) => {
    const size = Math.abs(share) / (most - low) * height;
    return `<g><title>${k} branches: ${percent(share)}</title><rect class="${share < 0 ? "minus" : k <= few ? "near" : "far"}" x="${k * width + 3}" y="${(share < 0 ? zero : zero - size).toFixed(1)}" width="${width - 6}" height="${Math.max(0.8, size).toFixed(1)}" rx="2"/></g>`;
  };
  const every = Math.ceil(count / 9);
  return `<section class="part" id="paths"><h3>How many branches the gradient crossed</h3>
    <p class="lead">Down this residual stream of ${plural(path.stream.length, "branch").replace("branchs", "branches")}: paths that cross at most <b>${few}</b> carry <b>${percent(sum)}</b> of the gradient.</p>
    <svg class="paths" style="max-width:${Math.min(440, count * 34)}px" viewBox="0 0 ${count * width} ${height + 20}" role="img" aria-label="Share of the gradient by the number of branches crossed; the table that follows holds the numbers">${shares.map(bar).join("")}
    ${shares.map((share, k) => k % every === 0 ? `<text x="${k * width + width / 2}" y="${height + 15}" text-anchor="middle">${k}</text>` : "").join("")}</svg>
    <details class="more"><summary>numbers<span class="hidden"> of the path lengths</span></summary><table class="numbers"><caption class="hidden">Share of the gradient by branches crossed</caption><thead><tr><th scope="col">crossed</th><th scope="col">share</th><th scope="col">norm</th></tr></thead><tbody>${shares.map((share, k) => `<tr><th scope="row">${k}</th><td data-v="${share}">${short(share)}</td><td>${short(path.norms[k])}</td></tr>`).join("")}</tbody></table><p class="kind">sum ${short(path.sum, 6)}</p></details></section>`;
}
