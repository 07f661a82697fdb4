#include "nn/container.h"

#include <string>
#include <vector>

#include "autograd/node.h"
#include "autograd/random.h"
#include "nn/activation.h"
#include "nn/gradcheck.h"
#include "nn/linear.h"
#include "support.h"

namespace prenorm::nn {
namespace {

using Doubles = std::vector<double>;

TEST_CASE("a sequence runs its modules in order, in scopes of their numbers") {
  const Linear first(2, 3), second(3, 1);
  Sequential model{first, ReLU()};
  model.push_back(second);
  const Tensor x = randn({4, 2});
  CHECK(model(x).to_vector() == second(relu(first(x))).to_vector());
  CHECK(model.parameters()[0].path == "0.weight");
  CHECK(model.parameters()[3].path == "2.bias");
  CHECK(model(x).node()->scope() == "2");
  CHECK(Sequential{}(x).is(x));
  CHECK(Sequential{Sequential{ReLU()}, GELU()}.at("0.0").type() == "ReLU");
}

TEST_CASE("a sequence of modules that do not fit each other is the op's error") {
  expect_error([] { Sequential{Linear(2, 3), Linear(2, 3)}(zeros({1, 2})); }, {"linear", "[1, 3]", "[3, 2]"});
}

TEST_CASE("a list gives its modules as what they are, and is not called itself") {
  ModuleList list{Linear(2, 3), ReLU()};
  list.push_back(Linear(3, 4));
  CHECK(list.size() == 3);
  CHECK(list.get<Linear>(2).weight().shape() == Shape{4, 3});
  expect_error([&] { list.get<Linear>(1); }, "ReLU");
  expect_error([&] { list.get<Linear>(3); }, {"ModuleList", "index 3 of 3"});
  expect_error([&] { list.get<Linear>(-1); }, "index -1 of 3");
  const Module plain = list;
  expect_error([&] { plain(zeros({1})); }, {"ModuleList", "not a function of one tensor"});
}

TEST_CASE("the items of a list carry the list's name, whenever they were added") {
  class Owner : public Layer<Owner> {
   public:
    using Layer::Layer;
    explicit Owner(const ModuleList& list) : Layer("Owner") { add_child("blocks", list); }
    Tensor forward(const Tensor& x) const {
      Tensor y = x;
      for (const auto& [name, block] : child("blocks").children()) y = block(y);
      return y;
    }
  };
  ModuleList list{Linear(2, 2)};
  const Owner owner(list);
  list.push_back(Linear(2, 2));
  CHECK(owner.parameters()[2].path == "blocks.1.weight");
  CHECK(owner(zeros({1, 2})).node()->scope() == "blocks.1");
  CHECK(owner.at("blocks.0")(zeros({1, 2})).node()->scope() == "blocks.0");
  CHECK(owner.clone()(zeros({1, 2})).node()->scope() == "blocks.1");
  const Sequential around{owner};
  CHECK(around(zeros({1, 2})).node()->scope() == "0.blocks.1");
}

TEST_CASE("clones have the same values and parameters of their own, and draw nothing") {
  const Linear original(2, 3);
  const Doubles state = default_generator().state().to_vector();
  const ModuleList list = clones(original, 3);
  CHECK(default_generator().state().to_vector() == state);
  CHECK(list.size() == 3);
  for (int i = 0; i < 3; ++i) {
    const Linear copy = list.get<Linear>(i);
    CHECK(copy.weight().to_vector() == original.weight().to_vector());
    CHECK(copy.weight().storage() != original.weight().storage());
  }
  CHECK(list.parameters().size() == 6);
  CHECK(clones(original, 0).size() == 0);
}

TEST_CASE("differences agree for a sequence") {
  const GradcheckReport report = gradcheck(Sequential{Linear(3, 4), GELU(), Linear(4, 2)}, {randn64({2, 3})});
  CHECK_MESSAGE(report.passed, report.message);
}

}  // namespace
}  // namespace prenorm::nn
