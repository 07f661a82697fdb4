#include "autograd/view/dot.h"

#include <map>
#include <sstream>

namespace prenorm::view {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string label(const RecordedNode& node, const std::string& name) {
  std::ostringstream text;
  text << (name.empty() ? std::string(node.op()) : name) << '\n';
  if (!node.outputs.empty() && node.outputs[0].defined()) text << node.outputs[0].shape();
  return quoted(text.str());
}

}  // namespace

std::string dot_of(const Record& record) {
  check(record.size() > 0, "view::Recording: nothing was recorded, so there is no graph to draw");
  const std::vector<std::string> names = record.names();
  std::map<std::string, std::ostringstream> by_scope;
  std::ostringstream edges;
  for (std::int64_t id = 0; id < record.size(); ++id) {
    const RecordedNode& node = record[id];
    by_scope[node.scope] << "    n" << id << " [label=" << label(node, names[static_cast<std::size_t>(id)])
                         << (node.is_op()                            ? ""
                             : node.kind == RecordedNode::Kind::leaf ? ", shape=box"
                                                                     : ", shape=box, style=dashed")
                         << "];\n";
    for (const Ref& input : node.inputs) {
      if (input.given()) edges << "  n" << input.node << " -> n" << id << ";\n";
    }
  }
  std::ostringstream out;
  out << "digraph run {\n  rankdir=BT;\n";
  int cluster = 0;
  for (const auto& [scope, nodes] : by_scope) {
    if (scope.empty()) {
      out << nodes.str();
    } else {
      out << "  subgraph cluster_" << cluster++ << " {\n    label=" << quoted(scope) << ";\n" << nodes.str() << "  }\n";
    }
  }
  out << edges.str() << "}\n";
  return out.str();
}

}  // namespace prenorm::view
