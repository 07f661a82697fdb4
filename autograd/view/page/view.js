"use strict";
const run = JSON.parse(document.getElementById("run").textContent);
document.title = run.title;
document.querySelector("main").textContent =
  run.nodes.map((node) => `${node.id} ${node.scope} ${node.op} ${node.verdict}`).join("\n");
document.querySelector("main").style.whiteSpace = "pre";
