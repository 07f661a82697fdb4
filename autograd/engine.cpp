// The backward pass: Tensor::backward, grad() and what tensors know of gradients.
//
// Order: a first walk counts the edges that will reach each node. A node is ready when all of them have brought their
// part. Of the ready nodes, leaves run first, then the newest. So a parameter's gradient is final as early as possible
// and saved values are freed early. All state of a run lives in the Run.

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "autograd/node.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "autograd/tensor_impl.h"

namespace prenorm {
namespace {

// A gradient to keep or to give away: in memory that nothing else shares, so that whoever gets it may write to it.
Tensor owned(Tensor gradient) {
  return gradient.is_sole_owner() && gradient.is_contiguous() ? std::move(gradient) : clone(gradient.detach());
}

// Adds `more` to a gradient in a run. Writes in place only where nobody else can see the memory and no graph is wanted.
void accumulate(Tensor& total, Tensor more) {
  if (!total.defined()) {
    total = std::move(more);
  } else if (GradMode::enabled()) {
    total = total + more;
  } else if (total.is_sole_owner() && total.is_contiguous()) {
    add_(total, more);
  } else if (more.is_sole_owner() && more.is_contiguous()) {
    add_(more, total);
    total = std::move(more);
  } else {
    total = total + more;
  }
}

struct Progress {
  std::int64_t pending = 0;  // edges that have not brought their part yet
  bool wanted = false;       // its gradient was asked for, or leads to one that was
  bool passes_on = false;    // an edge leads to a wanted node: its backward has to run
  Tensors cotangents;        // one an output
};

class Run {
 public:
  Run(const Tensors& outputs, const Tensors& cotangents, bool create_graph, bool keep_graph);
  // Without arguments every leaf stores its gradient; with inputs, only theirs are computed, and returned.
  void store_in_leaves();
  Tensors collect(const Tensors& inputs);

 private:
  class Sink;

  void discover();
  void mark_wanted(const std::vector<Edge>* targets);
  void count_edges();
  void execute();
  void process(Node& node, Progress& progress);
  void store(const Leaf& leaf, Tensor gradient) const;
  void run_hooks(const Node& node, Tensors& cotangents) const;

  const Observer::Inside inside_;  // the sums of gradients are no operations of the user's
  bool create_graph_, keep_graph_;
  std::vector<Edge> roots_;
  Tensors root_cotangents_;
  std::vector<Node*> oldest_first_;  // all nodes that the roots lead to
  std::unordered_map<Node*, Progress> progress_;
  const std::vector<Edge>* targets_ = nullptr;  // null: store in leaves
  Tensors results_;
};

// Hands a node's gradients on along its edges; while somebody observes, keeps them apart too, one an input.
class Run::Sink final : public GradientSink {
 public:
  Sink(Run& run, const Node& node) : run_(run), node_(node), observed_(Observer::any()) {
    if (observed_) shown_.resize(node.edges().size());
  }

  bool needs(std::int64_t input) const override {
    const Edge& edge = node_.edges()[input];
    return edge.node != nullptr && run_.progress_.at(edge.node.get()).wanted;
  }

  void add(std::int64_t input, Tensor dx) override {
    if (!needs(input)) return;
    check(dx.defined() && dx.shape() == node_.input_shape(input) && dx.dtype() == node_.input_dtype(input),
          node_.info().name, ": backward gave input ", input, " of shape ", node_.input_shape(input), " ",
          node_.input_dtype(input), " a gradient of another kind: ", dx.defined() ? dx.shape() : Shape{}, " ",
          dx.defined() ? name(dx.dtype()) : "undefined");
    if (observed_) accumulate(shown_[input], dx);
    if (passes_on_) accumulate(slot(input), std::move(dx));
  }

  Accumulator accumulator(std::int64_t input) override {
    check(needs(input) && !GradMode::enabled(), node_.info().name,
          ": accumulator() is for inputs that need a gradient while no graph is recorded");
    mixes_ = true;
    Tensor& total = passes_on_ ? slot(input) : shown_[input];
    if (!total.defined()) {
      total = Tensor::empty(node_.input_shape(input), node_.input_dtype(input));
      return {total, true};
    }
    if (!total.is_sole_owner() || !total.is_contiguous()) total = clone(total);
    return {total, false};
  }

