
// ---- Layout: units (ops and folded scopes) in rows and lanes ---------------------------------------------------------
//
// The tape is in topological order, so rows are longest paths. A lane is a chain of main inputs: the first lane ends at
// the last op and follows the skip of each residual sum, so that the residual stream is one straight line; whatever
// joins a lane from the side is a lane to the right of it.

// In pixels. Chips are beside an op: its parameters and other inputs; narrow ones where there are many lanes.
const sizes = {width: 168, height: 42, gap: 34, chipWidth: 122, chipHeight: 19, chipGap: 12, gutter: 30, margin: 26};

// A folded scope called again later is another unit: so edges never lead back.
function makeUnits() {
  const units = [], unitOf = new Map();
  let last = null;
  for (const node of nodes) {
    if (isSource(node)) continue;
    const folded = foldedAround(node);
    if (!(last && folded && last.scope === folded)) {
      last = {scope: folded, node: folded ? null : node, ids: [], inputs: [], chips: [], row: 0, order: node.id};
      units.push(last);
    }
    last.ids.push(node.id);
    unitOf.set(node.id, last);
  }
  // Edges between units, and the sources each one takes from outside.
  for (const unit of units) {
    const seen = new Map();
    unit.sources = [];
    for (const id of unit.ids) {
      nodes[id].inputs.forEach((from, input) => {
        if (!from) return;
        const source = nodes[from.node];
        if (isSource(source)) {
          if (!(unit.scope && foldedAround(source) === unit.scope) && !unit.sources.includes(source)) unit.sources.push(source);
          return;
        }
        const other = unitOf.get(from.node);
        if (other === unit) return;
        if (!seen.has(other)) {
          seen.set(other, {from: other, to: unit, uses: []});
          unit.inputs.push(seen.get(other));
        }
        seen.get(other).uses.push({node: id, input});
      });
    }
  }
  placeSources(units, unitOf);
  units.sort((a, b) => a.order - b.order);
  return {units, unitOf};
}

// A source that starts a lane or that several ops share as a stream is a unit; others are chips beside their ops.
function placeSources(units, unitOf) {
  const boxes = new Set();
  for (const unit of units) {
    const first = nodes[unit.ids[0]].inputs.find((from) => from);
    const start = unit.sources.find((source) => first && source.id === first.node) || unit.sources[0];
    if (unit.inputs.length === 0 && start) boxes.add(start);
    for (const source of unit.sources) {
      if ((forkOf.get(source.id) || []).some((fork) => fork.parts.some((part) => part.role === "skip"))) boxes.add(source);
    }
  }
  for (const source of boxes) {
    const box = {scope: null, node: source, ids: [source.id], inputs: [], sources: [], chips: [], row: 0, order: source.id};
    unitOf.set(source.id, box);
    units.push(box);
  }
  for (const unit of units) {
    for (const source of unit.sources) {
      if (!boxes.has(source)) {
        unit.chips.push(source);
        continue;
      }
      const uses = [];
      for (const id of unit.ids) {
        nodes[id].inputs.forEach((from, input) => { if (from && from.node === source.id) uses.push({node: id, input}); });
      }
      unit.inputs.push({from: unitOf.get(source.id), to: unit, uses});
    }
    unit.inputs.sort((a, b) => a.uses[0].node - b.uses[0].node || a.uses[0].input - b.uses[0].input);
  }
}

function makeLanes(units) {
  const lanes = [];
  const walk = (end, join) => {
    const lane = {units: [], fork: null, join, parent: join ? join.to.lane : null};
    let unit = end;
    while (unit && !unit.lane) {
      unit.lane = lane;
      lane.units.unshift(unit);
      const main = unit.inputs[0];
      if (main) main.kind = main.from.lane && main.from.lane !== lane ? "fork" : "main";
      if (main && main.kind === "fork") lane.fork = main;
      unit = main ? main.from : null;
    }
    lanes.push(lane);
  };
  for (let i = units.length - 1; i >= 0; --i) {
    const unit = units[i];
    if (!unit.lane) walk(unit, null);
    for (const edge of unit.inputs.slice(1)) {
      if (edge.from.lane) {
        edge.kind = "cross";
      } else {
        edge.kind = "join";
        walk(edge.from, edge);
      }
    }
  }
  return lanes;
}

