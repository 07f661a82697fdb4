
// ---- Words: numbers, formulas, names, sentences, source ---------------------------------------------------------------

const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})[c]);
const asNumber = (value) => typeof value === "number" ? value : value === "nan" ? NaN : value === "inf" ? Infinity : value === "-inf" ? -Infinity : Number(value);

function short(value, digits = 4) {
  const number = asNumber(value);
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  if (number === 0) return "0";
  const size = Math.abs(number);
  let text = size >= 1e5 || size < 1e-3 ? number.toExponential(digits > 4 ? digits - 1 : Math.min(digits - 1, 2)) : String(Number(number.toPrecision(digits)));
  text = text.replace(/\.?0+e/, "e").replace("e+", "e");
  return text.replace("-", "−").replace("e-", "e−");
}
const percent = (share) => {
  const value = 100 * share;
  return (Math.abs(value) >= 9.95 || value === 0 ? value.toFixed(0) : Math.abs(value) >= 0.095 ? value.toFixed(1) : value.toExponential(0).replace("e-", "e−")).replace("-", "−") + " %";
};
const shapeText = (shape) => shape.length ? shape.join("×") : "scalar";
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const greek = {alpha: "α", beta: "β", gamma: "γ", eps: "ε", pi: "π", Phi: "Φ", sigma: "σ", mu: "μ"};
function symbol(token) {
  if (/^d[a-zA-Z]/.test(token) && token.length > 1 && (token.length <= 3 || greek[token.slice(1)] || /^d[a-z]+_/.test(token) || /^d(bias|weight|branch|values)$/.test(token))) {
    return `<i>d</i>${symbol(token.slice(1))}`;
  }
  if (greek[token]) return `<i>${greek[token]}</i>`;
  if (token.endsWith("_hat")) return `<i>${token.slice(0, -4)}\u0302</i>`;
  const part = /^([A-Za-z]+)_(\w+)$/.exec(token);
  if (part && part[1].length <= 2) return `<i>${part[1]}</i><sub>${part[2]}</sub>`;
  return token.length <= 2 && !/^(of|in|or|if|to|is|by|at|ln)$/.test(token) ? `<i>${token}</i>` : token;
}

// A formula as it is typed in the sources, set as mathematics: one line for each part.
function formula(text) {
  return text.split("; ").map((line) => {
    let out = "";
    for (const token of line.match(/[A-Za-z]\w*|\^(?:T|-?\w+|\([^)]*\))|\d[\d.]*(?:e-?\d+)?|\s+|./gs) || []) {
      if (/^[A-Za-z]/.test(token)) out += token === "sqrt" ? "√" : symbol(token);
      else if (token === "^T") out += "<sup>⊤</sup>";
      else if (token[0] === "^") out += `<sup>${escaped(token.slice(1).replace(/^\((.*)\)$/, "$1").replace("-", "−"))}</sup>`;
      else if (token === "*") out += "·";
      else if (token === "-") out += "−";
      else out += escaped(token);
    }
    return `<span class="line">${out.replace(/√ (\S+)/g, "√$1")}</span>`;
  }).join("");
}

// The inputs' names, as the derivative calls them.
const knownInputs = {scaled_dot_product_attention: ["q", "k", "v", "mask"], causal_attention_packed: ["qkv"]};
function inputName(node, input) {
  if (node.op === "residual_add") return ["skip", "branch"][input];
  if (knownInputs[node.op]) return knownInputs[node.op][input] ?? `input ${input}`;
  const found = [...opInfo(node).derivative.matchAll(/(?:^|; )d(\w+?)(?:\[\w+\])? =/g)].map((match) => match[1]);
  return found[input] && node.inputs.length >= found.length ? found[input].replace("x_i", `x_${input}`) : `input ${input}`;
}
const prettyName = (name) => greek[name] || name;

