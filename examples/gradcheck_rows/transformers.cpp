#include "autograd/ops.h"
#include "gradcheck_rows/rows.h"
#include "nn/attention.h"
#include "nn/block.h"
#include "nn/decoder.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/tiny_lm.h"
#include "nn/transformer.h"

namespace prenorm::gradcheck_rows {
namespace {

using nn::Norm;
using nn::Order;

// Padding at the end of the second sequence: bool [2, 1, T].
Tensor padding(std::int64_t T) {
  Tensor mask = ones({2, 1, T}, boolean);
  fill_(slice(slice(mask, 0, 1, 2), 2, T - 1, T), 0);
  return mask;
}

MakeCases causal_self_attention(bool causal) {
  return [causal](Cases& c) {
    const nn::CausalSelfAttention layer(4, 2, causal);
    c.check_layer(layer, {c.normal({2, 3, 4})});
    c.check_layer(layer, {c.normal({1, 1, 4})});
    c.check_layer(layer, {c.normal({2, 4, 4}, Layout::transposed)});
  };
}

MakeCases multi_headed_attention(double dropout, bool masked) {
  return [=](Cases& c) {
    const nn::MultiHeadedAttention layer(2, 4, dropout);
    const Tensor causal = masked ? nn::subsequent_mask(3) : Tensor(), padded = masked ? padding(4) : Tensor();
    c.check_layer(layer, {c.normal({2, 3, 4}), c.normal({2, 3, 4}), c.normal({2, 3, 4}), causal});
    // Self-attention: one x in three places.
    c.check_layer(layer, {c.normal({2, 3, 4}, Layout::transposed)},
                  [=](const auto& mha, const Tensors& in) { return mha(in[0], in[0], in[0], causal); });
    // Attention over another, longer sequence.
    c.check_layer(layer, {c.normal({2, 2, 4}), c.normal({2, 4, 4})},
                  [=](const auto& mha, const Tensors& in) { return mha(in[0], in[1], in[1], padded); });
  };
}

nn::EncoderLayer encoder_layer(const nn::EncoderLayerOptions& options) {
  return {4, nn::MultiHeadedAttention(2, 4, options.dropout), nn::PositionwiseFeedForward(4, 5, options.dropout),
          options};
}
nn::DecoderLayer decoder_layer(const nn::EncoderLayerOptions& options) {
  return {4, nn::MultiHeadedAttention(2, 4, options.dropout), nn::MultiHeadedAttention(2, 4, options.dropout),
          nn::PositionwiseFeedForward(4, 5, options.dropout), options};
}

// With a mask and without.
template <class L>
void check_encoder(Cases& c, const L& layer) {
  c.check_layer(layer, {c.normal({2, 3, 4}), padding(3)});
  c.check_layer(layer, {c.normal({1, 2, 4}, Layout::transposed)});
}
template <class L>
void check_decoder(Cases& c, const L& layer) {
  c.check_layer(layer, {c.normal({2, 3, 4}), c.normal({2, 4, 4}), padding(4), nn::subsequent_mask(3)});
  c.check_layer(layer, {c.normal({1, 2, 4}, Layout::transposed), c.normal({1, 3, 4}), Tensor(), Tensor()});
}

MakeCases encoder_layers(const nn::EncoderLayerOptions& options) {
  return [=](Cases& c) { check_encoder(c, encoder_layer(options)); };
}
MakeCases decoder_layers(const nn::EncoderLayerOptions& options) {
  return [=](Cases& c) { check_decoder(c, decoder_layer(options)); };
}
MakeCases encoders(const nn::EncoderLayerOptions& options) {
  return [=](Cases& c) { check_encoder(c, nn::Encoder(encoder_layer(options), 2)); };
}
MakeCases decoders(const nn::EncoderLayerOptions& options) {
  return [=](Cases& c) { check_decoder(c, nn::Decoder(decoder_layer(options), 2)); };
}

void generator_cases(Cases& c) {
  const nn::Generator layer(3, 5);
  c.check_layer(layer, {c.normal({2, 2, 3})});
  c.check_layer(layer, {c.normal({4, 3}, Layout::transposed)});
}

// From ids to the loss, as it is trained.
MakeCases encoder_decoder(Order order, double dropout) {
  return [=](Cases& c) {
    const nn::EncoderDecoder model = nn::make_model(
        5, 6, {.N = 2, .d_model = 4, .d_ff = 6, .h = 2, .dropout = dropout, .max_len = 5, .order = order});
    const Tensor src = c.ids({2, 4}, 5), tgt = c.ids({2, 3}, 6), target = c.ids({6}, 6);
    const Tensor src_mask = padding(4), tgt_mask = nn::subsequent_mask(3);
    c.check_layer(model, {src, tgt, src_mask, tgt_mask}, [target](const auto& m, const Tensors& in) {
      const Tensor log_probs = m.generator()(m(in[0], in[1], in[2], in[3]));
      return nn::label_smoothing_loss(reshape(log_probs, {6, 6}), target, 0, 0.1);
    });
  };
}

MakeCases blocks(const nn::BlockOptions& options) {
  return [=](Cases& c) {
    nn::BlockOptions small = options;
    small.expansion = 2;
    const nn::Block layer(4, 2, small);
    c.check_layer(layer, {c.normal({2, 3, 4})});
    c.check_layer(layer, {c.normal({1, 4, 4}, Layout::transposed)});
  };
}

nn::TinyLM tiny_lm(nn::TinyLMOptions options) {
  options.d_model = 4;
  options.n_heads = 2;
  options.n_layers = 2;
  options.max_len = 5;
  options.expansion = 2;
  return nn::TinyLM(6, options);
}

// Logits, and the loss of training.
MakeCases tiny_lms(const nn::TinyLMOptions& options) {
  return [=](Cases& c) {
    const nn::TinyLM model = tiny_lm(options);
    c.check_layer(model, {c.ids({2, 3}, 6)});
    const Tensor target = c.ids({1, 5}, 6);
    c.check_layer(model, {c.ids({1, 5}, 6)},
                  [target](const auto& m, const Tensors& in) { return cross_entropy(m(in[0]), target); });
  };
}

void child_of_tiny_lm(Cases& c) { c.check_layer(tiny_lm({}).blocks(1), {c.normal({2, 3, 4})}); }

}  // namespace

Rows transformer_rows() {
  const std::string attention = layers("attention.cpp"), encoder = layers("encoder.cpp"),
                    decoder = layers("decoder.cpp"), transformer = layers("transformer.cpp"),
                    block = layers("block.cpp"), lm = layers("tiny_lm.cpp");
  return {
      {"CausalSelfAttention", "causal", attention, causal_self_attention(true)},
      {"CausalSelfAttention", "not causal", attention, causal_self_attention(false)},
      {"MultiHeadedAttention", "", attention, multi_headed_attention(0, false)},
      {"MultiHeadedAttention", "mask", attention, multi_headed_attention(0, true)},
      {"MultiHeadedAttention", "mask, dropout", attention, multi_headed_attention(0.3, true)},
      {"EncoderLayer", "pre", encoder, encoder_layers({.dropout = 0, .order = Order::pre})},
      {"EncoderLayer", "post", encoder, encoder_layers({.dropout = 0, .order = Order::post})},
      {"EncoderLayer", "pre, dropout", encoder, encoder_layers({.dropout = 0.3, .order = Order::pre})},
      {"Encoder", "pre", encoder, encoders({.dropout = 0, .order = Order::pre})},
      {"Encoder", "post", encoder, encoders({.dropout = 0, .order = Order::post})},
      {"DecoderLayer", "pre", decoder, decoder_layers({.dropout = 0, .order = Order::pre})},
      {"DecoderLayer", "post", decoder, decoder_layers({.dropout = 0, .order = Order::post})},
      {"DecoderLayer", "pre, dropout", decoder, decoder_layers({.dropout = 0.3, .order = Order::pre})},
      {"Decoder", "pre", decoder, decoders({.dropout = 0, .order = Order::pre})},
      {"Decoder", "post", decoder, decoders({.dropout = 0, .order = Order::post})},
      {"Generator", "", transformer, generator_cases},
      {"EncoderDecoder", "pre", transformer, encoder_decoder(Order::pre, 0)},
      {"EncoderDecoder", "post", transformer, encoder_decoder(Order::post, 0)},
      {"EncoderDecoder", "pre, dropout", transformer, encoder_decoder(Order::pre, 0.2)},
      {"Block", "standard norm, pre", block, blocks({})},
      {"Block", "standard norm, post", block, blocks({.order = Order::post})},
      {"Block", "unbiased norm, pre", block, blocks({.norm = Norm::unbiased})},
      {"Block", "unbiased norm, post", block, blocks({.norm = Norm::unbiased, .order = Order::post})},
      {"Block", "RMSNorm, pre", block, blocks({.norm = Norm::rms})},
      {"Block", "RMSNorm, post", block, blocks({.norm = Norm::rms, .order = Order::post})},
      {"Block", "no norm", block, blocks({.norm = Norm::none})},
      {"Block", "no residual", block, blocks({.use_residual = false})},
      {"Block", "no residual, no norm", block, blocks({.use_residual = false, .norm = Norm::none})},
      {"Block", "not causal", block, blocks({.causal = false})},
      {"Block", "dropout", block, blocks({.dropout = 0.3})},
      {"TinyLM", "pre", lm, tiny_lms({})},
      {"TinyLM", "post", lm, tiny_lms({.order = Order::post})},
      {"TinyLM", "tied head", lm, tiny_lms({.tie_head = true})},
      {"TinyLM", "unbiased norm", lm, tiny_lms({.norm = Norm::unbiased})},
      {"TinyLM", "no residual, no norm", lm, tiny_lms({.use_residual = false, .norm = Norm::none})},
      {"TinyLM", "dropout", lm, tiny_lms({.dropout = 0.2})},
      {"TinyLM", "its second block alone", lm, child_of_tiny_lm},
  };
}

}  // namespace prenorm::gradcheck_rows
