#include "autograd/view/recording.h"

#include <utility>

#include "autograd/atomic_file.h"
#include "autograd/view/dot.h"
#include "autograd/view/export.h"
#include "autograd/view/fault.h"
#include "autograd/view/page.h"

namespace prenorm::view {

Recording::Recording() : record_(std::make_unique<Record>()) {}
Recording::~Recording() = default;

void Recording::node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) {
  record_->add_node(node, inputs, outputs);
}
void Recording::backward_began(const std::vector<Edge>& outputs, const Tensors& cotangents,
                               const std::vector<Edge>& inputs) {
  record_->begin_run(outputs, cotangents, inputs);
}
void Recording::backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                                const Tensors& gradients) {
  record_->add_call(node, cotangents, gradients);
}

void Recording::name(const Tensor& tensor, std::string name) { record_->add_name(tensor, std::move(name)); }
void Recording::name(const NamedTensors& tensors) {
  for (const NamedTensor& named : tensors) record_->add_name(named.tensor, named.path);
}

std::int64_t Recording::size() const { return record_->size(); }

std::string Recording::json(const Options& options) const { return export_json(*record_, options); }
std::string Recording::dot() const { return dot_of(*record_); }

void Recording::write_html(const std::filesystem::path& path, const Options& options) const {
  write_file(path, page_with(json(options)), "view::Recording::write_html");
}
void Recording::write_json(const std::filesystem::path& path, const Options& options) const {
  write_file(path, json(options), "view::Recording::write_json");
}
void Recording::write_dot(const std::filesystem::path& path) const {
  write_file(path, dot(), "view::Recording::write_dot");
}

std::vector<std::string> Recording::faults(std::string_view op) { return faults_of(op); }

}  // namespace prenorm::view