  // After the node's backward. What went into an accumulator is mixed with what others gave, so backward runs once more
  // to show what this node alone gives: a run is to give the same bits whether it is observed or not.
  void show(const Tensors& cotangents) {
    if (!observed_) return;
    if (mixes_) {
      passes_on_ = false;
      shown_.assign(shown_.size(), Tensor());
      node_.backward(cotangents, *this);
    }
    Observer::tell_backward_called(node_.shared_from_this(), cotangents, shown_);
  }

 private:
  Tensor& slot(std::int64_t input) const {
    const Edge& edge = node_.edges()[input];
    return run_.progress_.at(edge.node.get()).cotangents[edge.output];
  }

  Run& run_;
  const Node& node_;
  bool observed_, passes_on_ = true, mixes_ = false;
  Tensors shown_;
};

Run::Run(const Tensors& outputs, const Tensors& cotangents, bool create_graph, bool keep_graph)
    : create_graph_(create_graph), keep_graph_(keep_graph) {
  check(cotangents.empty() || cotangents.size() == outputs.size(), "backward: ", outputs.size(), " outputs and ",
        cotangents.size(), " cotangents");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    check(output.defined(), "backward: an output is undefined");
    check(output.requires_grad(), "backward: the tensor of shape ", output.shape(),
          " was not computed from anything that requires grad, or under NoGrad; set requires_grad_() on a leaf before "
          "the forward pass");
    Tensor cotangent = cotangents.empty() ? Tensor() : cotangents[i];
    if (!cotangent.defined()) {
      check(output.numel() == 1,
            "backward: without a cotangent only a tensor of one element has a gradient, got shape ", output.shape(),
            "; reduce it with sum() or mean(), or pass a cotangent of that shape");
      cotangent = ones(output.shape(), output.dtype());
    }
    check(cotangent.shape() == output.shape() && cotangent.dtype() == output.dtype(), "backward: the cotangent is ",
          cotangent.shape(), " ", cotangent.dtype(), ", the tensor ", output.shape(), " ", output.dtype());
    roots_.push_back(edge_of(output));
    root_cotangents_.push_back(create_graph ? cotangent : cotangent.detach());
  }
  discover();
}

void Run::discover() {
  std::vector<Node*> stack;
  const auto visit = [&](Node* node) {
    if (!progress_.try_emplace(node).second) return;
    oldest_first_.push_back(node);
    stack.push_back(node);
  };
  for (const Edge& root : roots_) visit(root.node.get());
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->edges()) {
      if (edge.node != nullptr) visit(edge.node.get());
    }
  }
  std::sort(oldest_first_.begin(), oldest_first_.end(),
            [](const Node* a, const Node* b) { return a->sequence() < b->sequence(); });
}

// A node is wanted if it is a target or an edge of it leads to a wanted one. Edges lead to older nodes only, so one
// pass from the oldest decides all.
void Run::mark_wanted(const std::vector<Edge>* targets) {
  if (targets != nullptr) {
    for (const Edge& target : *targets) {
      if (const auto found = progress_.find(target.node.get()); found != progress_.end()) found->second.wanted = true;
    }
  }
  for (Node* node : oldest_first_) {
    Progress& progress = progress_.at(node);
    if (targets == nullptr && node->is_leaf()) progress.wanted = true;
    for (const Edge& edge : node->edges()) {
      if (edge.node != nullptr && progress_.at(edge.node.get()).wanted) progress.passes_on = true;
    }
    progress.wanted = progress.wanted || progress.passes_on;
  }
}

void Run::count_edges() {
  for (auto it = oldest_first_.rbegin(); it != oldest_first_.rend(); ++it) {
    Node* node = *it;
    Progress& progress = progress_.at(node);
    if (!progress.wanted) continue;
    check(!progress.passes_on || !node->was_released(), node->info().name,
          ": backward has run through this node before and freed its saved values; pass keep_graph = true to the first "
          "backward to run a second");
    progress.cotangents.resize(node->is_leaf() ? 1 : static_cast<std::size_t>(node->output_count()));
    for (const Edge& edge : node->edges()) {
      if (edge.node == nullptr) continue;
      Progress& below = progress_.at(edge.node.get());
      if (below.wanted) ++below.pending;
    }
  }
}