function placeRows(units, lanes) {
  for (const unit of units) unit.row = Math.max(0, ...unit.inputs.map((edge) => edge.from.row + 1));
  // What starts from sources alone stands just above where it is used.
  const next = new Map();
  for (let i = units.length - 1; i >= 0; --i) {
    const unit = units[i];
    if (!unit.lane.fork && unit.lane !== lanes[0] && next.has(unit)) unit.row = next.get(unit) - 1;
    for (const edge of unit.inputs) next.set(edge.from, Math.min(next.get(edge.from) ?? Infinity, unit.row));
  }
}

function placeColumns(lanes) {
  for (const lane of lanes) {
    const first = lane.units[0], last = lane.units[lane.units.length - 1];
    lane.from = lane.fork ? lane.fork.from.row : first.row;
    lane.to = lane.join ? lane.join.to.row : last.row;
    lane.depth = lane.parent ? lane.parent.depth + 1 : 0;
  }
  const columns = [];
  const order = [...lanes].sort((a, b) => a.depth - b.depth || a.to - a.from - (b.to - b.from));
  // The first lane owns its column wherever it is.
  order.splice(order.indexOf(lanes[0]), 1);
  order.unshift(lanes[0]);
  for (const lane of order) {
    let column = lane.parent ? lane.parent.column + 1 : lane === lanes[0] ? 0 : 1;
    const taken = (other) => lane.from < other.to && other.from < lane.to || lane.from === other.from && lane.to === other.to;
    while ((columns[column] ||= []).some(taken)) ++column;
    columns[column].push(lane);
    lane.column = column;
    for (const unit of lane.units) unit.column = column;
  }
  return columns.length;
}

function makeLayout() {
  const {units, unitOf} = makeUnits();
  const lanes = makeLanes(units);
  placeRows(units, lanes);
  const columns = placeColumns(lanes);
  const rows = [], chips = new Array(columns).fill(false);
  for (const unit of units) {
    (rows[unit.row] ||= {units: [], height: sizes.height}).units.push(unit);
    rows[unit.row].height = Math.max(rows[unit.row].height, unit.chips.length * (sizes.chipHeight + 2));
  }
  // Chips need room of their own only where something stands or passes beside them.
  for (const unit of units) {
    const beside = (other) => other.column === unit.column + 1 && other.from < unit.row && unit.row < other.to;
    if (unit.chips.length && (lanes.some(beside) || rows[unit.row].units.some((other) => other.column === unit.column + 1))) chips[unit.column] = true;
  }
  sizes.chipWidth = columns > 3 ? 88 : 122;
  let x = sizes.margin;
  const left = [];
  for (let c = 0; c < columns; ++c) {
    x += sizes.gutter;
    left[c] = x;
    x += sizes.width + (chips[c] ? sizes.chipGap + sizes.chipWidth : 0);
  }
  let y = sizes.margin;
  for (const row of rows) {
    row.y = y;
    y += row.height + sizes.gap;
  }
  for (const unit of units) {
    const row = rows[unit.row];
    Object.assign(unit, {x: left[unit.column], y: row.y + (row.height - sizes.height) / 2, rowTop: row.y,
      rowBottom: row.y + row.height});
    unit.cx = unit.x + sizes.width / 2;
    unit.cy = unit.y + sizes.height / 2;
  }
  const right = Math.max(...units.map((unit) => unit.x + sizes.width + (unit.chips.length ? sizes.chipGap + sizes.chipWidth : 0)), 0);
  const layout = {units, unitOf, lanes, rows, edges: units.flatMap((unit) => unit.inputs), width: right + sizes.margin,
    height: y - sizes.gap + sizes.margin, stream: null, frames: []};
  layout.edges.forEach((edge) => { edge.path = route(edge, rows); });
  layout.stream = streamBand(lanes[0]);
  layout.frames = frames(layout);
  return layout;
}

// A line of straight pieces with round corners.
function roundedLine(points, radius = 14) {
  let path = `M${points[0]}`;
  for (let i = 1; i < points.length - 1; ++i) {
    const [a, b, c] = [points[i - 1], points[i], points[i + 1]];
    const r = Math.min(radius, Math.hypot(b[0] - a[0], b[1] - a[1]) / 2, Math.hypot(c[0] - b[0], c[1] - b[1]) / 2);
    const towards = (p, q) => {
      const length = Math.hypot(q[0] - p[0], q[1] - p[1]) || 1;
      return [p[0] + (q[0] - p[0]) / length * r, p[1] + (q[1] - p[1]) / length * r];
    };
    path += `L${towards(b, a)}Q${b} ${towards(b, c)}`;
  }
  return path + `L${points[points.length - 1]}`;
}

