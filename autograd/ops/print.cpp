// operator<<: "[[1, 2], [3, 4]] float32 [2, 2]", on one line if that is short, else one row a line in columns. Of long
// dimensions the first and last few are shown.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "autograd/ops.h"

namespace prenorm {
namespace {

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return std::isnan(value) ? "nan" : buffer;  // never "-nan"
}
std::string text(float value) { return text(static_cast<double>(value)); }
std::string text(std::int64_t value) { return std::to_string(value); }
std::string text(bool value) { return value ? "true" : "false"; }

class Printer {
 public:
  explicit Printer(const Tensor& x) : x_(x), shorten_(x.numel() > kShowAll) {}

  std::string print() {
    collect(0, 0);
    std::string line = layout(false);
    if (line.size() <= kLineLength || x_.dims() < 2) return line;
    for (const std::string& element : elements_) width_ = std::max(width_, element.size());
    return layout(true);
  }

 private:
  static constexpr std::int64_t kShowAll = 200;
  static constexpr std::size_t kLineLength = 100;

  // How many are shown at either end of a dimension that is too long: few of the outer ones, whose elements are large.
  std::int64_t edge(std::int64_t dim) const { return dim + 2 >= x_.dims() ? 3 : 1; }
  bool is_cut(std::int64_t dim) const { return shorten_ && x_.shape()[dim] > 2 * edge(dim); }

  // Calls visit(i) for each index shown along dim, and skip() between the two ends.
  template <class Visit, class Skip>
  void each(std::int64_t dim, Visit visit, Skip skip) const {
    const std::int64_t n = x_.shape()[dim];
    for (std::int64_t i = 0; i < n; ++i) {
      if (is_cut(dim) && i == edge(dim)) {
        skip();
        i = n - edge(dim);
      }
      visit(i);
    }
  }

  // The texts of all elements shown, in row-major order.
  void collect(std::int64_t dim, std::int64_t offset) {
    if (dim == x_.dims()) {
      elements_.push_back(dispatch(x_.dtype(), [&](auto t) { return text(x_.data<decltype(t)>()[offset]); }));
      return;
    }
    each(
        dim, [&](std::int64_t i) { collect(dim + 1, offset + i * x_.strides()[dim]); }, [] {});
  }

  std::string layout(bool lines) {
    next_ = 0;
    std::string out;
    block(0, lines, out);
    return out;
  }

  void block(std::int64_t dim, bool lines, std::string& out) {
    if (dim == x_.dims()) {
      const std::string& element = elements_[next_++];
      out.append(std::max(width_, element.size()) - element.size(), ' ').append(element);
      return;
    }
    const bool innermost = dim + 1 == x_.dims();
    const std::string between =
        lines && !innermost ? ",\n" + std::string(static_cast<std::size_t>(dim + 1), ' ') : ", ";
    bool first = true;
    const auto separate = [&] {
      if (!first) out += between;
      first = false;
    };
    out += '[';
    each(
        dim,
        [&](std::int64_t) {
          separate();
          block(dim + 1, lines, out);
        },
        [&] {
          separate();
          out += "...";
        });
    out += ']';
  }

  const Tensor& x_;
  const bool shorten_;
  std::vector<std::string> elements_;
  std::size_t next_ = 0, width_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  if (!x.defined()) return out << "undefined tensor";
  return out << Printer(x).print() << ' ' << x.dtype() << ' ' << x.shape();
}

}  // namespace prenorm