function label(node) {
  if (node.name) return node.name.slice(node.name.lastIndexOf(".") + 1);
  return isSource(node) ? (node.op === "leaf" ? "input" : "constant") : node.op;
}
function title(node) { return node.name || (isSource(node) ? label(node) : node.op); }
// A member of a list is called after it: "blocks.0".
const scopeName = (scope) => /^\d/.test(scope.name) && scope.parent && scope.parent !== root ? `${(scope.parent.id.includes("…") ? scope.parent.parent : scope.parent).name}.${scope.name}` : scope.name;
const where = (node) => node.scope ? ` in ${node.scope}` : "";

const glyphs = {ok: "✓", wrong: "✗", unchecked: "–", none: ""};
const verdictWords = {ok: "agrees with finite differences", wrong: "disagrees with finite differences", unchecked: "not checked", none: "no gradient"};

// One plain sentence for a step.
function sentence(step) {
  if (step === 0) {
    return `A run of ${plural(nodes.length, "node")}: first forward, then backward in ${plural(backwardSteps, "step")}. → begins.`;
  }
  const node = nodeAt(step);
  return (isBackward(step) ? backwardSentence(node) : forwardSentence(node)) + (node.verdict === "wrong" && isBackward(step) ? " ✗ This gradient is wrong." : "");
}

function forwardSentence(node) {
  const size = node.outputs[0] ? shapeText(node.outputs[0].shape) : "";
  if (node.op === "leaf") return `${title(node)}, ${size}, enters and asks for a gradient.`;
  if (node.op === "constant") return `${title(node)}, ${size}, enters; no gradient is asked for it.`;
  if (node.op === "residual_add") return `The branch is added to the residual stream${where(node)}: ${size}, the stream itself stays untouched.`;
  if (node.op.startsWith("layer_norm")) return `layer_norm${where(node)} takes each row's mean away and divides by its spread: ${size}.`;
  const from = node.inputs.filter(Boolean).map((input) => label(nodes[input.node]));
  return `${node.op}${where(node)} computes ${size} from ${from.slice(0, 3).join(", ")}${from.length > 3 ? " and more" : ""}.`;
}

function backwardSentence(node) {
  const arriving = node.cotangents.find(Boolean);
  const norm = arriving ? normText(arriving) : "";
  if (node.op === "leaf") return `The gradient of ${title(node)} is final${norm && `, of norm ${norm}`}${forkText(node)}.`;
  if (node.op === "residual_add") return `At the residual sum${where(node)} the gradient is copied: one part down the skip, unchanged, one into the branch${norm && `; norm ${norm}`}.`;
  const split = normOf.get(node.id);
  if (split) {
    const all = split.norms.incoming ** 2 || 1;
    return `${node.op}${where(node)} takes away ${split.mean_part ? `the mean (${percent(split.norms.mean_part ** 2 / all)}) and ` : ""}` +
      `the part along x\u0302 (${percent(split.norms.x_hat_part ** 2 / all)}); ${percent(split.norms.passed ** 2 / all)} passes on, divided by σ.`;
  }
  const to = node.gradients.map((gradient, input) => gradient && prettyName(inputName(node, input))).filter(Boolean);
  return `${node.op}${where(node)} turns a gradient${norm && ` of norm ${norm}`} into gradients for ${to.join(", ") || "nobody"}${forkText(node)}.`;
}
function forkText(node) {
  const fork = (forkOf.get(node.id) || [])[0];
  if (!fork) return "";
  return fork.parts.some((part) => part.role === "skip") ? "; here skip and branch had met" : `; ${fork.parts.length} parts were added up`;
}

const cppWords = /\b(?:const|constexpr|static|struct|final|override|void|auto|return|if|else|for|while|template|class|typename|int|double|float|bool|true|false|nullptr|namespace|using|switch|case|continue|break)\b/;
function highlighted(code) {
  return code.replace(/(\/\/.*$)|("(?:\\.|[^"\\])*")|(\b\d[\d.e']*\b)|(\b[A-Za-z_]\w*\b)|([&<>"'])/g, (all, comment, string, number, word, mark) => {
    if (comment) return `<span class="c">${escaped(comment)}</span>`;
    if (string) return `<span class="s">${escaped(string)}</span>`;
    if (number) return `<span class="n">${number}</span>`;
    if (word) return cppWords.test(word) ? `<b>${word}</b>` : word;
    return escaped(mark);
  });
}
