
// ---- Tree of modules (an ARIA tree with one tab stop) ------------------------------------------------------------------

const treeItems = new Map();  // scope id or node id -> li
let treeSelected = null;

function treeItem(item, level) {
  if (item instanceof Scope) {
    const open = isOpen(item);
    const tally = item.wrong ? `<span class="glyph wrong">✗${item.wrong > 1 ? item.wrong : ""}<span class="hidden"> ${item.wrong} wrong</span></span>` : item.checked ? `<span class="glyph ok" aria-hidden="true">✓</span>` : "";
    return `<li role="treeitem" aria-level="${level}" aria-expanded="${open}" aria-selected="false" tabindex="-1" data-scope="${escaped(item.id)}"><span class="row" style="--level:${level}"><span class="twist" aria-hidden="true">${open ? "▾" : "▸"}</span><span class="name">${escaped(item.name)}</span>${item.times ? `<span class="times">×${item.times}</span>` : ""}<span class="ops">${plural(item.ops, "op")}</span>${tally}</span>${open ? `<ul role="group">${item.items.map((one) => treeItem(one, level + 1)).join("")}</ul>` : ""}</li>`;
  }
  const glyph = item.verdict === "none" ? "" : `<span class="glyph ${item.verdict}">${glyphs[item.verdict]}<span class="hidden"> ${verdictWords[item.verdict]}</span></span>`;
  return `<li role="treeitem" aria-level="${level}" aria-selected="false" tabindex="-1" data-node="${item.id}"><span class="row${isSource(item) ? " source" : ""}" style="--level:${level}"><span class="name">${escaped(label(item))}</span>${forkOf.has(item.id) ? `<svg class="forks" width="12" height="12" role="img" aria-label="used more than once"><path d="M6 11V6L2 1M6 6L10 1"/></svg>` : ""}${glyph}</span></li>`;
}

function drawTree() {
  const tree = $("tree"), focused = tree.contains(document.activeElement) ? document.activeElement.dataset : null;
  tree.innerHTML = root.items.map((item) => treeItem(item, 1)).join("");
  treeItems.clear();
  for (const li of tree.querySelectorAll("li")) treeItems.set(li.dataset.scope !== undefined ? `s${li.dataset.scope}` : `n${li.dataset.node}`, li);
  treeSelected = null;
  selectInTree();
  if (focused) (treeItems.get(focused.scope !== undefined ? `s${focused.scope}` : `n${focused.node}`) || treeSelected)?.focus();
}

function selectInTree() {
  const node = nodeAt(state.step);
  if (treeSelected) {
    treeSelected.setAttribute("aria-selected", "false");
    treeSelected.tabIndex = -1;
  }
  const folded = node && foldedAround(node);
  treeSelected = node ? treeItems.get(folded ? `s${folded.id}` : `n${node.id}`) : null;
  const stop = treeSelected || $("tree").querySelector("li");
  for (const li of $("tree").querySelectorAll('li[tabindex="0"]')) li.tabIndex = -1;
  if (stop) stop.tabIndex = 0;
  if (!treeSelected) return;
  treeSelected.setAttribute("aria-selected", "true");
  keepInView($("tree-pane"), treeSelected.firstElementChild);
}

function keepInView(pane, element) {
  const outer = pane.getBoundingClientRect(), inner = element.getBoundingClientRect();
  if (inner.top < outer.top + 40) pane.scrollTop -= outer.top + 60 - inner.top;
  else if (inner.bottom > outer.bottom - 20) pane.scrollTop += inner.bottom - outer.bottom + 40;
}

function setOpen(scope, open) {
  open ? state.open.add(scope.id) : state.open.delete(scope.id);
  relayout();
  saveState();
}

function treeAct(li) {
  if (li.dataset.scope !== undefined) {
    const scope = scopes.get(li.dataset.scope);
    setOpen(scope, !isOpen(scope));
  } else {
    visit(nodes[Number(li.dataset.node)]);
  }
}

function treeKey(event) {
  const li = event.target.closest("li");
  if (!li) return;
  const all = [...$("tree").querySelectorAll("li")], at = all.indexOf(li);
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const next = all[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) {
      li.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
  } else if (event.key === "Enter" || event.key === " ") {
    treeAct(li);
  } else {
    return;
  }
  event.preventDefault();
  event.stopPropagation();
}
