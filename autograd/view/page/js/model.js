(() => {
"use strict";

// ---- The run as it was written, its modules as a tree, and what a step is ------------------------------------------

const $ = (id) => document.getElementById(id);
const run = JSON.parse($("run").textContent);
const nodes = run.nodes;
const forwardSteps = nodes.length, backwardSteps = run.backward.length, lastStep = forwardSteps + backwardSteps;

const isSource = (node) => node.op === "leaf" || node.op === "constant";
const opInfo = (node) => run.ops[node.op] || {formula: "", derivative: "", reference: "", file: "", backward: null};

// Who uses a node's outputs: [{node, input}].
const consumers = nodes.map(() => []);
for (const node of nodes) {
  node.inputs.forEach((from, input) => { if (from) consumers[from.node].push({node: node.id, input}); });
}
const forkOf = new Map();
for (const fork of run.forks) {
  if (!forkOf.has(fork.node)) forkOf.set(fork.node, []);
  forkOf.get(fork.node).push(fork);
}
const normOf = new Map(run.norms.map((norm) => [norm.node, norm]));
const pathsOf = new Map();
for (const path of run.paths) {
  for (const id of path.stream) pathsOf.set(id, path);
}

// Step 0: nothing is computed. Steps 1 to N: the nodes forward. Then the nodes in the order of backward.
function nodeAt(step) {
  if (step === 0) return null;
  return step <= forwardSteps ? nodes[step - 1] : nodes[run.backward[step - forwardSteps - 1]];
}
const isBackward = (step) => step > forwardSteps;
const forwardStepOf = (node) => node.id + 1;
const backwardStepOf = (node) => node.backward_index === null ? null : forwardSteps + node.backward_index + 1;
const isComputed = (node, step) => node.id < step;
const hasGradient = (node, step) => node.backward_index !== null && node.backward_index < step - forwardSteps;

const failures = nodes.filter((node) => node.verdict === "wrong")
  .map((node) => backwardStepOf(node) ?? forwardStepOf(node)).sort((a, b) => a - b);

// A scope: a module path, with what was computed under it. Equal neighbours are held together in a group.
class Scope {
  constructor(id, name, parent) {
    Object.assign(this, {id, name, parent, items: [], times: 0, ops: 0, wrong: 0, checked: 0, first: Infinity});
  }
}
const root = new Scope("", "", null);
const scopes = new Map([["", root]]);
const scopeOf = [];  // of each node, the innermost one or its group

function scopeAt(path) {
  const known = scopes.get(path);
  if (known) return known;
  const dot = path.lastIndexOf(".");
  const parent = scopeAt(dot < 0 ? "" : path.slice(0, dot));
  const scope = new Scope(path, path.slice(dot + 1), parent);
  scopes.set(path, scope);
  parent.items.push(scope);
  return scope;
}

for (const node of nodes) {
  const scope = scopeAt(node.scope);
  scopeOf[node.id] = scope;
  scope.items.push(node);
  for (let at = scope; at; at = at.parent) {
    at.first = Math.min(at.first, node.id);
    if (!isSource(node)) ++at.ops;
    if (node.verdict === "wrong") ++at.wrong;
    if (node.verdict === "ok") ++at.checked;
  }
}

// The number of a scope's kind: equal for scopes in which the same ops give values of the same shapes.
const kinds = new Map();
function kindOf(scope) {
  const parts = scope.items.map((item) => item instanceof Scope ? `${item.name}(${kindOf(item)})`
    : `${item.op}[${(item.outputs[0] || {shape: []}).shape}]`);
  const text = parts.join(" ");
  if (!kinds.has(text)) kinds.set(text, kinds.size);
  scope.kind = kinds.get(text);
  return scope.kind;
}

const leastGroup = 3;
function holdTogether(scope) {
  const items = [];
  for (let i = 0; i < scope.items.length;) {
    const item = scope.items[i];
    let end = i + 1;
    if (item instanceof Scope) {
      holdTogether(item);
      while (end < scope.items.length && scope.items[end] instanceof Scope && scope.items[end].kind === item.kind) ++end;
    }
    const equal = scope.items.slice(i, end);
    if (equal.length < leastGroup || item.wrong !== equal.reduce((sum, one) => Math.max(sum, one.wrong), 0)) {
      equal.slice(1).forEach((one) => holdTogether(one));
      items.push(...equal);
    } else if (equal.length === scope.items.length) {
      equal.slice(1).forEach((one) => holdTogether(one));
      scope.times = equal.length;
      items.push(...equal);
    } else {
      equal.slice(1).forEach((one) => holdTogether(one));
      const last = equal[equal.length - 1];
      const prefix = scope.id === "" ? "" : scope.id + ".";
      const group = new Scope(`${prefix}${item.name}…${last.name}`, `${item.name} … ${last.name}`, scope);
      group.items = equal;
      group.times = equal.length;
      for (const one of equal) {
        one.parent = group;
        group.ops += one.ops;
        group.wrong += one.wrong;
        group.checked += one.checked;
        group.first = Math.min(group.first, one.first);
      }
      scopes.set(group.id, group);
      items.push(group);
    }
    i = end;
  }
  scope.items = items;
}
kindOf(root);
holdTogether(root);

// All scopes around a node, outermost first, without the root.
function scopesAround(node) {
  const list = [];
  for (let at = scopeOf[node.id]; at !== root; at = at.parent) list.unshift(at);
  return list;
}

// What the reader sees; all of it is in the address.
const state = {step: 0, open: new Set([""]), zoom: 1};
const isOpen = (scope) => state.open.has(scope.id);

// The outermost folded scope around a node; null when the node itself can be seen.
function foldedAround(node) {
  let folded = null;
  for (let at = scopeOf[node.id]; at !== root; at = at.parent) if (!isOpen(at)) folded = at;
  return folded;
}

// With few ops everything is open; else scopes are opened from the outside in while there is room, equal ones stay folded.
function defaultOpen() {
  const open = new Set([""]);
  const room = root.ops <= 60 ? Infinity : 40;
  let seen = root.items.filter((item) => item instanceof Scope || !isSource(item)).length;
  const queue = root.items.filter((item) => item instanceof Scope);
  while (queue.length) {
    const scope = queue.shift();
    const more = scope.items.filter((item) => item instanceof Scope || !isSource(item)).length - 1;
    if (seen + more > room || (scope.times && room < Infinity)) continue;
    seen += more;
    open.add(scope.id);
    queue.push(...scope.items.filter((item) => item instanceof Scope));
  }
  return open;
}
