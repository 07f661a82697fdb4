#include "nn/transformer.h"

#include "nn/container.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/linear.h"

namespace prenorm::nn {

Generator::Generator(std::int64_t d_model, std::int64_t vocab) : Layer("Generator") {
  add_child("proj", Linear(d_model, vocab));
}

Tensor Generator::forward(const Tensor& x) const { return log_softmax(child("proj")(x)); }

EncoderDecoder::EncoderDecoder(const Encoder& encoder, const Decoder& decoder, const Module& src_embed,
                               const Module& tgt_embed, const Generator& generator)
    : Layer("EncoderDecoder") {
  add_child("encoder", encoder);
  add_child("decoder", decoder);
  add_child("src_embed", src_embed);
  add_child("tgt_embed", tgt_embed);
  add_child("generator", generator);
}

Tensor EncoderDecoder::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                               const Tensor& tgt_mask) const {
  return decode(encode(src, src_mask), src_mask, tgt, tgt_mask);
}

Tensor EncoderDecoder::encode(const Tensor& src, const Tensor& src_mask) const {
  return child<Encoder>("encoder")(child("src_embed")(src), src_mask);
}

Tensor EncoderDecoder::decode(const Tensor& memory, const Tensor& src_mask, const Tensor& tgt,
                              const Tensor& tgt_mask) const {
  return child<Decoder>("decoder")(child("tgt_embed")(tgt), memory, src_mask, tgt_mask);
}

EncoderDecoder make_model(std::int64_t src_vocab, std::int64_t tgt_vocab, TransformerOptions options) {
  const auto [N, d_model, d_ff, h, dropout, max_len, order] = options;
  const MultiHeadedAttention attn(h, d_model, dropout);
  const PositionwiseFeedForward feed_forward(d_model, d_ff, dropout);
  const PositionalEncoding position(d_model, dropout, max_len);
  const EncoderLayerOptions layer{dropout, order};
  // Every part is copied where it is used, so that no two places share parameters. One after another, since the order
  // in which they draw decides the weights.
  const Encoder encoder(EncoderLayer(d_model, attn.clone(), feed_forward.clone(), layer), N);
  const Decoder decoder(DecoderLayer(d_model, attn.clone(), attn.clone(), feed_forward.clone(), layer), N);
  const Sequential src_embed{Embeddings(d_model, src_vocab), position.clone()};
  const Sequential tgt_embed{Embeddings(d_model, tgt_vocab), position.clone()};
  EncoderDecoder model(encoder, decoder, src_embed, tgt_embed, Generator(d_model, tgt_vocab));
  for (const auto& [path, parameter] : model.parameters()) {
    if (parameter.dims() > 1) xavier_uniform_(parameter);
  }
  return model;
}

Tensor smoothed_targets(const Tensor& target, std::int64_t size, std::int64_t padding_idx, double smoothing,
                        DType dtype) {
  check(target.dims() == 1 && target.dtype() == int64, "smoothed_targets: expected target int64 [N], got ",
        target.dtype(), " ", target.shape());
  check(size > 2 && padding_idx >= 0 && padding_idx < size, "smoothed_targets: padding_idx ", padding_idx,
        " is not among ", size, " classes, of which there must be at least 3");
  check(smoothing >= 0 && smoothing <= 1, "smoothed_targets: smoothing is in [0, 1], got ", smoothing);
  const std::vector<std::int64_t> classes = target.to_vector<std::int64_t>();
  Tensor t = full({target.size(0), size}, smoothing / static_cast<double>(size - 2), dtype);
  dispatch_float("smoothed_targets", dtype, [&](auto type) {
    using T = decltype(type);
    T* row = t.mutable_data<T>();
    for (std::int64_t c : classes) {
      check(c >= 0 && c < size, "smoothed_targets: target ", c, " is not among ", size, " classes");
      row[c] = T(1 - smoothing);
      row[padding_idx] = 0;
      if (c == padding_idx) std::fill_n(row, size, T{0});
      row += size;
    }
  });
  return t;
}

Tensor label_smoothing_loss(const Tensor& log_probs, const Tensor& target, std::int64_t padding_idx, double smoothing) {
  check(log_probs.dims() == 2, "label_smoothing_loss: expected log-probabilities [N, size], got ", log_probs.shape());
  return kl_div(log_probs, smoothed_targets(target, log_probs.size(1), padding_idx, smoothing, log_probs.dtype()),
                Reduction::sum);
}

}  // namespace prenorm::nn
