#include "autograd/observer.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/tiny_lm.h"
#include "support.h"

namespace prenorm {
namespace {

using Doubles = std::vector<double>;
using Names = std::vector<std::string>;

struct Recorder final : Observer {
  struct Made {
    std::shared_ptr<const Node> node;
    Tensors inputs, outputs;
  };
  struct Called {
    std::shared_ptr<const Node> node;
    Tensors cotangents, gradients;
  };
  std::vector<Made> made;
  std::vector<Called> called;

  void node_made(const std::shared_ptr<const Node>& node, const Tensors& inputs, const Tensors& outputs) override {
    made.push_back({node, inputs, outputs});
  }
  void backward_called(const std::shared_ptr<const Node>& node, const Tensors& cotangents,
                       const Tensors& gradients) override {
    called.push_back({node, cotangents, gradients});
  }
};

template <class List>
Names names(const List& list) {
  Names names;
  for (const auto& entry : list) names.emplace_back(entry.node->info().name);
  return names;
}

Doubles values(const Tensor& tensor) { return tensor.defined() ? tensor.to_vector() : Doubles{}; }
Tensor in_float64(const Tensor& tensor) {
  return tensor.defined() && is_float(tensor.dtype()) ? to(tensor.detach(), float64) : tensor;
}

// A small model that uses every kind of layer, and one step of it.
nn::TinyLMOptions small(nn::TinyLMOptions options = {}) {
  options.d_model = 16;
  options.n_heads = 2;
  options.n_layers = 2;
  options.max_len = 8;
  return options;
}
Tensor loss_of(const nn::TinyLM& model) {
  Generator generator(3);
  std::vector<std::int64_t> ids(3 * 7);
  for (std::int64_t& id : ids) id = generator.next32() % 11;
  const Tensor x = Tensor::of(ids, {3, 7}, {.dtype = int64});
  return cross_entropy(model(x), mod(x + 1, 11));
}
const std::vector<nn::TinyLMOptions> kModels = {small(), small({.tie_head = true}),
                                                small({.norm = nn::Norm::rms, .dropout = 0.2}),
                                                small({.norm = nn::Norm::unbiased, .order = nn::Order::post}),
                                                small({.use_residual = false, .norm = nn::Norm::none})};

TEST_CASE_FIXTURE(NoLeak, "an observer is told of each node made, with the tensors themselves") {
  const Tensor x = Tensor::of({1, 2}, {.requires_grad = true}), c = ones({2});
  const Recorder recorder;
  const Tensor y = x * c, z = exp(y);
  CHECK(names(recorder.made) == Names{"mul", "exp"});
  CHECK(recorder.made[0].inputs[0].is(x));
  CHECK(recorder.made[0].inputs[1].is(c));
  CHECK(recorder.made[0].outputs[0].is(y));
  CHECK(recorder.made[1].inputs[0].is(y));
  CHECK(recorder.made[1].node == z.node());

  exp(c);
  const NoGrad no_grad;
  exp(x);
  CHECK(recorder.made.size() == 2);  // what is not recorded makes no node
}

TEST_CASE_FIXTURE(NoLeak, "an observer is told of operations that leave no node, but not of parts of others") {
  struct Unrecorded final : Observer {
    Names ops;
    Tensors last_inputs, last_outputs;
    void unrecorded(std::string_view op, const Tensors& inputs, const Tensors& outputs) override {
      ops.emplace_back(op);
      last_inputs = inputs;
      last_outputs = outputs;
    }
  };
  const Tensor x = Tensor::of({1, 2}, {.requires_grad = true}), c = ones({2});
  Unrecorded seen;
  const Tensor y = max(x * c, 0).values;  // finds its positions by argmax
  y.backward();
  CHECK(seen.ops.empty());
  const Tensor e = exp(c), a = argmax(x);
  CHECK(seen.ops == Names{"exp", "argmax"});
  CHECK(seen.last_inputs[0].is(x));
  CHECK(seen.last_outputs[0].is(a));
  lt(x, c);
  copy_(c, e);
  const NoGrad no_grad;
  x + c;
  CHECK(seen.ops == Names{"exp", "argmax", "lt", "copy_", "add"});
  fill_(c, 1);
  CHECK(seen.last_outputs[0].is(c));
  add_(c, c);
  mul_(c, 2);
  CHECK(seen.last_outputs[0].is(c));
  CHECK(seen.ops == Names{"exp", "argmax", "lt", "copy_", "add", "fill_", "add_", "mul_"});
}

TEST_CASE_FIXTURE(NoLeak, "an observer is told of each call of backward, with total cotangents and its gradients") {
  const Tensor x = Tensor::of({2}, {.requires_grad = true}), c = Tensor::of({3});
  const Recorder recorder;
  const Tensor y = x * c, z = y * y + c;
  z.backward();
  CHECK(names(recorder.called) == Names{"add", "mul", "mul", "leaf"});
  CHECK(values(recorder.called[0].cotangents[0]) == Doubles{1});
  CHECK(recorder.called[0].gradients.size() == 2);
  CHECK(values(recorder.called[0].gradients[0]) == Doubles{1});
  CHECK_FALSE(recorder.called[0].gradients[1].defined());  // c wants none
  CHECK(values(recorder.called[1].gradients[0]) == Doubles{6});
  CHECK(values(recorder.called[1].gradients[1]) == Doubles{6});
  CHECK(values(recorder.called[2].cotangents[0]) == Doubles{12});  // both parts
  CHECK(values(recorder.called[2].gradients[0]) == Doubles{36});
  CHECK(values(recorder.called[3].cotangents[0]) == Doubles{36});
  CHECK(recorder.called[3].gradients.empty());
  CHECK(recorder.called[3].node->is_leaf());
  CHECK(values(x.grad()) == Doubles{36});
}

TEST_CASE_FIXTURE(NoLeak, "an observer sees what hooks have made of a gradient") {
  const Tensor x = Tensor::of({2}, {.requires_grad = true});
  const Tensor y = x * 3;
  y.register_hook([](const Tensor& g) { return g * 10; });
  x.register_hook([](const Tensor& g) { return g + 1; });
  const Recorder recorder;
  y.backward();
  CHECK(values(recorder.called[0].cotangents[0]) == Doubles{10});
  CHECK(values(recorder.called[1].cotangents[0]) == Doubles{31});
}

TEST_CASE_FIXTURE(NoLeak, "several observers are told, each as long as it lives") {
  const Tensor x = Tensor::of({2}, {.requires_grad = true});
  CHECK_FALSE(Observer::any());
  const Recorder outer;
  {
    const Recorder inner;
    exp(x).backward();
    CHECK(names(inner.made) == Names{"exp"});
    CHECK(names(inner.called) == Names{"exp", "leaf"});
  }
  CHECK(Observer::any());
  sin(x).backward();
  CHECK(names(outer.made) == Names{"exp", "sin"});
  CHECK(names(outer.called) == Names{"exp", "leaf", "sin", "leaf"});
}

TEST_CASE_FIXTURE(NoLeak, "an observer is told of its own thread only") {
  const Recorder recorder;
  bool any_there = true;
  std::thread([&] {
    any_there = Observer::any();
    const Tensor x = Tensor::of({2}, {.requires_grad = true});
    exp(x).backward();
  }).join();
  CHECK_FALSE(any_there);
  CHECK(recorder.made.empty());
  CHECK(recorder.called.empty());
}

TEST_CASE_FIXTURE(NoLeak, "what an observer throws passes through, and leaves grad mode as it was") {
  struct Refuse final : Observer {
    bool backward = false;
    void node_made(const std::shared_ptr<const Node>&, const Tensors&, const Tensors&) override {
      if (!backward) throw std::runtime_error("no node");
    }
    void backward_called(const std::shared_ptr<const Node>&, const Tensors&, const Tensors&) override {
      throw std::runtime_error("no backward");
    }
  };
  const Tensor x = Tensor::of({2}, {.requires_grad = true});
  {
    Refuse refuse;
    CHECK_THROWS_WITH(exp(x), "no node");
    refuse.backward = true;
    CHECK_THROWS_WITH(exp(x).backward(), "no backward");
  }
  CHECK(GradMode::enabled());
  exp(x).backward();
  CHECK(x.grad().defined());
}

TEST_CASE_FIXTURE(NoLeak, "with create_graph backward makes nodes, of which observers are told") {
  const Tensor x = Tensor::of({2}, {.requires_grad = true});
  const Recorder recorder;
  const Tensor y = x * x;
  const std::size_t forward = recorder.made.size();
  grad({y}, {x}, {}, {.keep_graph = true});
  CHECK(recorder.made.size() == forward);
  const Tensor g = grad({y}, {x}, {}, {.create_graph = true})[0];
  REQUIRE(recorder.made.size() > forward);
  CHECK(recorder.made.back().node == g.node());
}

TEST_CASE_FIXTURE(NoLeak, "nodes of a model carry the path of the layer that made them") {
  manual_seed(0);
  const nn::TinyLM model(11, small({.dropout = 0.1}));
  const Recorder recorder;
  loss_of(model).backward();
  std::map<std::string, std::set<std::string>> ops;
  for (const auto& made : recorder.made) ops[made.node->scope()].emplace(made.node->info().name);
  for (const auto& made : std::vector<std::pair<std::string, std::string>>{{"tok", "embedding"},
                                                                           {"pos", "embedding"},
                                                                           {"blocks.0.attn.qkv", "linear"},
                                                                           {"blocks.0", "residual_add"},
                                                                           {"blocks.1", "dropout"},
                                                                           {"blocks.1.ffn.w2", "linear"},
                                                                           {"blocks.1.ffn", "gelu"},
                                                                           {"blocks.1.ln2", "layer_norm"},
                                                                           {"ln_f", "layer_norm"},
                                                                           {"head", "linear"},
                                                                           {"", "cross_entropy"}}) {
    CHECK_MESSAGE(ops[made.first].contains(made.second), "'", made.first, "' made no ", made.second);
  }
  CHECK(Scope::path()->empty());
  for (const auto& called : recorder.called) {  // backward shows the same paths
    CHECK((called.node->is_leaf() || ops.contains(called.node->scope())));
  }
}

TEST_CASE_FIXTURE(NoLeak, "each node of a model goes backward once, and its cotangent is the sum of what reached it") {
  for (const nn::TinyLMOptions& options : kModels) {
    manual_seed(0);
    const nn::TinyLM model(11, options);
    model.to(float64);
    const Recorder recorder;
    const Tensor loss = loss_of(model);
    loss.backward();

    std::set<const Node*> made, called;
    for (const auto& entry : recorder.made) made.insert(entry.node.get());
    std::map<std::pair<const Node*, std::int64_t>, Tensor> arrived{{{loss.node().get(), 0}, ones({}, float64)}};
    for (const auto& [node, cotangents, gradients] : recorder.called) {
      if (!node->is_leaf()) CHECK(called.insert(node.get()).second);
      for (std::size_t i = 0; i < cotangents.size(); ++i) {
        const auto found = arrived.find({node.get(), static_cast<std::int64_t>(i)});
        REQUIRE(cotangents[i].defined() == (found != arrived.end()));
        if (cotangents[i].defined()) expect_close(cotangents[i], found->second, 1e-14);
      }
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const Edge& edge = node->edges()[i];
        REQUIRE(gradients[i].defined() == (edge.node != nullptr));
        if (edge.node == nullptr) continue;
        Tensor& sum = arrived[{edge.node.get(), edge.output}];
        sum = sum.defined() ? sum + gradients[i] : gradients[i];
      }
    }
    CHECK(called == made);
    for (const auto& [path, parameter] : model.parameters()) {
      expect_close(parameter.grad(), arrived.at({edge_of(parameter).node.get(), 0}), 1e-14);
    }
  }
}

TEST_CASE_FIXTURE(NoLeak, "what an observer was shown stays as it was while the run goes on") {
  struct Copies final : Observer {
    std::vector<std::pair<Tensor, Doubles>> seen;
    void node_made(const std::shared_ptr<const Node>&, const Tensors&, const Tensors& outputs) override {
      for (const Tensor& output : outputs) seen.emplace_back(output, values(output));
    }
    void backward_called(const std::shared_ptr<const Node>&, const Tensors& cotangents,
                         const Tensors& gradients) override {
      for (const Tensor& tensor : cotangents) seen.emplace_back(tensor, values(tensor));
      for (const Tensor& tensor : gradients) seen.emplace_back(tensor, values(tensor));
    }
  };
  manual_seed(0);
  const nn::TinyLM model(11, small({.tie_head = true}));
  const Copies copies;
  for (int step = 0; step < 2; ++step) loss_of(model).backward();
  bool same = true;
  for (const auto& [tensor, before] : copies.seen) same = same && values(tensor) == before;
  CHECK(same);
  CHECK(copies.seen.size() > 100);
}

TEST_CASE_FIXTURE(NoLeak, "a run gives the same bits whether it is observed or not") {
  for (const nn::TinyLMOptions& options : kModels) {
    std::vector<Doubles> gradients[2];
    for (const bool observed : {false, true}) {
      manual_seed(0);
      const nn::TinyLM model(11, options);
      std::unique_ptr<Recorder> recorder;
      if (observed) recorder = std::make_unique<Recorder>();
      for (int step = 0; step < 2; ++step) loss_of(model).backward();
      for (const auto& [path, parameter] : model.parameters()) gradients[observed].push_back(values(parameter.grad()));
    }
    CHECK(gradients[0] == gradients[1]);
  }
}

// A promise of the design: a node is a function of its inputs, in any float type. The checker and the viewer use it.
TEST_CASE_FIXTURE(NoLeak, "every node of a model can be replayed from what was observed, in float64 too") {
  for (const nn::TinyLMOptions& options : kModels) {
    manual_seed(0);
    const nn::TinyLM model(11, options), precise = model.clone();
    precise.to(float64);
    const auto recorded = [](const nn::TinyLM& m) {
      manual_seed(5);  // of the dropout masks
      Recorder recorder;
      loss_of(m);
      return std::move(recorder.made);
    };
    const auto run32 = recorded(model), run64 = recorded(precise);
    REQUIRE(names(run32) == names(run64));
    const NoGrad no_grad;
    for (std::size_t i = 0; i < run32.size(); ++i) {
      const auto& node = run32[i].node;
      const Tensors &inputs = run32[i].inputs, &outputs = run32[i].outputs;
      CAPTURE(node->info().name);
      CAPTURE(node->scope());
      Tensors wide;
      for (const Tensor& input : inputs) wide.push_back(in_float64(input));
      const Tensors again = node->forward(inputs), in64 = node->forward(wide), full = node->forward(run64[i].inputs);
      REQUIRE(again.size() == outputs.size());
      REQUIRE(in64.size() == outputs.size());
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        if (!outputs[k].defined()) continue;
        CHECK(values(again[k]) == values(outputs[k]));          // the same bits again
        CHECK(values(full[k]) == values(run64[i].outputs[k]));  // and those of the float64 run, from its inputs
        CHECK(in64[k].dtype() == (is_float(outputs[k].dtype()) ? float64 : outputs[k].dtype()));
        // What an op keeps for its backward may be laid out by dtype; what it gives out may not.
        if (k > 0 && in64[k].shape() != outputs[k].shape()) continue;
        CHECK(allclose(in64[k], to(outputs[k], in64[k].dtype()), 1e-5, 1e-5));
      }
    }
  }
}

