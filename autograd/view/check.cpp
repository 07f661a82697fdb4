#include "autograd/view/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/gradcheck/reason.h"
#include "autograd/gradcheck/verdict.h"
#include "autograd/random.h"
#include "autograd/view/replay.h"

namespace prenorm::view {
namespace {

// Element by element up to this size, and up to this much work (elements to move times elements to compute).
constexpr std::size_t kElements = 256;
constexpr std::int64_t kWork = 1 << 18;
// So many elements get a second look where the first fails.
constexpr int kSecondLooks = 64;

struct Accuracy {
  double step, tolerance;
  double epsilon;  // of the recorded gradient's dtype
};

// The difference is in float64 and good to 1e-7 or better; where the gradient is, too, the tolerance is that of
// gradcheck. A recorded float32 gradient is a sum of rounded products: the op's own rounding is some 1e-6 of its terms,
// which floor_of() and Replay::rounding() allow for, and a tolerance of 1e-4 stands well above that and well below any
// error in a formula. An op that gives float32 out whatever it is given (a conversion) hides its difference in rounding
// unless the step is large, as in gradcheck for float32.
Accuracy accuracy_of(DType gradient, const Replay& replay) {
  const bool coarse = replay.epsilon() > 1e-10;
  const double epsilon = gradient == float32 ? 1.2e-7 : 2.2e-16;
  if (coarse) return {5e-3, 2e-2, epsilon};
  return {5e-6, gradient == float32 ? 1e-4 : 1e-6, epsilon};
}

std::vector<double> terms(const Sides& sides, const std::vector<double>& weights) {
  std::vector<double> terms(weights.size(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (sides.plus[i] == sides.minus[i]) continue;  // also two equal infinities
    const double term = weights[i] * (sides.plus[i] - sides.minus[i]) / (sides.back + sides.forth);
    if (std::isfinite(term)) terms[i] = term;
  }
  return terms;
}

double length(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// What a derivative is measured by where it is small itself: the outputs' contributions to it may cancel, and then what
// is left is rounding of the recorded gradient (which grows with the square root of their number), or of the
// difference.
double floor_of(const Sides& sides, const Difference& difference, const std::vector<double>& weights,
                const Accuracy& accuracy) {
  const double growth = 16 + std::sqrt(static_cast<double>(weights.size()));
  const double rounding = accuracy.epsilon * growth * length(terms(sides, weights));
  return (rounding + kNoiseMargin * difference.noise) / accuracy.tolerance;
}

struct Interval {
  double low = 0, high = 0;
};

// A kink in some of the outputs (relu at 0, equal values in max) leaves each of these a range from its left slope to
// its right one; the gradient may be anything that such slopes add up to. Other outputs count with their central slope.
Interval slopes(const Sides& wide, const Sides& narrow, const std::vector<double>& centre,
                const std::vector<double>& weights) {
  Interval sum;
  const auto sides_of = [&](const Sides& sides, std::size_t i) {
    const auto change = [](double a, double b) { return a == b ? 0 : b - a; };
    return std::pair(change(sides.minus[i], centre[i]) / sides.back, change(centre[i], sides.plus[i]) / sides.forth);
  };
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const auto [wide_left, wide_right] = sides_of(wide, i);
    const auto [left, right] = sides_of(narrow, i);
    const double jump = std::abs(right - left), size = std::max(std::abs(left), std::abs(right));
    const bool kink = jump > 0.5 * std::abs(wide_right - wide_left) && jump > 1e-2 * size;
    const double central = weights[i] * (left + right) / 2;
    sum.low += kink ? std::min(weights[i] * left, weights[i] * right) : central;
    sum.high += kink ? std::max(weights[i] * left, weights[i] * right) : central;
  }
  return sum;
}

// The differences of one input's gradient.
class InputCheck {
 public:
  InputCheck(const Replay& replay, std::int64_t input, const Shape& shape, std::vector<double> gradient, DType dtype)
      : replay_(replay),
        input_(input),
        shape_(shape),
        gradient_(std::move(gradient)),
        accuracy_(accuracy_of(dtype, replay)) {}

  Check run() {
    const bool few =
        gradient_.size() <= kElements && static_cast<std::int64_t>(gradient_.size()) * replay_.elements() <= kWork;
    return few ? elements() : direction();
  }

 private:
  Check elements() {
    std::vector<Difference> differences;
    double scale = 0;
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      const Line line{input_, static_cast<std::int64_t>(i)};
      differences.push_back(look(line, accuracy_.step, &scale));
      for (double value : {gradient_[i], differences[i].central}) {
        if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
      }
    }
    Check check{.mode = Check::Mode::elements};
    std::vector<double> shown;
    std::size_t judged = 0;
    int looks = 0;
    Evidence evidence{.shape = shape_, .x = replay_.input(input_), .sizes = sizes()};
    Verdict worst;
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      const Line line{input_, static_cast<std::int64_t>(i)};
      Verdict verdict = first_look(gradient_[i], differences[i], standard(scale));
      if (!std::isfinite(differences[i].central)) {  // there is no derivative: log at 0
        shown.push_back(differences[i].central);
        continue;
      }
      if (!verdict.right && looks++ < kSecondLooks)
        verdict = look_again(line, gradient_[i], differences[i], scale, check.reason);
      ++judged;
      check.error = std::isnan(verdict.error) ? INFINITY : std::max(check.error, verdict.error);
      if (!verdict.right && (check.ok || verdict.error > worst.error)) worst = verdict;
      check.ok = check.ok && verdict.right;
      evidence.add(static_cast<std::int64_t>(i), verdict);
      shown.push_back(verdict.numeric.central);
    }
    if (judged == 0) return {.reason = "the difference is not finite"};
    check.difference = Tensor::of(shown, shape_, {.dtype = float64});
    if (!check.ok) check.reason = reason(evidence, worst);
    return check;
  }