void Run::execute() {
  count_edges();
  const SetGrad grad_mode(create_graph_);
  if (Observer::any()) {
    Observer::tell_backward_began(roots_, root_cotangents_, targets_ != nullptr ? *targets_ : std::vector<Edge>{});
  }
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    Progress& progress = progress_.at(roots_[i].node.get());
    if (progress.wanted) accumulate(progress.cotangents[roots_[i].output], std::move(root_cotangents_[i]));
  }

  const auto runs_later = [](const Node* a, const Node* b) {
    if (a->is_leaf() != b->is_leaf()) return b->is_leaf();
    return a->sequence() < b->sequence();
  };
  std::priority_queue<Node*, std::vector<Node*>, decltype(runs_later)> ready(runs_later);
  for (const auto& [node, progress] : progress_) {
    if (progress.wanted && progress.pending == 0) ready.push(node);
  }
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    process(*node, progress_.at(node));
    for (const Edge& edge : node->edges()) {
      if (edge.node == nullptr) continue;
      Progress& below = progress_.at(edge.node.get());
      if (below.wanted && --below.pending == 0) ready.push(edge.node.get());
    }
  }
}

void Run::process(Node& node, Progress& progress) {
  Tensors cotangents = std::move(progress.cotangents);
  progress.cotangents.clear();
  run_hooks(node, cotangents);
  if (targets_ != nullptr) {
    for (std::size_t i = 0; i < targets_->size(); ++i) {
      const Edge& target = (*targets_)[i];
      if (target.node.get() == &node) results_[i] = cotangents[target.output];
    }
  }
  const bool reached = std::any_of(cotangents.begin(), cotangents.end(), [](const Tensor& c) { return c.defined(); });
  if (node.is_leaf()) {
    if (!reached) return;
    if (Observer::any()) Observer::tell_backward_called(node.shared_from_this(), cotangents, {});
    if (targets_ == nullptr) store(static_cast<const Leaf&>(node), std::move(cotangents[0]));
    return;
  }
  if (!progress.passes_on) return;  // it was asked for itself, and its saved values may be wanted yet
  if (reached) {
    Sink sink(*this, node);
    node.backward(cotangents, sink);
    sink.show(cotangents);
  }
  if (!keep_graph_) node.release_saved();
}

void Run::run_hooks(const Node& node, Tensors& cotangents) const {
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    Tensor& cotangent = cotangents[i];
    if (!cotangent.defined()) continue;
    const Hooks* hooks = node.is_leaf() ? static_cast<const Leaf&>(node).tensor().impl()->hooks.get()
                                        : node.find_hooks(static_cast<std::int64_t>(i));
    if (hooks == nullptr) continue;
    for (std::size_t h = 0; h < hooks->gradient.size(); ++h) {  // by index: a hook may register another
      if (hooks->gradient[h] == nullptr) continue;
      const GradientHook hook = hooks->gradient[h];  // a copy: a hook may remove itself
      const Tensor replaced = hook(cotangent);
      if (!replaced.defined()) continue;
      check(replaced.shape() == cotangent.shape() && replaced.dtype() == cotangent.dtype(), node.info().name,
            ": a gradient hook returned ", replaced.shape(), " ", replaced.dtype(), " for a gradient of ",
            cotangent.shape(), " ", cotangent.dtype());
      cotangent = replaced;
    }
    if (targets_ != nullptr || node.is_leaf()) continue;
    for (const Tensor& tensor : node.retained(static_cast<std::int64_t>(i))) {
      const Tensor before = tensor.grad();
      tensor.set_grad(before.defined() ? before + cotangent.detach() : clone(cotangent.detach()));
    }
  }
}

// Gradients of leaves never share storage with anything else: an optimiser or a user may write to them.
void Run::store(const Leaf& leaf, Tensor gradient) const {
  Tensor::Impl& impl = *leaf.tensor().impl();
  if (impl.grad.defined()) {
    accumulate(impl.grad, std::move(gradient));
  } else {
    impl.grad = owned(std::move(gradient));
  }
  if (impl.hooks == nullptr) return;
  for (std::size_t h = 0; h < impl.hooks->post_accumulate.size(); ++h) {
    if (const AccumulateHook hook = impl.hooks->post_accumulate[h]) hook(leaf.tensor());
  }
}

void Run::store_in_leaves() {
  mark_wanted(nullptr);
  execute();
}

Tensors Run::collect(const Tensors& inputs) {
  std::vector<Edge> targets;
  for (const Tensor& input : inputs) targets.push_back(edge_of(input));
  targets_ = &targets;
  results_.resize(inputs.size());
  mark_wanted(&targets);
  execute();
  if (!create_graph_) {
    for (Tensor& result : results_) {
      if (result.defined()) result = owned(std::move(result));
    }
  }
  return std::move(results_);
}

}  // namespace

