// The check of one derivative by differences: the first, of f, or the second, which is the first of f's gradients.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/gradcheck/differences.h"
#include "autograd/gradcheck/verdict.h"
#include "autograd/random.h"
#include "autograd/tensor.h"

namespace prenorm {

class DerivativeCheck {
 public:
  DerivativeCheck(Differentiable function, const GradcheckOptions& options, Generator& generator);

  const Tensors& outputs() const { return outputs_; }
  const Tensors& cotangents() const { return cotangents_; }
  // Of backward at these cotangents, without create_graph.
  const Gradients& gradients() const { return rows_[0].plain; }
  double largest() const { return largest_; }  // gradient in the check, analytic or numeric

  std::int64_t elements() const { return static_cast<std::int64_t>(lines_.size() * rows_.size()); }
  // No analytic gradient exceeds 1e-10 and no numeric one the rounding noise of its difference.
  bool is_vacuous() const;
  // Compares all, and adds what it finds to the report.
  void run(GradcheckReport& report);
  // The worst relative error as measured, without trying other steps.
  double worst() const;

 private:
  // What backward gives for one choice of cotangents.
  struct Row {
    std::vector<double> weights;    // the cotangents, flattened
    Gradients plain, create_graph;  // the latter only in the first row
    bool has(GradcheckBackward backward) const { return backward == GradcheckBackward::plain || !create_graph.empty(); }
    const Gradients& of(GradcheckBackward backward) const {
      return backward == GradcheckBackward::plain ? plain : create_graph;
    }
  };
  // A verdict on one line, by one of the two backwards.
  struct Finding {
    std::size_t line;
    GradcheckBackward backward;
    Verdict verdict;
  };

  void add_row(const Tensors& cotangents, bool create_graph);
  void add_jacobian_rows();
  void choose_lines();
  void add_line(Line line);

  double analytic(std::size_t row, std::size_t line, GradcheckBackward backward) const;
  std::vector<Finding> judge(std::int64_t variable, std::size_t row, bool only_elements);
  bool is_doubtful(const Verdict& verdict) const;
  Verdict look_again(const Finding& finding, std::size_t row);
  std::vector<Difference> ladder(std::size_t line, std::size_t row);

  void compare(std::int64_t variable, GradcheckReport& report);
  void locate(const Finding& finding, std::size_t row);
  GradcheckFailure explain(std::int64_t variable, std::size_t row, const std::vector<Finding>& findings) const;
  std::vector<std::int64_t> sizes() const;
  Standard standard() const;

  const Differentiable function_;
  const GradcheckOptions options_;
  Generator& generator_;
  Tensors outputs_, cotangents_;
  Probe probe_;
  std::vector<Row> rows_;
  std::vector<Line> lines_;
  std::vector<std::vector<Difference>> numeric_;       // by line and row
  std::map<std::size_t, std::vector<Sides>> ladders_;  // by line
  double largest_ = 0;
};

}  // namespace prenorm