  Check direction() {
    Generator generator(1);
    std::vector<double> u = random_weights(static_cast<std::int64_t>(gradient_.size()), generator);
    const double size = length(u);
    for (double& value : u) value /= size;
    const Line line{input_, 0, std::move(u)};
    Check check{.mode = Check::Mode::direction};
    check.gradient = Probe::along(line, gradient_);
    // A derivative along a direction may be near 0 by chance; typically it is this large.
    double scale = length(gradient_) / std::sqrt(static_cast<double>(gradient_.size()));
    const Difference difference = look(line, accuracy_.step, &scale);
    if (!std::isfinite(difference.central)) return {.reason = "the difference is not finite"};
    Verdict verdict = first_look(check.gradient, difference, standard(scale));
    if (!verdict.right) verdict = look_again(line, check.gradient, difference, scale, check.reason);
    check.numeric = verdict.numeric.central;
    check.error = std::isnan(verdict.error) ? INFINITY : verdict.error;
    check.ok = verdict.right;
    if (!check.ok) check.reason.clear();
    return check;
  }

  // `scale`, where given, becomes at least the floor of this difference.
  Difference look(const Line& line, double step, double* scale = nullptr) const {
    const Sides sides = replay_.sides(line, step);
    const Difference difference = differences({sides}, replay_.centre(), replay_.weights())[0];
    if (scale != nullptr) *scale = std::max(*scale, floor_of(sides, difference, replay_.weights(), accuracy_));
    return difference;
  }

  // relative_error() measures by a hundredth of the largest gradient.
  Standard standard(double scale) const { return {accuracy_.tolerance, 100 * scale, true, true}; }

