#include "autograd/view/numbers.h"

#include "autograd/view/run_json.h"

namespace prenorm::view {
namespace {

TEST_CASE("an op without a formula of its own shows its value") {
  Recording run;
  const Tensor x = Tensor::of({1, 2}, {.dtype = float64, .requires_grad = true}),
               w = Tensor::of({3, 5}, {.dtype = float64});
  sum(wrong_product(x, w, 1)).backward();
  const Json json = parse(run);
  CHECK(only(json, "wrong_product")["numbers"] == "y[0] = 4");
}

}  // namespace
}  // namespace prenorm::view
