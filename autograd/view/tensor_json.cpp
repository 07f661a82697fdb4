#include "autograd/view/tensor_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "autograd/view/json_text.h"

namespace prenorm::view {
namespace {

constexpr int kDigits = 4;
constexpr std::size_t kLargest = 4, kBins = 12;
constexpr std::int64_t kCorner = 4;

std::string number(double value) { return json_number(value, kDigits); }

struct Statistics {
  double min = NAN, max = NAN, mean = NAN, std = NAN, norm = 0;  // of the finite values
  std::int64_t finite = 0, zeros = 0, nan = 0, inf = 0;
};

Statistics statistics(const std::vector<double>& values) {
  Statistics s;
  double sum = 0, squares = 0;
  for (double value : values) {
    if (std::isnan(value)) ++s.nan;
    if (std::isinf(value)) ++s.inf;
    if (!std::isfinite(value)) continue;
    ++s.finite;
    if (value == 0) ++s.zeros;
    sum += value;
    squares += value * value;
    s.min = s.finite == 1 ? value : std::min(s.min, value);
    s.max = s.finite == 1 ? value : std::max(s.max, value);
  }
  s.norm = std::sqrt(squares);
  if (s.finite == 0) return s;
  s.mean = sum / static_cast<double>(s.finite);
  double spread = 0;
  for (double value : values) {
    if (std::isfinite(value)) spread += (value - s.mean) * (value - s.mean);
  }
  s.std = std::sqrt(spread / static_cast<double>(s.finite));
  return s;
}

std::string statistics_json(const Statistics& s) {
  return JsonList('{')
      .add("min", number(s.min))
      .add("max", number(s.max))
      .add("mean", number(s.mean))
      .add("std", number(s.std))
      .add("norm", number(s.norm))
      .add("zeros", std::to_string(s.zeros))
      .add("nan", std::to_string(s.nan))
      .add("inf", std::to_string(s.inf))
      .close();
}

std::string largest_json(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(kLargest, order.size()));
  const auto size = [&](std::size_t i) { return std::isnan(values[i]) ? INFINITY : std::abs(values[i]); };
  std::partial_sort(order.begin(), middle, order.end(),
                    [&](std::size_t a, std::size_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
  JsonList list('[');
  for (auto i = order.begin(); i != middle; ++i) {
    list.add(JsonList('[').add(std::to_string(*i)).add(number(values[*i])).close());
  }
  return list.close();
}

std::string histogram_json(const std::vector<double>& values, const Statistics& s) {
  std::array<std::int64_t, kBins> counts{};
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    const double place = s.max > s.min ? (value - s.min) / (s.max - s.min) * kBins : 0;
    ++counts[std::min(static_cast<std::size_t>(place), kBins - 1)];
  }
  JsonList list('[');
  for (std::int64_t count : counts) list.add(std::to_string(count));
  return JsonList('{').add("lo", number(s.min)).add("hi", number(s.max)).add("counts", list.close()).close();
}

// Of the first matrix of the last two dimensions; a vector is one row.
std::string corner_json(const Tensor& tensor, const std::vector<double>& values) {
  const std::int64_t width = tensor.dims() > 0 ? tensor.size(-1) : 1, height = tensor.dims() > 1 ? tensor.size(-2) : 1;
  const std::int64_t rows = std::min(height, kCorner), cols = std::min(width, kCorner);
  JsonList list('[');
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) list.add(number(values[static_cast<std::size_t>(r * width + c)]));
  }
  return JsonList('{')
      .add("rows", std::to_string(rows))
      .add("cols", std::to_string(cols))
      .add("values", list.close())
      .close();
}

std::string kind_json(const Tensor& tensor) {
  return "{\"shape\":" + json_shape(tensor.shape()) + ",\"dtype\":\"" + std::string(name(tensor.dtype())) + '"';
}

}  // namespace

std::string full_json(const Tensor& tensor) {
  JsonList list('[');
  if (tensor.dtype() == float32) {
    for (float value : tensor.to_vector<float>()) list.add(json_number(value));
  } else if (tensor.dtype() == float64) {
    for (double value : tensor.to_vector<double>()) list.add(json_number(value));
  } else {
    for (std::int64_t value : tensor.to_vector<std::int64_t>()) list.add(std::to_string(value));
  }
  return kind_json(tensor) + ",\"values\":" + list.close() + '}';
}

std::string summary_json(const Tensor& tensor, std::size_t bytes) {
  std::string text = kind_json(tensor);
  const auto fits = [&](const std::string& part) {
    if (text.size() + part.size() + 1 > bytes) return false;
    text += part;
    return true;
  };
  constexpr std::size_t kLeast = 24;  // {"norm":0.1234} and its key
  if (bytes < text.size() + kLeast || tensor.numel() == 0) return text + '}';
  const std::vector<double> values = tensor.to_vector<double>();
  const Statistics s = statistics(values);
  if (!fits(",\"stats\":" + statistics_json(s))) {
    fits(",\"stats\":{\"norm\":" + number(s.norm) + '}');
    return text + '}';
  }
  fits(",\"largest\":" + largest_json(values));
  if (s.finite > 0) fits(",\"histogram\":" + histogram_json(values, s));
  fits(",\"corner\":" + corner_json(tensor, values));
  return text + '}';
}

}  // namespace prenorm::view
