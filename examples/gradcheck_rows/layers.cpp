#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/container.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/residual.h"

namespace prenorm::gradcheck_rows {
namespace {

// A layer that is made anew for each row, called with x [..., size] away from the kink of relu.
template <class L, class... Args>
MakeCases layer(std::int64_t size, Args... args) {
  return [=](Cases& c) {
    const L layer(args...);
    c.check_layer(layer, {c.nonzero({size})});
    c.check_layer(layer, {c.nonzero({3, size})});
    c.check_layer(layer, {c.nonzero({2, 3, size}, Layout::transposed)});
    c.check_layer(layer, {c.nonzero({2, 2, size}, Layout::gaps)});
  };
}

template <class L, class... Args>
MakeCases in_evaluation(std::int64_t size, Args... args) {
  return [=](Cases& c) {
    const L layer(args...);
    layer.eval();
    c.check_layer(layer, {c.nonzero({3, size})});
    c.check_layer(layer, {c.nonzero({2, 3, size}, Layout::transposed)});
  };
}

void embedding_cases(Cases& c) {
  const nn::Embedding layer(5, 3);
  c.check_layer(layer, {Tensor::of({4, 1, 1, 0}, {.dtype = int64})});
  c.check_layer(layer, {c.ids({2, 3}, 5)});
  c.check_layer(layer, {c.ids({}, 5)});
}

void embeddings_cases(Cases& c) {
  const nn::Embeddings layer(6, 4);
  c.check_layer(layer, {c.ids({2, 3}, 4)});
}

MakeCases positional_encoding(std::int64_t d_model, double dropout) {
  return [=](Cases& c) {
    const nn::PositionalEncoding layer(d_model, dropout, 8);
    c.check_layer(layer, {c.normal({2, 5, d_model})});
    c.check_layer(layer, {c.normal({1, 8, d_model}, Layout::transposed)});
  };
}

void sequential_cases(Cases& c) {
  const nn::Sequential layer({nn::Linear(3, 5), nn::GELU(), nn::Linear(5, 2), nn::Identity()});
  c.check_layer(layer, {c.normal({4, 3})});
}

// Called by its owner: here one after another, the first one twice.
void module_list_cases(Cases& c) {
  const nn::ModuleList list = nn::clones(nn::Linear(3, 3), 2);
  c.check_layer(list, {c.normal({2, 3})}, [](const auto& layer, const Tensors& in) {
    const nn::Linear first = layer.template get<nn::Linear>(0), second = layer.template get<nn::Linear>(1);
    return first(second(first(in[0])));
  });
}

MakeCases batch_norm_cases(bool training, const nn::BatchNorm1dOptions& options) {
  return [=](Cases& c) {
    const nn::BatchNorm1d layer(3, options);
    layer(to(c.positive({6, 3}), float32));  // running statistics that are not 0 and 1
    layer.train(training);
    c.check_layer(layer, {c.normal({4, 3})});
    c.check_layer(layer, {c.normal({2, 3, 4}, Layout::transposed)});
  };
}

// Around a linear of the caller's, which is a part of the layer to be checked here.
struct Around : nn::Layer<Around> {
  using Layer::Layer;
  Around(std::int64_t size, const nn::SublayerConnectionOptions& options) : Layer("Around") {
    add_child("connection", nn::SublayerConnection(size, options));
    add_child("branch", nn::Linear(size, size));
  }
  Tensor forward(const Tensor& x) const { return child<nn::SublayerConnection>("connection")(x, child("branch")); }
};

MakeCases with_lambda(nn::Order order) {
  return [order](Cases& c) {
    const nn::SublayerConnection layer(4, {.dropout = 0, .order = order});
    const auto call = [](const auto& connection, const Tensors& in) {
      return connection(in[0], [&](const Tensor& y) { return sin(y) * in[1]; });
    };
    c.check_layer(layer, {c.normal({2, 3, 4}), c.normal({4})}, call);
    c.check_layer(layer, {c.normal({5, 4}, Layout::transposed), c.normal({5, 4})}, call);
  };
}

}  // namespace

Rows layer_rows() {
  using nn::Norm;
  using nn::Order;
  const std::string norm = layers("norm.cpp"), residual = layers("residual.cpp"), containers = layers("container.h"),
                    activations = layers("activation.h"), feed_forward = layers("feed_forward.cpp"),
                    embedding = layers("embedding.cpp"), batch = layers("batch_norm.cpp");
  return {
      {"Linear", "bias", layers("linear.cpp"), layer<nn::Linear>(3, 3, 4)},
      {"Linear", "no bias", layers("linear.cpp"), layer<nn::Linear>(3, 3, 4, nn::LinearOptions{.bias = false})},
      {"Embedding", "", embedding, embedding_cases},
      {"Embeddings", "", embedding, embeddings_cases},
      {"PositionalEncoding", "", embedding, positional_encoding(4, 0)},
      {"PositionalEncoding", "odd size, dropout", embedding, positional_encoding(5, 0.3)},
      {"Dropout", "training", layers("dropout.cpp"), layer<nn::Dropout>(6, 0.3)},
      {"Dropout", "evaluation", layers("dropout.cpp"), in_evaluation<nn::Dropout>(6, 0.3)},
      {"Identity", "", activations, layer<nn::Identity>(4)},
      {"ReLU", "", activations, layer<nn::ReLU>(4)},
      {"GELU", "exact", activations, layer<nn::GELU>(4)},
      {"GELU", "tanh", activations, layer<nn::GELU>(4, nn::GELUOptions{Gelu::tanh})},
      {"Sequential", "", containers, sequential_cases},
      {"ModuleList", "", containers, module_list_cases},
      {"LayerNorm", "unbiased", norm, layer<nn::LayerNorm>(6, 6)},
      {"LayerNorm", "unbiased, not affine", norm, layer<nn::LayerNorm>(6, 6, nn::LayerNormOptions{.affine = false})},
      {"LayerNorm", "standard", norm, layer<nn::LayerNorm>(6, 6, nn::LayerNormOptions{.form = Norm::standard})},
      {"LayerNorm", "standard, eps 0.5", norm,
       layer<nn::LayerNorm>(6, 6, nn::LayerNormOptions{.form = Norm::standard, .eps = 0.5})},
      {"LayerNorm", "standard, not affine", norm,
       layer<nn::LayerNorm>(6, 6, nn::LayerNormOptions{.form = Norm::standard, .affine = false})},
      {"LayerNorm", "standard, two dims", norm,
       [](Cases& c) {
         const nn::LayerNorm layer(Shape{3, 2}, {.form = Norm::standard});
         c.check_layer(layer, {c.normal({2, 3, 2})});
         c.check_layer(layer, {c.normal({2, 2, 3, 2}, Layout::transposed)});
       }},
      {"RMSNorm", "", norm, layer<nn::RMSNorm>(6, 6)},
      {"BatchNorm1d", "training", batch, batch_norm_cases(true, {})},
      {"BatchNorm1d", "training, not affine", batch, batch_norm_cases(true, {.affine = false})},
      {"BatchNorm1d", "evaluation", batch, batch_norm_cases(false, {})},
      {"BatchNorm1d", "evaluation, not affine", batch, batch_norm_cases(false, {.affine = false})},
      {"FeedForward", "", feed_forward, layer<nn::FeedForward>(3, 3, 2)},
      {"PositionwiseFeedForward", "training", feed_forward, layer<nn::PositionwiseFeedForward>(3, 3, 5, 0.3)},
      {"PositionwiseFeedForward", "evaluation", feed_forward, in_evaluation<nn::PositionwiseFeedForward>(3, 3, 5, 0.3)},
      {"SublayerConnection", "pre", residual, layer<Around>(4, 4, nn::SublayerConnectionOptions{.dropout = 0.3})},
      {"SublayerConnection", "pre, evaluation", residual,
       in_evaluation<Around>(4, 4, nn::SublayerConnectionOptions{.dropout = 0.3})},
      {"SublayerConnection", "post", residual,
       layer<Around>(4, 4, nn::SublayerConnectionOptions{.dropout = 0.3, .order = Order::post})},
      {"SublayerConnection", "pre, lambda", residual, with_lambda(Order::pre)},
      {"SublayerConnection", "post, lambda", residual, with_lambda(Order::post)},
  };
}

}  // namespace prenorm::gradcheck_rows
