// Gradcheck: proves a backward pass by finite differences.
//
//   GradcheckReport report = gradcheck([](const Tensors& in) { return layer_norm(in[0], in[1]); },
//                                      NamedTensors{{"x", x}, {"gamma", gamma}});
//   if (!report.passed) std::cout << report.message << '\n';
//
// Each input that requires grad is moved by a small step, and what the outputs do is compared with what backward says
// they do. Inputs are float64; others are constants of the function.
//
// Order 1. L = sum(u * f(x)) with random cotangents u (never all ones: layer_norm followed by sum has gradient 0, right
// or wrong). dL/dx by backward against the central difference (L(x + h) - L(x - h)) / 2h, for every element; and every
// element of the Jacobian, where that is small. Large inputs are compared along random directions and at some elements.
// Order 2. The same for the first gradients as a function of the inputs and the cotangents.
//
// A node has two backwards, one for plain gradients (kernels) and one that can be differentiated again (create_graph,
// a formula in ops). Both are compared with the differences, and with each other. They also have to give the same when
// run again, for a cotangent in another memory layout, for one input at a time, and summed over two uses of f.
//
// Relative error: |a - n| / max(|a|, |n|, 1e-2 * the largest gradient in the check), a analytic, n numeric.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace prenorm {

// What is checked: a function from all inputs, in order, to one tensor or several. It has to give the same bits each
// time and leave its inputs alone. Integer and bool outputs are ignored; leave out what is detached on purpose.
class GradcheckFunction {
 public:
  template <std::invocable<const Tensors&> F>
  GradcheckFunction(F f) {  // NOLINT(google-explicit-constructor): any callable will do
    if constexpr (std::convertible_to<std::invoke_result_t<F&, const Tensors&>, Tensors>) {
      call_ = std::move(f);
    } else {
      call_ = [f = std::move(f)](const Tensors& inputs) mutable { return Tensors{f(inputs)}; };
    }
  }
  Tensors operator()(const Tensors& inputs) const { return call_(inputs); }

 private:
  std::function<Tensors(const Tensors&)> call_;
};

struct GradcheckOptions {
  int order = 2;  // 1: first derivatives only
  // The difference step, times max(1, |x|) for an element x. Its truncation error falls with the step's square, its
  // rounding error grows as the step shrinks. Over the library's ops the worst relative error, order 1 and 2, is 7e-9
  // with 5e-6 and larger with any other: 2e-6 with 1e-4, 5e-8 with 1e-6, 9e-6 with 1e-8. sweep() shows it for one f.
  double step = 5e-6;
  double tolerance = 1e-6;         // largest relative error, order 1
  double tolerance_second = 1e-4;  // and order 2
  // All elements are compared where the inputs have at most this many together; beyond, each larger input is compared
  // along `directions` random directions and at `samples` random elements.
  std::int64_t full_limit = 512;
  std::int64_t directions = 4;
  std::int64_t samples = 8;
  std::uint64_t seed = 0;  // of the cotangents, directions and samples; the default generator is not used
  // Where a comparison fails, other steps are tried before it counts: near a point of huge derivative the step may be
  // too large. false: it fails, and the message says so.
  bool adapt_step = true;
  // Where the left and right derivatives differ, any value between them counts as right. false: a kink fails.
  bool allow_kinks = false;
  // A check in which all gradients are zero proves nothing. false: it fails.
  bool allow_vacuous = false;
  // Inputs may be float32. Then the step is at least 5e-3 and the tolerances at least 2e-2: a coarse check.
  bool allow_float32 = false;
};

// Why a gradient is probably wrong, as far as the numbers tell.
enum class GradcheckReason {
  unknown,
  sign,             // analytic = -numeric
  factor,           // analytic = ratio * numeric
  mask,             // at each wrong element either analytic or numeric is zero
  transposed,       // analytic is numeric with its last two dimensions swapped
  missing_in_row,   // the error is constant along a dimension: a sum or mean over it is missing
  missing_along_x,  // the error is a multiple of x - mean(x) along the last dimension
  few_elements,     // nearly all elements are right
  undefined,        // backward gives nothing, and the function depends on the input
  not_finite,       // NaN or infinite
  kink,             // left and right derivatives differ
  step_too_large,   // a smaller step gives the analytic value
  rounding,         // of the outputs hides the derivative; a larger step may show it
  disagreement,     // two ways to run backward give different gradients
  vacuous,          // all gradients are zero
};
std::string_view name(GradcheckReason reason);

// Which of an op's two backwards is wrong.
enum class GradcheckBackward { both, plain, create_graph };

// The worst element of one input's gradient.
struct GradcheckFailure {
  int order = 1;
  GradcheckReason reason = GradcheckReason::unknown;
  std::string detail = {};       // the reason in words
  std::string input = {};        // its path; at order 2 also "cotangent 0", …
  Shape shape = {};              // of the input
  Shape coordinate = {};         // of the element; empty for a scalar
  bool along_direction = false;  // no single element is wrong enough to be found
  GradcheckBackward backward = GradcheckBackward::both;
  double analytic = 0, numeric = 0;  // for `disagreement`: the two gradients
  double left = 0, right = 0;        // one-sided differences
  double relative_error = 0;
  double step = 0;                    // of the differences
  double ratio = 1;                   // analytic / numeric, for `sign` and `factor`
  std::int64_t wrong = 0, total = 0;  // elements of this input that were compared
};

struct GradcheckReport {
  bool passed = false;
  std::string message;        // one line where it passed; what is wrong, where and probably why, where it did not
  double worst_first = 0;     // largest relative error of order 1
  double worst_second = 0;    // and of order 2
  std::int64_t elements = 0;  // compared with differences, both orders
  double smallest_step = 0;   // that a comparison needed
  std::vector<GradcheckFailure> failures;  // at most one an input and order, worst first
};

// Throws Error where there is nothing to judge: an input of float32 without allow_float32, inputs that share memory
// with each other or themselves, none that requires grad, f not deterministic, changing an input or returning something
// undefined. What f throws passes through. In any case each input is left as it was, bit for bit, with its gradient.
GradcheckReport gradcheck(const GradcheckFunction& f, const NamedTensors& inputs, const GradcheckOptions& options = {});
GradcheckReport gradcheck(const GradcheckFunction& f, const Tensors& inputs, const GradcheckOptions& options = {});

// The worst relative error of order 1 by step size, for steps 1e-1, 1e-2, … 1e-11: a V, truncation on its left arm,
// rounding on its right.
struct SweepPoint {
  double step;
  double worst;
};
std::vector<SweepPoint> sweep(const GradcheckFunction& f, const NamedTensors& inputs,
                              const GradcheckOptions& options = {});
std::vector<SweepPoint> sweep(const GradcheckFunction& f, const Tensors& inputs, const GradcheckOptions& options = {});

}  // namespace prenorm