  // Where a first look fails: rounding of a float32 record, then kinks of single outputs, then other steps, as in
  // gradcheck. `scale` grows by what rounding allows.
  Verdict look_again(const Line& line, double gradient, const Difference& difference, double& scale,
                     std::string& note) {
    if (accuracy_.epsilon > 1e-10) {
      scale = std::max(scale, kNoiseMargin * rounding(line) / accuracy_.tolerance);
      const Verdict verdict = first_look(gradient, difference, standard(scale));
      if (verdict.right) return verdict;
    }
    const Sides wide = replay_.sides(line, accuracy_.step), narrow = replay_.sides(line, accuracy_.step / 100);
    const Interval interval = slopes(wide, narrow, replay_.centre(), replay_.weights());
    const double slack = accuracy_.tolerance * scale;
    if (interval.low - slack <= gradient && gradient <= interval.high + slack) {
      Verdict verdict;
      verdict.right = true;
      verdict.analytic = gradient;
      verdict.numeric.central = std::clamp(gradient, interval.low, interval.high);
      verdict.error = relative_error(gradient, verdict.numeric.central, 100 * scale);
      if (interval.high - interval.low > slack) note = "a kink: any slope between the left and the right one is right";
      return verdict;
    }
    std::vector<Sides> steps;
    for (std::size_t i = 0; i < kLadderSteps; ++i) {
      steps.push_back(replay_.sides(line, ladder_step(i) * accuracy_.step));
    }
    return second_look(gradient, differences(steps, replay_.centre(), replay_.weights()), standard(scale));
  }

  // Of the gradient: the largest of its elements', or what a derivative along a direction of length 1 comes to.
  double rounding(const Line& line) {
    if (!rounding_.has_value()) rounding_ = replay_.rounding(input_);
    double most = 0;
    for (double change : *rounding_) most = std::isfinite(change) ? std::max(most, std::abs(change)) : most;
    if (line.is_element() || rounding_->empty()) return most;
    return std::min(most, length(*rounding_) / std::sqrt(static_cast<double>(rounding_->size())));
  }

  std::vector<std::int64_t> sizes() const {
    std::vector<std::int64_t> sizes(shape_.begin(), shape_.end());
    sizes.push_back(static_cast<std::int64_t>(gradient_.size()));
    sizes.push_back(static_cast<std::int64_t>(replay_.weights().size()));
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }

  // As gradcheck words it.
  std::string reason(const Evidence& evidence, const Verdict& worst) const {
    GradcheckFailure failure{.shape = shape_};
    failure.wrong = evidence.wrong_count();
    failure.total = static_cast<std::int64_t>(evidence.elements.size());
    diagnose(evidence, worst, failure);
    return failure.detail;
  }

  const Replay& replay_;
  std::int64_t input_;
  Shape shape_;
  std::vector<double> gradient_;
  Accuracy accuracy_;
  std::optional<std::vector<double>> rounding_;  // made on first use
};

}  // namespace

Checks check_node(const RecordedNode& node, const NodeTrace& trace) {
  Checks checks(node.inputs.size());
  std::optional<Replay> replay;
  const Tensors* cotangents = nullptr;  // of the replay
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!trace.asked[i]) continue;
    const Tensor& value = node.input_values[i];
    if (value.numel() == 0) {
      checks[i] = Check{.reason = "there are no elements"};
      continue;
    }
    const Tensors& own = trace.stems_from[i];
    const auto is_same = [](const Tensor& a, const Tensor& b) { return a.is(b); };
    if (cotangents == nullptr || !std::equal(own.begin(), own.end(), cotangents->begin(), cotangents->end(), is_same)) {
      replay.emplace(node, own);
      cotangents = &own;
    }
    if (!replay->obstacle().empty()) {
      checks[i] = Check{.reason = replay->obstacle()};
      continue;
    }
    const Tensor& gradient = trace.gradients[i];
    std::vector<double> values(static_cast<std::size_t>(value.numel()), 0.0);
    if (gradient.defined()) values = gradient.to_vector<double>();
    checks[i] =
        InputCheck(*replay, static_cast<std::int64_t>(i), value.shape(), std::move(values), value.dtype()).run();
  }
  return checks;
}

}  // namespace prenorm::view