Tensor Node::cotangent(const Tensors& dy, std::int64_t output) const {
  return dy[output].defined() ? dy[output] : zeros(output_shape(output), output_dtype(output));
}

bool Tensor::requires_grad() const { return impl_ != nullptr && (impl_->requires_grad || impl_->node != nullptr); }
bool Tensor::is_leaf() const { return impl_ == nullptr || impl_->node == nullptr; }

Tensor& Tensor::requires_grad_(bool on) {
  check(defined(), "requires_grad_: the tensor is undefined");
  check(is_leaf(), "requires_grad_: a tensor computed by ", is_leaf() ? "" : node()->info().name,
        " is no leaf; detach() it first");
  check(!on || is_float(dtype()), "requires_grad_: only float32 and float64 have gradients, got ", dtype());
  impl_->requires_grad = on;
  return *this;
}

Tensor Tensor::grad() const {
  check(defined(), "grad: the tensor is undefined");
  return impl_->grad;
}

void Tensor::set_grad(const Tensor& gradient) const {
  check(defined(), "set_grad: the tensor is undefined");
  if (gradient.defined()) {
    check(gradient.shape() == shape() && gradient.dtype() == dtype(), "set_grad: a gradient of ", gradient.shape(), " ",
          gradient.dtype(), " for a tensor of ", shape(), " ", dtype());
    check(!gradient.requires_grad(), "set_grad: a gradient with a graph of its own; detach() it");
  }
  impl_->grad = gradient;
}

void Tensor::backward(const Tensor& cotangent, BackwardOptions options) const {
  Run({*this}, {cotangent}, false, options.keep_graph).store_in_leaves();
}

Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents, GradOptions options) {
  for (const Tensor& input : inputs) {
    check(input.defined() && input.requires_grad(), "grad: an input does not require grad");
  }
  Tensors results =
      Run(outputs, cotangents, options.create_graph, options.create_graph || options.keep_graph).collect(inputs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    check(results[i].defined() || options.allow_unused, "grad: input ", i, " of shape ", inputs[i].shape(),
          " took no part in the outputs; pass allow_unused = true to get an undefined gradient");
  }
  return results;
}

std::function<void()> Tensor::register_hook(GradientHook hook) const {
  check(requires_grad(), "register_hook: the tensor does not require grad");
  std::vector<GradientHook>* list = nullptr;
  if (is_leaf()) {
    if (impl_->hooks == nullptr) impl_->hooks = std::make_shared<Hooks>();
    list = &impl_->hooks->gradient;
  } else {
    list = &node()->hooks(output_index()).gradient;
  }
  list->push_back(std::move(hook));
  // The list lives as long as the tensor or its node; a weak handle tells whether it still does.
  const std::size_t place = list->size() - 1;
  if (is_leaf()) {
    return [weak = std::weak_ptr<Hooks>(impl_->hooks), place] {
      if (const auto hooks = weak.lock()) hooks->gradient[place] = nullptr;
    };
  }
  return [weak = std::weak_ptr<Node>(node()), output = output_index(), place] {
    if (const auto node = weak.lock()) node->hooks(output).gradient[place] = nullptr;
  };
}

std::function<void()> Tensor::register_post_accumulate_hook(AccumulateHook hook) const {
  check(requires_grad() && is_leaf(), "register_post_accumulate_hook: expected a leaf that requires grad");
  if (impl_->hooks == nullptr) impl_->hooks = std::make_shared<Hooks>();
  impl_->hooks->post_accumulate.push_back(std::move(hook));
  return [weak = std::weak_ptr<Hooks>(impl_->hooks), place = impl_->hooks->post_accumulate.size() - 1] {
    if (const auto hooks = weak.lock()) hooks->post_accumulate[place] = nullptr;
  };
}

void Tensor::retain_grad() const {
  check(requires_grad(), "retain_grad: the tensor does not require grad");
  if (!is_leaf()) node()->retain_grad(*this);
}

const std::shared_ptr<Node>& Tensor::node() const {
  static const std::shared_ptr<Node> none;
  return impl_ == nullptr ? none : impl_->node;
}
std::int64_t Tensor::output_index() const { return impl_ == nullptr ? 0 : impl_->output_index; }

}  // namespace prenorm
