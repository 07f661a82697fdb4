// The rows of the proof: what `examples/run gradcheck` tries. A row is an op or a layer with one choice of its optional
// arguments, tried on several shapes. To add an op, add its row to the list of its family, for example:
//
//   {"sinh", "", ops("sinh.cpp"), unary(sinh)},
//   {"lerp", "scalar weight", ops("lerp.cpp"), [](Cases& c) {
//      c.check([](const Tensors& in) { return lerp(in[0], in[1], 0.3); },
//              {{"a", c.normal({2, 3})}, {"b", c.normal({3})}});
//    }},
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/random.h"
#include "nn/gradcheck.h"

namespace prenorm::gradcheck_rows {

// One check of a row.
struct Case {
  GradcheckFunction f;
  NamedTensors inputs;
  GradcheckOptions options;
  std::string shapes;  // of the inputs, "[2,3] [3]~"; ~: not contiguous
};

// How the elements of an input lie in memory.
enum class Layout { dense, transposed, gaps };

// Collects the checks of a row, and draws their inputs: float64 leaves, the same ones in each run with the same seed.
class Cases {
 public:
  explicit Cases(std::uint64_t seed) : seed_(seed), generator_(seed) {}

  Tensor normal(const Shape& shape, Layout layout = Layout::dense);
  Tensor uniform(const Shape& shape, double low, double high, Layout layout = Layout::dense);
  // In [0.3, 2], for log and its like.
  Tensor positive(const Shape& shape, Layout layout = Layout::dense) { return uniform(shape, 0.3, 2, layout); }
  // In [0.3, 2] or [-2, -0.3]: away from a pole or a kink at 0. The first element is positive.
  Tensor nonzero(const Shape& shape, Layout layout = Layout::dense);
  // Multiples of 1/64, no two of them equal: far from ties, and exact in float32.
  Tensor distinct(const Shape& shape, Layout layout = Layout::dense);
  // Without gradient: int64 in [0, n); bool, both true and false unless there is one element only.
  Tensor ids(const Shape& shape, std::int64_t n);
  Tensor mask(const Shape& shape);

  void check(GradcheckFunction f, NamedTensors inputs, const GradcheckOptions& options = {});
  // A case without elements has nothing to compare: it shows that backward goes through.
  void check_empty(GradcheckFunction f, NamedTensors inputs) {
    check(std::move(f), std::move(inputs), {.allow_vacuous = true});
  }
  // A layer's parameters and inputs, as in nn/gradcheck.h.
  template <class L, nn::LayerCall<L> F>
  void check_layer(const L& layer, const Tensors& inputs, F call, const GradcheckOptions& options = {}) {
    add_layer(nn::layer_function(layer, inputs, std::move(call), seed_), layer.parameters().size(), options);
  }
  template <std::derived_from<nn::Module> L>
  void check_layer(const L& layer, const Tensors& inputs, const GradcheckOptions& options = {}) {
    add_layer(nn::layer_function(layer, inputs, seed_), layer.parameters().size(), options);
  }

  const std::vector<Case>& all() const { return cases_; }

 private:
  template <class F>
  Tensor filled(const Shape& shape, Layout layout, F next_value);
  void add_layer(nn::LayerFunction function, std::size_t parameters, const GradcheckOptions& options);

  std::uint64_t seed_;
  Generator generator_;
  std::vector<Case> cases_;
};

using MakeCases = std::function<void(Cases&)>;

struct Row {
  std::string name;     // the op's free function, or the layer
  std::string variant;  // which optional arguments; "" where there are none
  std::string file;     // where its backward stands, "autograd/ops/layer_norm.cpp"
  MakeCases make;

  std::string title() const { return variant.empty() ? name : name + ", " + variant; }
};
using Rows = std::vector<Row>;

// --- what families share

inline std::string ops(const std::string& file) { return "autograd/ops/" + file; }
inline std::string layers(const std::string& file) { return "nn/" + file; }

// One input x in several shapes: scalar, of one element, empty, contiguous or not, and long enough for the vector loops
// and their tails.
using OneInput = std::function<Tensor(const Tensor& x)>;
using Draw = Tensor (Cases::*)(const Shape&, Layout);
MakeCases unary(OneInput f, Draw draw = &Cases::normal);

// The same for two inputs that broadcast in either direction, or not at all.
using TwoInputs = std::function<Tensor(const Tensor& a, const Tensor& b)>;
MakeCases binary(TwoInputs f, Draw draw_a = &Cases::normal, Draw draw_b = &Cases::normal);

// x [...] alone, in the given shapes, the last of which is also tried in other memory layouts.
MakeCases over(std::vector<Shape> shapes, OneInput f);

// Seeds the default generator first: a function that draws a dropout mask gives the same result each time.
template <class F>
auto seeded(F f) {
  return [f](const Tensors& in) {
    manual_seed(11);
    return f(in);
  };
}

// --- the families, each in a file of its own

Rows pointwise_rows();
Rows reduction_rows();
Rows shape_rows();
Rows product_rows();
Rows norm_rows();
Rows probability_rows();
Rows attention_rows();
Rows layer_rows();
Rows transformer_rows();

struct Family {
  std::string title;
  Rows rows;
};
std::vector<Family> all_families();

}  // namespace prenorm::gradcheck_rows