function route(edge, rows) {
  const {from, to} = edge, half = sizes.gap / 2;
  const bottom = [from.cx, from.y + sizes.height], top = [to.cx, to.y];
  edge.top = bottom[1];
  edge.bottom = top[1];
  if (edge.kind === "main") return roundedLine([bottom, top]);
  const clear = (row, low, high) => rows[row].units.every((unit) => unit.column <= low || unit.column >= high);
  if (edge.kind === "fork") {
    const x = to.cx;
    if (to.column > from.column && !from.chips.length && clear(from.row, from.column, to.column)) {
      edge.top = from.cy;
      return roundedLine([[from.x + sizes.width, from.cy + 7], [x, from.cy + 7], top]);
    }
    const y = from.rowBottom + half - 6;
    return roundedLine([bottom, [bottom[0], y], [x, y], top], 10);
  }
  if (edge.kind === "join") {
    const x = from.cx;
    if (from.column > to.column && !to.chips.length && clear(to.row, to.column, from.column)) {
      edge.bottom = to.cy;
      return roundedLine([bottom, [x, to.cy - 7], [to.x + sizes.width, to.cy - 7]]);
    }
    const y = to.rowTop - half + 6;
    return roundedLine([bottom, [x, y], [top[0], y], top], 10);
  }
  // From one lane into another, through the gutter beside the lower one.
  const x = to.x - sizes.gutter / 2, leave = from.rowBottom + half + 4, arrive = to.rowTop - half;
  if (arrive <= leave + 8) return roundedLine([bottom, [bottom[0], arrive], [top[0], arrive], top], 8);
  return roundedLine([bottom, [bottom[0], leave], [x, leave], [x, arrive], [top[0], arrive], top], 8);
}

// Where the residual stream runs: from below its first residual sum's skip to the last sum.
function streamBand(lane) {
  const sums = lane.units.filter((unit) => unit.ids.some((id) => nodes[id].op === "residual_add"));
  if (!sums.length) return null;
  const first = sums[0].node ? sums[0].inputs[0]?.from : sums[0].inputs[0]?.from || sums[0];
  const last = sums[sums.length - 1];
  const start = first && first.lane === lane ? first : sums[0];
  return {x: start.cx, top: start.cy, bottom: last.cy};
}

// A frame around an open scope whose units stand by themselves.
function frames(layout) {
  const boxes = new Map();
  for (const unit of layout.units) {
    const node = nodes[unit.ids[0]];
    let at = unit.scope ? unit.scope.parent : scopeOf[node.id];
    for (; at && at !== root; at = at.parent) {
      let box = boxes.get(at);
      if (!box) boxes.set(at, box = {scope: at, left: Infinity, right: 0, top: Infinity, bottom: 0, units: new Set()});
      box.units.add(unit);
      box.left = Math.min(box.left, unit.x);
      box.right = Math.max(box.right, unit.x + sizes.width + (unit.chips.length ? sizes.chipGap + sizes.chipWidth : 0));
      box.top = Math.min(box.top, unit.rowTop);
      box.bottom = Math.max(box.bottom, unit.rowBottom);
    }
  }
  const list = [];
  for (const box of boxes.values()) {
    if (box.units.size < 2 || box.scope.items.every((item) => item instanceof Scope && /^\d/.test(item.name))) continue;
    let alone = true;
    for (const row of layout.rows) {
      if (row.y > box.bottom || row.y + row.height < box.top) continue;
      for (const unit of row.units) {
        if (!box.units.has(unit) && unit.x < box.right && unit.x + sizes.width > box.left) alone = false;
      }
    }
    let depth = 0;
    for (let at = box.scope.parent; at; at = at.parent) if (boxes.has(at) && at.items.some((item) => !(item instanceof Scope) || !/^\d/.test(item.name))) ++depth;
    if (alone) list.push({...box, depth});
  }
  return list.sort((a, b) => a.depth - b.depth);
}
