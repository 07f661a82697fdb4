#include "nn/decoder.h"

#include "nn/container.h"

namespace prenorm::nn {

DecoderLayer::DecoderLayer(std::int64_t size, const MultiHeadedAttention& self_attn,
                           const MultiHeadedAttention& src_attn, const Module& feed_forward,
                           EncoderLayerOptions options)
    : Layer("DecoderLayer", {size, options.order}) {
  add_child("self_attn", self_attn);
  add_child("src_attn", src_attn);
  add_child("feed_forward", feed_forward);
  add_child("sublayer", clones(SublayerConnection(size, {options.dropout, options.order}), 3));
}

Tensor DecoderLayer::forward(const Tensor& x, const Tensor& memory, const Tensor& src_mask,
                             const Tensor& tgt_mask) const {
  const ModuleList list = child<ModuleList>("sublayer");
  const auto sublayer = [&list](std::int64_t i) { return list.get<SublayerConnection>(i); };
  const auto self_attn = child<MultiHeadedAttention>("self_attn"), src_attn = child<MultiHeadedAttention>("src_attn");
  const Tensor own = sublayer(0)(x, [&](const Tensor& y) { return self_attn(y, y, y, tgt_mask); });
  const Tensor other = sublayer(1)(own, [&](const Tensor& y) { return src_attn(y, memory, memory, src_mask); });
  return sublayer(2)(other, child("feed_forward"));
}

Decoder::Decoder(const DecoderLayer& layer, std::int64_t N) : Layer("Decoder") {
  add_child("layers", clones(layer, N));
  add_child("norm", final_norm(layer.options().order, layer.options().size));
}

Tensor Decoder::forward(const Tensor& x, const Tensor& memory, const Tensor& src_mask, const Tensor& tgt_mask) const {
  Tensor y = x;
  const ModuleList layers = child<ModuleList>("layers");
  for (std::int64_t i = 0; i < layers.size(); ++i) y = layers.get<DecoderLayer>(i)(y, memory, src_mask, tgt_mask);
  return child("norm")(y);
}

}  // namespace prenorm::nn
