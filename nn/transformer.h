// The whole encoder-decoder Transformer (Vaswani et al. 2017), as the Annotated Transformer builds it, and its loss.
#pragma once

#include "nn/decoder.h"
#include "nn/encoder.h"

namespace prenorm::nn {

// log_softmax(proj(x)), [..., d_model] -> [..., vocab]. Child proj.
class Generator : public Layer<Generator> {
 public:
  using Layer::Layer;
  Generator(std::int64_t d_model, std::int64_t vocab);

  Tensor forward(const Tensor& x) const;
};

// Children encoder, decoder, src_embed, tgt_embed, generator. Ids int64 [B, S] and [B, T]; src_mask bool [B, 1, S],
// tgt_mask bool [B, T, T].
class EncoderDecoder : public Layer<EncoderDecoder> {
 public:
  using Layer::Layer;
  EncoderDecoder(const Encoder& encoder, const Decoder& decoder, const Module& src_embed, const Module& tgt_embed,
                 const Generator& generator);

  // The decoder's output [B, T, d_model]; the generator makes log-probabilities of it.
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask) const;
  Tensor encode(const Tensor& src, const Tensor& src_mask) const;  // [B, S, d_model]
  Tensor decode(const Tensor& memory, const Tensor& src_mask, const Tensor& tgt, const Tensor& tgt_mask) const;
  Generator generator() const { return child<Generator>("generator"); }
};

struct TransformerOptions {
  std::int64_t N = 6;  // layers of encoder and decoder each
  std::int64_t d_model = 512;
  std::int64_t d_ff = 2048;
  std::int64_t h = 8;
  double dropout = 0.1;
  std::int64_t max_len = 5000;
  Order order = Order::pre;
};

// The model with all its parts; parameters of more than one dimension drawn by xavier_uniform_.
EncoderDecoder make_model(std::int64_t src_vocab, std::int64_t tgt_vocab, TransformerOptions options = {});

// Label smoothing (Szegedy et al. 2016, section 7) in the Annotated Transformer's form. target int64 [N] -> [N, size]:
// 1 - smoothing at the target, smoothing / (size - 2) elsewhere, 0 at padding_idx, and 0 in the whole row of a target
// that is padding_idx.
Tensor smoothed_targets(const Tensor& target, std::int64_t size, std::int64_t padding_idx, double smoothing,
                        DType dtype = float32);

// sum t (log t - x) over log-probabilities x [N, size] and t = smoothed_targets(target [N]).
Tensor label_smoothing_loss(const Tensor& log_probs, const Tensor& target, std::int64_t padding_idx, double smoothing);

}  // namespace prenorm::nn
