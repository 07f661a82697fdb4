#include "nn/feed_forward.h"

#include "nn/dropout.h"
#include "nn/linear.h"

namespace prenorm::nn {

FeedForward::FeedForward(std::int64_t d_model, std::int64_t expansion) : Layer("FeedForward") {
  check(d_model >= 1 && expansion >= 1, "FeedForward: d_model ", d_model, " and expansion ", expansion,
        " are at least 1");
  add_child("w1", Linear(d_model, expansion * d_model));
  add_child("w2", Linear(expansion * d_model, d_model));
}

Tensor FeedForward::forward(const Tensor& x) const { return child("w2")(gelu(child("w1")(x))); }

PositionwiseFeedForward::PositionwiseFeedForward(std::int64_t d_model, std::int64_t d_ff, double dropout)
    : Layer("PositionwiseFeedForward") {
  add_child("w_1", Linear(d_model, d_ff));
  add_child("w_2", Linear(d_ff, d_model));
  add_child("dropout", Dropout(dropout));
}

Tensor PositionwiseFeedForward::forward(const Tensor& x) const {
  return child("w_2")(child("dropout")(relu(child("w_1")(x))));
}

}  // namespace prenorm::nn
