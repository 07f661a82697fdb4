#include "nn/encoder.h"

#include "nn/activation.h"
#include "nn/container.h"

namespace prenorm::nn {

Module final_norm(Order order, std::int64_t size) {
  if (order == Order::post) return Identity();
  return LayerNorm(size);
}

EncoderLayer::EncoderLayer(std::int64_t size, const MultiHeadedAttention& self_attn, const Module& feed_forward,
                           EncoderLayerOptions options)
    : Layer("EncoderLayer", {size, options.order}) {
  add_child("self_attn", self_attn);
  add_child("feed_forward", feed_forward);
  add_child("sublayer", clones(SublayerConnection(size, {options.dropout, options.order}), 2));
}

Tensor EncoderLayer::forward(const Tensor& x, const Tensor& mask) const {
  const ModuleList sublayers = child<ModuleList>("sublayer");
  const auto self_attn = child<MultiHeadedAttention>("self_attn");
  const Tensor attended =
      sublayers.get<SublayerConnection>(0)(x, [&](const Tensor& y) { return self_attn(y, y, y, mask); });
  return sublayers.get<SublayerConnection>(1)(attended, child("feed_forward"));
}

Encoder::Encoder(const EncoderLayer& layer, std::int64_t N) : Layer("Encoder") {
  add_child("layers", clones(layer, N));
  add_child("norm", final_norm(layer.options().order, layer.options().size));
}

Tensor Encoder::forward(const Tensor& x, const Tensor& mask) const {
  Tensor y = x;
  const ModuleList layers = child<ModuleList>("layers");
  for (std::int64_t i = 0; i < layers.size(); ++i) y = layers.get<EncoderLayer>(i)(y, mask);
  return child("norm")(y);
}

}  // namespace prenorm::nn
