// What tests of ops and layers share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/check.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/node.h"
#include "autograd/random.h"
#include "autograd/tensor.h"

namespace prenorm {

// While it lives, a test may do as it likes; at its end no node is left behind, and the grad mode is on again.
struct NoLeak {
  const std::int64_t before = Node::live_count();
  NoLeak() = default;
  NoLeak(const NoLeak&) = delete;
  NoLeak& operator=(const NoLeak&) = delete;
  ~NoLeak() {
    CHECK(Node::live_count() == before);
    CHECK(GradMode::enabled());
  }
};

// Leaves in float64 that require grad. The default generator is not touched.
inline Tensor randn64(const Shape& shape, std::uint64_t seed = 0, double mean = 0, double std = 1) {
  Generator generator(seed);
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = mean + std * generator.standard_normal();
  return Tensor::of(values, shape, {.dtype = float64, .requires_grad = true});
}
inline Tensor uniform64(const Shape& shape, double low, double high, std::uint64_t seed = 0) {
  Generator generator(seed);
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = low + (high - low) * generator.uniform();
  return Tensor::of(values, shape, {.dtype = float64, .requires_grad = true});
}

// First and second derivatives of f are what differences say.
inline void expect_gradients(const GradcheckFunction& f, const NamedTensors& inputs,
                             const GradcheckOptions& options = {}) {
  const GradcheckReport report = gradcheck(f, inputs, options);
  CHECK_MESSAGE(report.passed, report.message);
}
inline void expect_gradients(const GradcheckFunction& f, const Tensors& inputs, const GradcheckOptions& options = {}) {
  const GradcheckReport report = gradcheck(f, inputs, options);
  CHECK_MESSAGE(report.passed, report.message);
}

// Each value within tolerance * max(1, |expected|); NaN and infinity where they are expected.
inline void expect_close(const Tensor& actual, const std::vector<double>& expected, double tolerance = 1e-12) {
  REQUIRE(actual.defined());
  const std::vector<double> values = actual.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool same = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
    const bool close = std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i]));
    CHECK_MESSAGE((same || close), "element ", i, " is ", values[i], ", expected ", expected[i]);
  }
}
inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance = 1e-12) {
  REQUIRE(actual.defined());
  REQUIRE(expected.defined());
  CHECK(actual.shape() == expected.shape());
  expect_close(actual, expected.to_vector<double>(), tolerance);
}

// f() throws an Error whose message has all the parts.
template <class F>
void expect_error(F&& f, std::initializer_list<std::string_view> parts) {
  std::string message;
  bool thrown = false;
  try {
    f();
  } catch (const Error& error) {
    message = error.what();
    thrown = true;
  }
  CHECK_MESSAGE(thrown, "no Error was thrown");
  if (!thrown) return;
  for (std::string_view part : parts) {
    CHECK_MESSAGE(message.find(part) != std::string::npos, "\"", std::string(part), "\" is not in \"", message, "\"");
  }
}
template <class F>
void expect_error(F&& f, std::string_view part) {
  expect_error(f, {part});
}

}  // namespace prenorm
