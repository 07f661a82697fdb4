#include "autograd/shape.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include "support.h"

namespace prenorm {
namespace {

std::string printed(const Shape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}

// Where the elements of a view lie, in row-major order of its indices.
std::vector<std::int64_t> offsets(const Shape& shape, const Strides& strides) {
  std::vector<std::int64_t> all{0};
  for (std::int64_t d = 0; d < shape.dims(); ++d) {
    std::vector<std::int64_t> next;
    for (std::int64_t offset : all) {
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(offset + i * strides[d]);
    }
    all = std::move(next);
  }
  return all;
}

// The strides that show elements at `where` in `shape`, if there are any: a step along a dimension tells its stride.
bool strides_exist(const std::vector<std::int64_t>& where, const Shape& shape) {
  const Strides steps = contiguous_strides(shape);
  Strides strides = steps;
  for (std::int64_t d = 0; d < shape.dims(); ++d) strides[d] = shape[d] > 1 ? where[steps[d]] - where[0] : 0;
  return offsets(shape, strides) == where;
}

TEST_CASE("a shape keeps its sizes in order and prints them in brackets") {
  Shape shape{2, 3};
  CHECK(printed(shape) == "[2, 3]");
  CHECK(printed(Shape{}) == "[]");
  CHECK(Shape{}.empty());
  CHECK(shape.dims() == 2);
  CHECK(shape.back() == 3);

  shape.push_back(5);
  shape.insert(0, 7);
  CHECK(shape == Shape{7, 2, 3, 5});
  shape.erase(1);
  CHECK(shape == Shape{7, 3, 5});
  shape.insert(3, 9);
  CHECK(shape == Shape{7, 3, 5, 9});
  shape.erase(3);
  CHECK(shape == Shape{7, 3, 5});

  CHECK(Shape{2, 3} != Shape{2, 3, 1});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape::filled(3, 4) == Shape{4, 4, 4});
  CHECK(Shape::filled(0, 4) == Shape{});
  const std::vector<std::int64_t> sizes{4, 5, 6};
  CHECK(Shape(sizes.begin(), sizes.end()) == Shape{4, 5, 6});
}

TEST_CASE("a shape has at most eight dimensions") {
  Shape shape{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(numel(shape) == 40320);
  expect_error([&] { shape.push_back(9); }, {"at most 8 dimensions", "[1, 2, 3, 4, 5, 6, 7, 8]"});
  CHECK(shape.dims() == 8);
}

TEST_CASE("numel multiplies the sizes and refuses what int64 cannot count") {
  CHECK(numel({}) == 1);
  CHECK(numel({2, 3, 4}) == 24);
  CHECK(numel({2, 0, 4}) == 0);
  CHECK(numel({std::numeric_limits<std::int64_t>::max()}) == std::numeric_limits<std::int64_t>::max());
  const std::int64_t big = std::int64_t{1} << 32;
  expect_error([&] { numel({big, big}); }, {"[4294967296, 4294967296]", "more elements than int64 can count"});
  expect_error([&] { numel({0, big, big}); }, "more elements than int64 can count");
  expect_error([] { numel({2, -1}); }, {"not negative", "[2, -1]"});
}

TEST_CASE("contiguous strides are row-major") {
  CHECK(contiguous_strides({2, 3, 4}) == Strides{12, 4, 1});
  CHECK(contiguous_strides({2, 1, 4}) == Strides{4, 4, 1});
  CHECK(contiguous_strides({2, 0, 4}) == Strides{4, 4, 1});
  CHECK(contiguous_strides({}) == Strides{});
}

TEST_CASE("shapes broadcast when sizes aligned at the right are equal or 1") {
  CHECK(broadcast_shapes("add", {3, 1, 5}, {2, 3, 4, 5}) == Shape{2, 3, 4, 5});
  CHECK(broadcast_shapes("add", {2, 3, 4, 5}, {3, 1, 5}) == Shape{2, 3, 4, 5});
  CHECK(broadcast_shapes("add", {2, 1}, {1, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes("add", {}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes("add", {}, {}) == Shape{});
  CHECK(broadcast_shapes("add", {1}, {0}) == Shape{0});
  CHECK(broadcast_shapes("add", {0, 3}, {1, 3}) == Shape{0, 3});
  expect_error([] { broadcast_shapes("mul", {2, 3}, {2, 4}); }, {"mul: ", "[2, 3] and [2, 4]", "equal or 1"});
  expect_error([] { broadcast_shapes("mul", {2, 3}, {2}); }, {"[2, 3] and [2]"});
  expect_error([] { broadcast_shapes("mul", {0}, {3}); }, {"[0] and [3]"});

  CHECK(broadcasts_to({3, 1}, {2, 3, 4}));
  CHECK(broadcasts_to({}, {2}));
  CHECK(broadcasts_to({1}, {0}));
  CHECK_FALSE(broadcasts_to({2, 3}, {3}));
  CHECK_FALSE(broadcasts_to({3}, {1}));
  CHECK_FALSE(broadcasts_to({2}, {3}));
}

TEST_CASE("dimension numbers count from both ends") {
  CHECK(normalize_dim("sum", 0, 3) == 0);
  CHECK(normalize_dim("sum", -1, 3) == 2);
  CHECK(normalize_dim("sum", -3, 3) == 0);
  CHECK(normalize_dim("sum", 0, 0) == 0);
  CHECK(normalize_dim("sum", -1, 0) == 0);
  expect_error([] { normalize_dim("sum", 3, 3); }, {"sum: ", "dimension 3", "3 dimensions", "-3 to 2"});
  expect_error([] { normalize_dim("sum", -4, 3); }, {"dimension -4"});
  expect_error([] { normalize_dim("sum", 1, 0); }, {"dimension 1", "-1 to 0"});
}

TEST_CASE("one size of -1 is inferred") {
  CHECK(infer_shape("reshape", {-1, 4}, {2, 3, 4}) == Shape{6, 4});
  CHECK(infer_shape("reshape", {-1}, {}) == Shape{1});
  CHECK(infer_shape("reshape", {2, -1, 3}, {0}) == Shape{2, 0, 3});
  CHECK(infer_shape("reshape", {0, 5}, {3, 0}) == Shape{0, 5});
  expect_error([] { infer_shape("reshape", {-1, -1}, {4}); }, {"only one size may be -1", "[-1, -1]"});
  expect_error([] { infer_shape("reshape", {-1, 5}, {2, 3}); }, {"[2, 3] (6 elements) as [-1, 5]"});
  expect_error([] { infer_shape("reshape", {-1, 0}, {0}); }, {"cannot show [0]"});
  expect_error([] { infer_shape("reshape", {4}, {2, 3}); }, {"[2, 3] has 6 elements, [4] needs 4"});
  expect_error([] { infer_shape("reshape", {-2, 3}, {6}); }, "not negative");
}

TEST_CASE("reshape_strides knows the usual cases") {
  Strides out;
  CHECK(reshape_strides({2, 3, 4}, {12, 4, 1}, {6, 4}, out));
  CHECK(out == Strides{4, 1});
  CHECK_FALSE(reshape_strides({3, 2}, {1, 3}, {6}, out));  // a transposed matrix has no flat view
  CHECK(reshape_strides({3, 4}, {1, 3}, {3, 2, 2}, out));  // but its columns can be cut
  CHECK(out == Strides{1, 6, 3});
  CHECK(reshape_strides({3, 4}, {0, 0}, {2, 6}, out));  // one element shown twelve times
  CHECK(out == Strides{0, 0});
  CHECK(reshape_strides({1}, {77}, {}, out));
  CHECK(reshape_strides({}, {}, {1, 1}, out));
  CHECK(reshape_strides({0, 3}, {3, 1}, {5, 0}, out));
  CHECK(reshape_strides({2, 1, 3}, {3, 999, 1}, {6}, out));  // the stride of a size of 1 means nothing
}

TEST_CASE("reshape_strides finds a view exactly where brute force finds one") {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  int views = 0, copies = 0;
  for (int round = 0; round < 20000; ++round) {
    Shape shape;
    for (std::int64_t dims = below(5); dims > 0; --dims) shape.push_back(1 + below(4));
    Strides strides = contiguous_strides(shape);
    for (std::int64_t changes = below(4); changes > 0 && !shape.empty(); --changes) {
      const std::int64_t d = below(shape.dims()), e = below(shape.dims());
      switch (below(4)) {
        case 0:  // permute
          std::swap(shape[d], shape[e]);
          std::swap(strides[d], strides[e]);
          break;
        case 1:  // slice
          shape[d] = (shape[d] + 1) / 2;
          strides[d] *= 2;
          break;
        case 2:  // expand
          if (shape[d] == 1) shape[d] = 1 + below(3), strides[d] = 0;
          break;
        default:  // unsqueeze, with any stride
          if (shape.dims() < 6) shape.insert(d, 1), strides.insert(d, below(20));
      }
    }
    Shape wanted;
    for (std::int64_t rest = numel(shape); rest > 1;) {
      std::int64_t factor = 2 + below(rest - 1);
      while (rest % factor != 0) --factor;
      if (factor == 1) continue;
      wanted.insert(below(wanted.dims() + 1), factor);
      rest /= factor;
    }
    for (std::int64_t more = below(3); more > 0 && wanted.dims() < 8; --more)
      wanted.insert(below(wanted.dims() + 1), 1);

    const std::vector<std::int64_t> where = offsets(shape, strides);
    Strides out;
    const bool found = reshape_strides(shape, strides, wanted, out);
    CAPTURE(shape);
    CAPTURE(strides);
    CAPTURE(wanted);
    REQUIRE(found == strides_exist(where, wanted));
    if (found) REQUIRE(offsets(wanted, out) == where);
    ++(found ? views : copies);
  }
  CHECK(views > 1000);
  CHECK(copies > 1000);
}

}  // namespace
}  // namespace prenorm