TEST_CASE("backward passes: where they begin, and for whom") {
  struct Begins final : Observer {
    std::vector<std::vector<Edge>> outputs, inputs;
    std::vector<Tensors> cotangents;
    std::size_t calls = 0, calls_before = 0;
    void backward_began(const std::vector<Edge>& from, const Tensors& with, const std::vector<Edge>& to) override {
      outputs.push_back(from);
      cotangents.push_back(with);
      inputs.push_back(to);
      calls_before = calls;
    }
    void backward_called(const std::shared_ptr<const Node>&, const Tensors&, const Tensors&) override { ++calls; }
  } observer;
  const Tensor x = randn64({3}), w = randn64({3}, 1);
  const Tensor y = x * w, loss = sum(y);
  loss.backward({}, {.keep_graph = true});
  const std::size_t first = observer.calls;
  (void)grad({loss, y}, {x}, {Tensor(), randn64({3}, 2).detach()});
  REQUIRE(observer.outputs.size() == 2);
  CHECK(observer.outputs[0][0].node == loss.node());
  CHECK(values(observer.cotangents[0][0]) == Doubles{1});
  CHECK(observer.inputs[0].empty());
  CHECK(observer.calls_before == first);  // told before the first node
  CHECK(observer.outputs[1].size() == 2);
  CHECK(observer.outputs[1][1].node == y.node());
  CHECK(values(observer.cotangents[1][1]) == values(randn64({3}, 2)));
  REQUIRE(observer.inputs[1].size() == 1);
  CHECK(observer.inputs[1][0].node == edge_of(x).node);
}

}  // namespace
}  // namespace prenorm
