#include "autograd/view/export.h"

#include <map>
#include <utility>

#include "autograd/view/budget.h"
#include "autograd/view/json_text.h"
#include "autograd/view/page.h"
#include "autograd/view/report.h"

namespace prenorm::view {
namespace {

std::string truth(bool value) { return value ? "true" : "false"; }
std::string number(double value) { return json_number(value, 6); }
std::string id_json(std::int64_t id) { return std::to_string(id); }

std::string numbers_json(const std::vector<double>& values) {
  JsonList list('[');
  for (double value : values) list.add(json_number(value));
  return list.close();
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "\"ok\"";
    case Verdict::wrong:
      return "\"wrong\"";
    case Verdict::unchecked:
      return "\"unchecked\"";
    case Verdict::none:
      return "\"none\"";
  }
  return "\"none\"";
}

// Writes the whole document through a budget, which at first only looks at the tensors, and then knows their texts.
class Document {
 public:
  Document(const Record& record, const Report& report, TensorBudget& budget)
      : record_(record), report_(report), budget_(budget) {}

  std::string text() {
    JsonList out('{');
    out.add("format", "\"prenorm run\"").add("version", "1");
    out.add("title", json_string(report_.title)).add("note", json_string(report_.note));
    out.add("broken", broken()).add("truncated", truth(budget_.truncated()));
    JsonList nodes('[');
    for (std::int64_t id = 0; id < record_.size(); ++id) nodes.add(node(id));
    out.add("nodes", nodes.close());
    out.add("ops", ops());
    JsonList backward('[');
    for (std::int64_t id : report_.backward) backward.add(id_json(id));
    out.add("backward", backward.close());
    JsonList forks('['), norms('['), paths('[');
    for (const Fork& one : report_.forks) forks.add(fork(one));
    for (const NormReport& one : report_.norms) norms.add(norm(one));
    for (const Path& one : report_.paths) paths.add(path(one));
    out.add("forks", forks.close()).add("norms", norms.close()).add("paths", paths.close());
    out.add("sources", sources());
    return out.close();
  }

 private:
  const NodeReport& of(std::int64_t id) const { return report_.nodes[static_cast<std::size_t>(id)]; }

  std::string tensor(const Tensor& tensor, Importance importance) {
    return tensor.defined() ? budget_.text(tensor, importance) : "null";
  }
  std::string tensors(const Tensors& list, Importance importance) {
    JsonList out('[');
    for (const Tensor& one : list) out.add(tensor(one, importance));
    return out.close();
  }

  std::string broken() const {
    if (!report_.broken.has_value()) return "null";
    return JsonList('{')
        .add("node", id_json(report_.broken->node))
        .add("fault", json_string(report_.broken->name))
        .close();
  }

  std::string node(std::int64_t id) {
    const RecordedNode& node = record_[id];
    const NodeTrace& trace = report_.trace[id];
    const NodeReport& report = of(id);
    const Importance importance = report.verdict == Verdict::wrong ? Importance::failed : Importance::other;
    JsonList inputs('['), checks('[');
    for (const Ref& input : node.inputs) {
      inputs.add(input.given()
                     ? JsonList('{').add("node", id_json(input.node)).add("output", id_json(input.output)).close()
                     : "null");
    }
    JsonList out('{');
    out.add("id", id_json(id)).add("op", json_string(node.op()));
    out.add("name", json_string(report.name)).add("scope", json_string(report.scope));
    out.add("numbers", json_string(report.numbers)).add("backward_numbers", json_string(report.backward_numbers));
    out.add("inputs", inputs.close());
    out.add("outputs", tensors(node.outputs, importance));
    out.add("cotangents", tensors(trace.cotangents, importance));
    out.add("gradients", tensors(trace.gradients, importance));
    for (const std::optional<Check>& one : report.checks)
      checks.add(one.has_value() ? check(*one, importance) : "null");
    out.add("checks", checks.close()).add("verdict", name(report.verdict));
    out.add("backward_index", report.backward_index.has_value() ? id_json(*report.backward_index) : "null");
    return out.close();
  }

