#include "nn/feed_forward.h"

#include "nn/linear.h"

namespace prenorm::nn {

FeedForward::FeedForward(std::int64_t d_model, std::int64_t expansion) : Layer("FeedForward") {
  check(d_model >= 1 && expansion >= 1, "FeedForward: d_model ", d_model, " and expansion ", expansion,
        " are at least 1");
  add_child("w1", Linear(d_model, expansion * d_model));
  add_child("w2", Linear(expansion * d_model, d_model));
}

Tensor FeedForward::forward(const Tensor& x) const { return child("w2")(gelu(child("w1")(x))); }

}  // namespace prenorm::nn
