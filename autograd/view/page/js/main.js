
// ---- Steps, keys, search, the address ---------------------------------------------------------------------------------

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

function go(step, smooth = true) {
  step = Math.max(0, Math.min(lastStep, step));
  if (step === state.step) return;
  state.step = step;
  show(smooth);
  saveState();
}

function show(smooth) {
  const {step} = state, slider = $("slider");
  slider.value = step;
  slider.setAttribute("aria-valuetext", step === 0 ? "before the run" : `step ${step} of ${lastStep}, ${isBackward(step) ? "backward" : "forward"}, ${title(nodeAt(step))}`);
  $("top").style.setProperty("--progress", step / (lastStep || 1));
  $("count").textContent = `${step} / ${lastStep}`;
  $("sentence").textContent = sentence(step);
  document.body.dataset.phase = step === 0 ? "start" : isBackward(step) ? "backward" : "forward";
  inspect();
  selectInTree();
  follow(smooth);
  draw();
  if (smooth) pulse();
}

// To a node, in the pass that the reader is in.
function visit(node) {
  const back = backwardStepOf(node);
  go(isBackward(state.step) && back !== null ? back : forwardStepOf(node));
}

// The next step in another module.
function goScope(direction) {
  const placeOf = (step) => step === 0 ? null : foldedAround(nodeAt(step)) || scopeOf[nodeAt(step).id];
  const from = placeOf(state.step);
  let step = state.step + direction;
  while (step > 0 && step < lastStep && placeOf(step) === from) step += direction;
  go(step);
}

function goFailure() {
  if (!failures.length) {
    $("sentence").textContent = "No check failed.";
    return;
  }
  const step = failures.find((one) => one > state.step) ?? failures[0];
  reveal(nodeAt(step));
  go(step);
}

// Opens what is folded around a node.
function reveal(node) {
  const closed = scopesAround(node).filter((scope) => !isOpen(scope));
  if (!closed.length) return;
  closed.forEach((scope) => state.open.add(scope.id));
  relayout();
  saveState();
}

let timer = null;
function setPlaying(on) {
  clearInterval(timer);
  timer = null;
  if (on) {
    if (state.step === lastStep) go(0);
    const pause = Math.max(70, Math.min(750, 90000 / lastStep));
    timer = setInterval(() => {
      go(state.step + 1);
      if (state.step === lastStep) setPlaying(false);
    }, pause);
  }
  $("play").innerHTML = on ? `❚❚<span class="hidden">Pause</span>` : `▶<span class="hidden">Play</span>`;
  $("play").title = on ? "Pause (P)" : "Play (P)";
}

// The address: step, what is open where it differs from what is open at first, zoom.
let saving = null, firstOpen = "";
const openText = () => [...state.open].filter((id) => id !== "").sort().map(encodeURIComponent).join(",");
function stateText() {
  const parts = [`step=${state.step}`], open = openText();
  if (open !== firstOpen) parts.push(`open=${open}`);
  if (state.zoom !== 1) parts.push(`zoom=${state.zoom.toFixed(2)}`);
  return "#" + parts.join("&");
}
function saveState() {
  clearTimeout(saving);
  saving = setTimeout(() => history.replaceState(null, "", stateText()), 150);
}
function readState() {
  const given = new Map(location.hash.slice(1).split("&").map((part) => part.split("=")));
  const step = Number(given.get("step"));
  state.step = Number.isInteger(step) ? Math.max(0, Math.min(lastStep, step)) : 0;
  state.open = defaultOpen();
  if (given.has("open")) {
    let ids = [];
    try { ids = given.get("open").split(",").map(decodeURIComponent); } catch { /* a mangled address opens nothing */ }
    state.open = new Set(["", ...ids.filter((id) => scopes.has(id))]);
  }
  const zoom = Number(given.get("zoom") || 1);
  state.zoom = zoom >= 0.3 && zoom <= 3 ? zoom : 1;
}

