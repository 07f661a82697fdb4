#include "autograd/view/report.h"

#include <algorithm>

#include "autograd/view/numbers.h"

namespace prenorm::view {
namespace {

// Beyond so many nodes the export says less of each, to stay small.
constexpr std::size_t kNumbersUpTo = 2000;

Verdict verdict_of(const RecordedNode& node, const NodeTrace& trace, const Checks& checks) {
  if (!node.is_op() || !trace.reached) return Verdict::none;
  bool checked = false;
  for (const std::optional<Check>& check : checks) {
    if (!check.has_value()) continue;
    if (!check->ok) return Verdict::wrong;
    checked = checked || check->mode != Check::Mode::none;
  }
  return checked ? Verdict::ok : Verdict::unchecked;
}

Fault find_fault(const Record& record, const Trace& trace, const BreakIt& wanted) {
  std::int64_t id = wanted.node;
  if (id < 0) {
    for (id = 0; id < record.size(); ++id) {
      if (record[id].op() == wanted.op && trace[id].reached) break;
    }
    check(id < record.size(), "view::Recording: there is nothing to break: backward reached no node of the op \"",
          wanted.op, "\"");
  }
  check(id < record.size(), "view::Recording: there is no node ", id, " to break, the record has ", record.size());
  check(trace[id].reached, "view::Recording: backward did not reach node ", id, ", ", record[id].op(),
        ", so there is nothing to break");
  return make_fault(record, id, wanted.fault);
}

void judge_sums(const Record& record, Report& report) {
  for (const Sum& sum : check_sums(record, report.trace)) {
    NodeReport& node = report.nodes[static_cast<std::size_t>(sum.value.node)];
    if (!sum.ok) node.verdict = Verdict::wrong;
    for (Fork& fork : report.forks) {
      if (fork.value == sum.value) fork.sum = sum;
    }
  }
}

std::string scope_of(const RecordedNode& node, const std::string& name) {
  if (node.is_op() || name.empty()) return node.scope;
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

}  // namespace

Report make_report(const Record& record, const Options& options) {
  check(record.size() > 0,
        "view::Recording: nothing was recorded; make the Recording before the forward pass, on the same thread, and "
        "let an input or a parameter require grad");
  Report report;
  report.title = options.title;
  report.note = options.note;
  report.trace = recorded_trace(record);
  if (options.break_it.has_value()) {
    report.broken = find_fault(record, report.trace, *options.break_it);
    report.trace = broken_trace(record, report.trace, *report.broken);
  }
  const std::vector<std::string> names = record.names(options.names);
  for (std::int64_t id = 0; id < record.size(); ++id) {
    const RecordedNode& node = record[id];
    const NodeTrace& trace = report.trace[id];
    NodeReport one;
    one.name = names[static_cast<std::size_t>(id)];
    one.scope = scope_of(node, one.name);
    if (node.is_op() && trace.reached && options.checks) one.checks = check_node(node, trace);
    one.checks.resize(node.inputs.size());
    one.verdict = verdict_of(node, trace, one.checks);
    if (node.is_op() && record.nodes().size() <= kNumbersUpTo) {
      one.numbers = numbers_of(node);
      if (trace.reached) one.backward_numbers = backward_numbers_of(node, trace);
    }
    report.nodes.push_back(std::move(one));
    if (node.is_op() && trace.reached && is_norm(node.op())) {
      if (const std::optional<NormParts> parts = norm_parts(node, trace.cotangents))
        report.norms.push_back({id, *parts});
    }
  }
  for (std::int64_t id : record.backward_order()) {
    if (!report.trace[id].reached) continue;  // behind a fault that passes nothing on
    report.nodes[static_cast<std::size_t>(id)].backward_index = static_cast<std::int64_t>(report.backward.size());
    report.backward.push_back(id);
  }
  report.forks = find_forks(record, report.trace);
  judge_sums(record, report);
  report.paths = find_paths(record, report.trace);
  return report;
}

}  // namespace prenorm::view