  std::string check(const Check& check, Importance importance) {
    JsonList out('{');
    switch (check.mode) {
      case Check::Mode::none:
        out.add("mode", "\"none\"");
        break;
      case Check::Mode::elements:
        out.add("mode", "\"elements\"").add("difference", tensor(check.difference, importance));
        break;
      case Check::Mode::direction:
        out.add("mode", "\"direction\"");
        out.add("gradient", json_number(check.gradient, 10)).add("difference", json_number(check.numeric, 10));
        break;
    }
    if (check.mode != Check::Mode::none) out.add("error", json_number(check.error, 3)).add("ok", truth(check.ok));
    if (!check.reason.empty()) out.add("reason", json_string(check.reason));
    return out.close();
  }

  // What the ops that occur say of themselves, each once.
  std::string ops() const {
    std::map<std::string_view, const OpInfo*> infos;
    for (const RecordedNode& node : record_.nodes()) {
      if (node.is_op()) infos[node.op()] = &node.node->info();
    }
    JsonList out('{');
    for (const auto& [op, info] : infos) {
      const std::string* source = embedded_file(info->file);
      const LineRange lines = source != nullptr ? backward_lines(*source, op) : LineRange{};
      const std::string range = "[" + std::to_string(lines.first) + "," + std::to_string(lines.last) + "]";
      const std::string key = json_string(op);
      out.add(std::string_view(key).substr(1, key.size() - 2), JsonList('{')
                                                                   .add("formula", json_string(info->formula))
                                                                   .add("derivative", json_string(info->derivative))
                                                                   .add("reference", json_string(info->reference))
                                                                   .add("file", json_string(info->file))
                                                                   .add("backward", lines.first > 0 ? range : "null")
                                                                   .close());
    }
    return out.close();
  }

  std::string sources() const {
    std::map<std::string_view, const std::string*> files;
    for (const RecordedNode& node : record_.nodes()) {
      if (!node.is_op()) continue;
      const std::string_view path = node.node->info().file;
      if (const std::string* source = embedded_file(path)) files[path] = source;
    }
    JsonList out('{');
    for (const auto& [path, source] : files) {
      out.add(path, JsonList('{').add("first_line", "1").add("text", json_string(*source)).close());
    }
    return out.close();
  }

  std::string fork(const Fork& fork) {
    JsonList parts('[');
    const std::string total = tensor(fork.total, Importance::shown);
    for (const ForkPart& part : fork.parts) {
      parts.add(JsonList('{')
                    .add("consumer", id_json(part.consumer))
                    .add("input", id_json(part.input))
                    .add("role", json_string(part.role))
                    .add("norm", number(part.norm))
                    .add("gradient", tensor(part.gradient, Importance::shown))
                    .close());
    }
    return JsonList('{')
        .add("node", id_json(fork.value.node))
        .add("output", id_json(fork.value.output))
        .add("total", total)
        .add("parts", parts.close())
        .add("cosine", fork.cosine.has_value() ? number(*fork.cosine) : "null")
        .add("ok", fork.sum.known ? truth(fork.sum.ok) : "null")
        .add("error", json_number(fork.sum.error, 3))
        .close();
  }

  std::string norm(const NormReport& norm) {
    const NormParts& parts = norm.parts;
    JsonList out('{'), norms('{');
    out.add("node", id_json(norm.node));
    const auto add = [&](std::string_view key, const Tensor& part) {
      out.add(key, tensor(part, Importance::shown));
      norms.add(key, part.defined() ? number(norm_of(part)) : "null");
    };
    add("incoming", parts.incoming);
    add("mean_part", parts.mean_part);
    add("x_hat_part", parts.x_hat_part);
    add("passed", parts.passed);
    out.add("sigma", tensor(parts.sigma, Importance::shown));
    return out.add("norms", norms.close()).close();
  }

  std::string path(const Path& path) const {
    JsonList stream('[');
    for (std::int64_t id : path.stream) stream.add(id_json(id));
    return JsonList('{')
        .add("stream", stream.close())
        .add("shares", numbers_json(path.shares))
        .add("norms", numbers_json(path.norms))
        .add("sum", json_number(path.sum))
        .close();
  }

  const Record& record_;
  const Report& report_;
  TensorBudget& budget_;
};

}  // namespace

std::string export_json(const Record& record, const Options& options) {
  const Report report = make_report(record, options);
  TensorBudget budget;
  const std::string without_tensors = Document(record, report, budget).text();
  budget.settle(without_tensors.size());
  return Document(record, report, budget).text();
}

}  // namespace prenorm::view