// Search: ops, names and modules that hold all words.
let hits = [], hit = -1;
function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  hits = words.length ? nodes.filter((node) => {
    const text = `${node.op} ${node.name} ${node.scope} ${node.verdict === "wrong" ? "wrong ✗" : ""} #${node.id}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }) : [];
  const shown = hits.slice(0, 40);
  hit = shown.length ? 0 : -1;
  $("hits").innerHTML = shown.map((node, i) => `<li role="option" id="hit${i}" aria-selected="${i === 0}" data-node="${node.id}"><b>${escaped(title(node))}</b> <span>${escaped(node.scope)}</span></li>`).join("") +
    (words.length && !shown.length ? `<li role="option" aria-selected="false" aria-disabled="true">nothing found</li>` : hits.length > shown.length ? `<li role="option" aria-selected="false" aria-disabled="true">and ${hits.length - shown.length} more</li>` : "");
  $("hits").hidden = !words.length;
  $("search").setAttribute("aria-expanded", String(words.length > 0));
  markHit();
}
function markHit() {
  [...$("hits").children].forEach((li, i) => li.setAttribute("aria-selected", String(i === hit)));
  if (hit >= 0) {
    $("search").setAttribute("aria-activedescendant", `hit${hit}`);
    $("hits").children[hit].scrollIntoView({block: "nearest"});
  } else {
    $("search").removeAttribute("aria-activedescendant");
  }
}
function closeSearch() {
  $("hits").hidden = true;
  $("search").setAttribute("aria-expanded", "false");
  $("search").removeAttribute("aria-activedescendant");
}
function takeHit(node) {
  closeSearch();
  $("search").blur();
  reveal(node);
  visit(node);
}
function searchKey(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const count = Math.min(hits.length, 40);
    if (count) hit = (hit + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
    markHit();
    event.preventDefault();
  } else if (event.key === "Enter" && hit >= 0) {
    takeHit(hits[hit]);
  } else if (event.key === "Escape") {
    closeSearch();
    $("search").value = "";
    $("search").blur();
  }
  event.stopPropagation();
}

const helpHtml = `<form method="dialog"><h2 id="help-title">Keys</h2><dl>
  <dt><kbd>←</kbd> <kbd>→</kbd></dt><dd>one step back or on</dd>
  <dt><kbd>Shift</kbd> <kbd>←</kbd> <kbd>→</kbd></dt><dd>to the module before or after</dd>
  <dt><kbd>Home</kbd> <kbd>End</kbd></dt><dd>before the run, after the last step</dd>
  <dt><kbd>P</kbd></dt><dd>play, pause</dd>
  <dt><kbd>Enter</kbd></dt><dd>open or fold the module of this step</dd>
  <dt><kbd>F</kbd></dt><dd>to the next failed check</dd>
  <dt><kbd>/</kbd></dt><dd>search</dd>
  <dt><kbd>↑</kbd> <kbd>↓</kbd></dt><dd>in the tree: from one to the next</dd></dl>
  <h2>Reading it</h2><dl>
  <dt><svg width="34" height="22" aria-hidden="true"><rect class="box" x="1" y="1" width="32" height="20" rx="5"/><rect class="forward" x="5" y="5" width="4" height="12" rx="2"/></svg></dt><dd>bar on the left: the value is computed</dd>
  <dt><svg width="34" height="22" aria-hidden="true"><rect class="box" x="1" y="1" width="32" height="20" rx="5"/><rect class="backward" x="25" y="5" width="4" height="12" rx="2"/></svg></dt><dd>bar on the right: its gradient has arrived</dd>
  <dt><svg width="34" height="22" aria-hidden="true"><path class="edge gradient" d="M2 6H32" style="stroke-width:2"/><path class="edge gradient" d="M2 15H32" style="stroke-width:6"/></svg></dt><dd>a gradient passed here; wider: of larger norm</dd>
  <dt><span class="glyph ok">✓</span> <span class="glyph wrong">✗</span> –</dt><dd>agrees with finite differences, disagrees, not checked</dd></dl>
  <p>The address keeps the step and what is open: a link or a bookmark leads back here.</p>
  <button class="close" value="close">Close</button></form>`;

function toggleTheme() {
  const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
  try { localStorage.setItem("prenorm theme", document.documentElement.dataset.theme); } catch { /* not kept, then */ }
}
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const now = theme || (dark.matches ? "dark" : "light");
  $("theme").innerHTML = now === "dark" ? `☀<span class="hidden">Light colours</span>` : `☾<span class="hidden">Dark colours</span>`;
  $("theme").title = now === "dark" ? "Light colours" : "Dark colours";
  palette = null;
  if (layout) inspect();
}

function setTreeShown(shown) {
  document.body.classList.toggle("tree-shown", shown);
  $("tree-button").setAttribute("aria-expanded", String(shown));
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const target = event.target;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const act = {
    ArrowRight: () => event.shiftKey ? goScope(1) : go(state.step + 1),
    ArrowLeft: () => event.shiftKey ? goScope(-1) : go(state.step - 1),
    Home: () => go(0),
    End: () => go(lastStep),
    "/": () => { $("search").focus(); $("search").select(); },
    f: goFailure,
    p: () => setPlaying(timer === null),
    "?": () => $("help").showModal(),
    Escape: () => setTreeShown(false),
  }[key];
  if (act) {
    if (key !== "p") setPlaying(false);
    act();
  } else if (key === "Enter" && !target.closest("a, button, summary, input, [role=treeitem]")) {
    const node = nodeAt(state.step);
    if (!node) return;
    const folded = foldedAround(node), inner = scopeOf[node.id];
    if (folded) setOpen(folded, true);
    else if (inner !== root) setOpen(inner, false);
  } else {
    return;
  }
  event.preventDefault();
}

function begin() {
  document.title = run.title;
  $("title").textContent = run.title;
  if (run.note) {
    $("note").textContent = run.note;
    $("note").hidden = false;
  }
  if (run.broken) {
    const node = nodes[run.broken.node];
    $("banner").innerHTML = `<strong>Broken on purpose:</strong> ${escaped(title(node) + where(node))}: ${escaped(run.broken.fault)}. <button type="button" class="link" data-fail>Where does it show?</button>`;
    $("banner").hidden = false;
  }
  const checked = nodes.filter((node) => node.verdict === "ok").length;
  const summary = $("checks");
  summary.innerHTML = failures.length ? `<span class="glyph wrong" aria-hidden="true">✗</span> ${failures.length} wrong` : checked ? `<span class="glyph ok" aria-hidden="true">✓</span> ${checked} checked` : "not checked";
  summary.title = failures.length ? "To the next failed check (F)" : "Backward calls that agree with finite differences";
  summary.disabled = !failures.length;
  const at = (step) => `calc(9px + (100% - 18px) * ${step / (lastStep || 1)})`;
  $("marks").innerHTML = failures.slice(0, 40).map((step) => `<span style="left:${at(step)}">✗</span>`).join("");
  $("top").style.setProperty("--split", forwardSteps / (lastStep || 1));
  $("slider").max = lastStep;
  $("half-forward").textContent = `forward ${forwardSteps}`;
  $("half-backward").textContent = backwardSteps ? `backward ${backwardSteps}` : "no backward";
  $("legend").innerHTML = `<span><i class="forward"></i>value computed</span><span><i class="backward"></i>gradient arrived</span><span><i class="thin"></i><i class="thick"></i>its norm</span>${layoutHasStream() ? `<span><i class="band"></i>residual stream</span>` : ""}`;
  $("help").innerHTML = helpHtml;
  let theme = null;
  try { theme = localStorage.getItem("prenorm theme"); } catch { /* none was kept */ }
  setTheme(theme);
  firstOpen = [...defaultOpen()].filter((id) => id !== "").sort().map(encodeURIComponent).join(",");
  readState();
  setPlaying(false);
  relayout();
  show(false);

  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-go], [data-step], [data-fail], .jump");
    if (link) {
      event.preventDefault();
      if (link.dataset.go !== undefined) {
        reveal(nodes[Number(link.dataset.go)]);
        visit(nodes[Number(link.dataset.go)]);
      } else if (link.dataset.step) {
        go(Number(link.dataset.step));
      } else if (link.dataset.fail !== undefined) {
        goFailure();
      } else {
        $("inspector").focus();
      }
    }
    if (!event.target.closest(".find")) closeSearch();
  });
  $("tree").addEventListener("keydown", treeKey);
  $("tree").addEventListener("click", (event) => {
    const li = event.target.closest("li");
    if (li) treeAct(li);
  });
  $("graph").addEventListener("click", graphClick);
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
  $("graph-scroll").addEventListener("scroll", later, {passive: true});
  new ResizeObserver(() => { fit(); later(); }).observe($("graph-scroll"));
  $("slider").addEventListener("input", () => { setPlaying(false); go(Number($("slider").value), false); });
  $("play").addEventListener("click", () => setPlaying(timer === null));
  $("back").addEventListener("click", () => { setPlaying(false); go(state.step - 1); });
  $("forth").addEventListener("click", () => { setPlaying(false); go(state.step + 1); });
  $("theme").addEventListener("click", toggleTheme);
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("checks").addEventListener("click", goFailure);
  $("tree-button").addEventListener("click", () => setTreeShown(!document.body.classList.contains("tree-shown")));
  const zoom = (factor) => { state.zoom = Math.max(0.4, Math.min(2.5, state.zoom * factor)); fit(); follow(false); draw(); saveState(); };
  $("zoom-in").addEventListener("click", () => zoom(1.2));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.2));
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", searchKey);
  $("hits").addEventListener("mousedown", (event) => {
    const li = event.target.closest("[data-node]");
    event.preventDefault();
    if (li) takeHit(nodes[Number(li.dataset.node)]);
  });
  dark.addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
  window.addEventListener("hashchange", () => { if (location.hash !== stateText()) { readState(); relayout(); show(false); } });
}
const layoutHasStream = () => nodes.some((node) => node.op === "residual_add");

begin();
})();
