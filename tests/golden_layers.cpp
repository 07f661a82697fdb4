// Layers and their functions, from the generator up to TinyLM.

#include <string>
#include <vector>

#include "autograd/check.h"
#include "autograd/ops.h"
#include "nn/attention.h"
#include "nn/batch_norm.h"
#include "nn/decoder.h"
#include "nn/embedding.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/norm.h"
#include "nn/residual.h"
#include "nn/transformer.h"
#include "tests/golden_case.h"

namespace prenorm::golden {
namespace {

template <class T>
T option(const Case& c, const char* name) {
  return c.config().at(name).get<T>();
}

std::int64_t size_option(const Case& c, const char* name) { return option<std::int64_t>(c, name); }

void y(Case& c, const Tensor& got) {
  c.out("y", got);
  c.backward();
}

// --- random numbers --------------------------------------------------------------------------------------------------

void rng(Case& c) {
  manual_seed(option<std::uint64_t>(c, "seed"));
  std::size_t number = 0;
  for (const Json& call : c.config().at("calls")) {
    const auto op = call.at("op").get<std::string>();
    const Shape size = to_shape(call.at("size"));
    const DType dtype = call.at("dtype") == "F64" ? float64 : float32;
    // Integers and uniforms are exact. Float64 normals agree far better than the file's tolerance, made for float32.
    const double normal_tolerance = dtype == float64 ? 1e-14 : c.tolerance();
    const std::string name = std::to_string(number++);
    if (op == "rand") {
      c.out(name, rand(size, {.dtype = dtype}), 0);
    } else if (op == "uniform") {
      c.out(name, uniform(size, call.at("low"), call.at("high"), {.dtype = dtype}), 0);
    } else if (op == "randn") {
      c.out(name, randn(size, {.dtype = dtype}), normal_tolerance);
    } else if (op == "normal") {
      c.out(name, normal(size, call.at("mean"), call.at("std"), {.dtype = dtype}), normal_tolerance);
    } else if (op == "randint") {
      c.out(name, randint(call.at("low"), call.at("high"), size), 0);
    } else if (op == "randperm") {
      c.out(name, randperm(size[0]), 0);
    } else {
      fail("unknown call ", op);
    }
  }
}

void init(Case& c) {
  manual_seed(option<std::uint64_t>(c, "seed"));
  std::size_t number = 0;
  for (const Json& module : c.config().at("modules")) {
    const auto type = module.at("type").get<std::string>();
    const std::string name = std::to_string(number++);
    if (type == "Linear") {
      const nn::Linear linear(module.at("in_features"), module.at("out_features"), {.bias = module.at("bias")});
      c.out(name + ".weight", linear.weight(), 0);
      if (linear.bias().defined()) c.out(name + ".bias", linear.bias(), 0);
    } else if (type == "Embedding") {
      c.out(name + ".weight", nn::Embedding(module.at("num_embeddings"), module.at("embedding_dim")).weight());
    } else if (type == "xavier_uniform_") {
      const Tensor weight = Tensor::empty(to_shape(module.at("size")));
      nn::xavier_uniform_(weight, module.at("gain"));
      c.out(name + ".weight", weight, 0);
    } else {
      fail("unknown module ", type);
    }
  }
}

// --- functions -------------------------------------------------------------------------------------------------------

void layer_norm_kind(Case& c) {
  const Shape normalized_shape = to_shape(c.config().at("normalized_shape"));
  y(c, layer_norm(c.in("x"), normalized_shape, c.optional_param("weight"), c.optional_param("bias"),
                  option<double>(c, "eps")));
}

void gelu_kind(Case& c) {
  y(c, gelu(c.in("x"), option<std::string>(c, "approximate") == "tanh" ? Gelu::tanh : Gelu::exact));
}

void cross_entropy_kind(Case& c) {
  const auto reduction = option<std::string>(c, "reduction");
  CrossEntropyOptions options;
  options.reduction = reduction == "none" ? Reduction::none : reduction == "sum" ? Reduction::sum : Reduction::mean;
  if (!c.config().at("ignore_index").is_null()) options.ignore_index = size_option(c, "ignore_index");
  options.label_smoothing = option<double>(c, "label_smoothing");
  c.out("loss", cross_entropy(c.in("logits"), c.in("target"), options));
  c.backward();
}

void label_smoothing_kl(Case& c) {
  const std::int64_t padding_idx = size_option(c, "padding_idx");
  const auto smoothing = option<double>(c, "smoothing");
  c.out("true_dist", nn::smoothed_targets(c.in("target"), size_option(c, "size"), padding_idx, smoothing, float64));
  c.out("loss", nn::label_smoothing_loss(c.in("x"), c.in("target"), padding_idx, smoothing));
  c.backward();
}

// Masked scores become -1e9, as in the Annotated Transformer.
void attention_kind(Case& c) {
  const AttentionResult result =
      scaled_dot_product_attention(c.in("q"), c.in("k"), c.in("v"), c.optional_in("mask"), {.masked_score = -1e9});
  c.out("y", result.y);
  c.out("p", result.weights);
  c.backward();
}

// --- layers ----------------------------------------------------------------------------------------------------------

// Gives a layer the file's parameters whose names begin with `prefix`, has its gradients compared with the file's, and
// gives it the buffers. Strict: names must be the same on both sides.
template <class L>
const L& load(Case& c, const L& layer, const std::string& prefix = "", const NamedTensors& buffers = {}) {
  NamedTensors values = buffers;
  for (const auto& [path, tensor] : c.params()) {
    if (path.starts_with(prefix)) values.push_back({path.substr(prefix.size()), tensor});
  }
  // A module converted to float64 keeps a position table rounded to float32; the files have it in full.
  for (const auto& [path, pe] : layer.buffers()) {
    if (path.ends_with("pe")) values.push_back({path, nn::PositionalEncoding::table(pe.size(1), pe.size(2), float64)});
  }
  layer.to(float64);
  layer.load_state_dict(values);
  NamedTensors loaded = layer.parameters();
  for (NamedTensor& named : loaded) named.path.insert(0, prefix);
  c.use_params(loaded);
  return layer;
}

void layer_norm_std_kind(Case& c) {
  y(c, load(c, nn::LayerNorm(c.in("x").size(-1), {.eps = option<double>(c, "eps")}))(c.in("x")));
}

void rms_norm_kind(Case& c) {
  y(c, load(c, nn::RMSNorm(c.in("x").size(-1), {.eps = option<double>(c, "eps")}))(c.in("x")));
}

void linear_kind(Case& c) {
  const nn::Linear linear(size_option(c, "in_features"), size_option(c, "out_features"),
                          {.bias = option<bool>(c, "bias")});
  y(c, load(c, linear)(c.in("x")));
}

void embedding_kind(Case& c) {
  y(c, load(c, nn::Embedding(size_option(c, "num_embeddings"), size_option(c, "embedding_dim")))(c.in("ids")));
}

void batch_norm_kind(Case& c) {
  const nn::BatchNorm1d norm(c.in("x_1").size(1), {.eps = option<double>(c, "eps"),
                                                   .momentum = option<double>(c, "momentum"),
                                                   .affine = option<bool>(c, "affine")});
  load(c, norm, "", {{"running_mean", c.in("running_mean")}, {"running_var", c.in("running_var")}});
  c.out("y_1", norm(c.in("x_1")));
  c.out("y_2", norm(c.in("x_2")));
  for (const auto& [path, statistic] : norm.buffers()) c.out(path, statistic);
  norm.eval();
  c.out("y_eval", norm(c.in("x_eval")));
  c.backward();
}

void embeddings(Case& c) {
  y(c, load(c, nn::Embeddings(size_option(c, "d_model"), size_option(c, "vocab")))(c.in("ids")));
}

void positional_encoding(Case& c) {
  const std::int64_t d_model = size_option(c, "d_model"), max_len = size_option(c, "max_len");
  c.out("rows", embedding(c.in("positions"), select(nn::PositionalEncoding::table(max_len, d_model, float64), 0, 0)));
  y(c, load(c, nn::PositionalEncoding(d_model, 0, max_len))(c.in("x")));
}

void causal_self_attention(Case& c) {
  y(c, load(c, nn::CausalSelfAttention(size_option(c, "d_model"), size_option(c, "h")))(c.in("x")));
}

void feed_forward_gelu(Case& c) {
  const std::int64_t d_model = size_option(c, "d_model");
  y(c, load(c, nn::FeedForward(d_model, size_option(c, "d_ff") / d_model))(c.in("x")));
}

nn::PositionwiseFeedForward make_feed_forward(const Case& c) {
  return {size_option(c, "d_model"), size_option(c, "d_ff"), 0};
}

nn::MultiHeadedAttention make_attention(const Case& c) { return {size_option(c, "h"), size_option(c, "d_model"), 0}; }

nn::EncoderLayer make_encoder_layer(const Case& c) {
  return {size_option(c, "d_model"), make_attention(c), make_feed_forward(c), {.dropout = 0}};
}

void multi_headed_attention(Case& c) {
  y(c, load(c, make_attention(c))(c.in("query"), c.in("key"), c.in("value"), c.optional_in("mask")));
}

void sublayer_connection(Case& c) {
  const nn::Order order = option<bool>(c, "norm_first") ? nn::Order::pre : nn::Order::post;
  const nn::SublayerConnection connection(size_option(c, "d_model"), {.dropout = 0, .order = order});
  const nn::PositionwiseFeedForward sublayer = make_feed_forward(c);
  load(c, sublayer, "sublayer.");
  // The connection's own parameters are its norm's.
  load(c, connection.at("norm"), "norm.");
  y(c, connection(c.in("x"), sublayer));
}

void encoder_layer(Case& c) { y(c, load(c, make_encoder_layer(c))(c.in("x"), c.optional_in("mask"))); }

void encoder(Case& c) {
  y(c, load(c, nn::Encoder(make_encoder_layer(c), size_option(c, "n_layers")))(c.in("x"), c.optional_in("mask")));
}

void decoder_layer(Case& c) {
  const nn::DecoderLayer layer(size_option(c, "d_model"), make_attention(c), make_attention(c), make_feed_forward(c),
                               {.dropout = 0});
  y(c, load(c, layer)(c.in("x"), c.in("memory"), c.in("src_mask"), c.in("tgt_mask")));
}

void encoder_decoder(Case& c) {
  const nn::EncoderDecoder model = nn::make_model(size_option(c, "src_vocab"), size_option(c, "tgt_vocab"),
                                                  {.N = size_option(c, "n_layers"),
                                                   .d_model = size_option(c, "d_model"),
                                                   .d_ff = size_option(c, "d_ff"),
                                                   .h = size_option(c, "h"),
                                                   .dropout = 0});
  load(c, model);
  c.out("memory", model.encode(c.in("src"), c.in("src_mask")));
  c.out("log_probs", model.generator()(model(c.in("src"), c.in("tgt"), c.in("src_mask"), c.in("tgt_mask"))));
  c.backward();
}

void tiny_lm(Case& c) {
  const Tensor logits = load(c, make_tiny_lm(c.config()))(c.in("ids"));
  c.out("logits", logits);
  c.out("loss", cross_entropy(logits, c.in("targets")));
  c.backward();
}

// --- demonstrations: all from a seed ---------------------------------------------------------------------------------

void layer_norm_demo(Case& c) {
  const Tensor x =
      randn(to_shape(c.config().at("shape"))) * option<double>(c, "scale_by") + option<double>(c, "offset");
  const Tensor normalised = nn::LayerNorm(x.size(-1))(x);
  c.out("y", normalised);
  c.out("x_mean", mean(x, {-1}));
  c.out("x_std", std(x, {-1}));
  c.out("y_mean", mean(normalised, {-1}));
  c.out("y_std", std(normalised, {-1}));
}

void residual_stack_demo(Case& c) {
  std::vector<nn::PositionwiseFeedForward> layers;
  for (std::int64_t i = 0; i < size_option(c, "depth"); ++i) layers.push_back(make_feed_forward(c));
  std::vector<nn::SublayerConnection> connections;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    connections.emplace_back(size_option(c, "d_model"), nn::SublayerConnectionOptions{.dropout = 0});
  }
  Tensor plain = randn({size_option(c, "batch"), size_option(c, "t"), size_option(c, "d_model")});
  Tensor residual = plain;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    plain = layers[i](plain);
    residual = connections[i](residual, layers[i]);
  }
  c.out("plain", plain);
  c.out("residual", residual);
  c.out("plain_std", std(plain));
  c.out("residual_std", std(residual));
}

void encoder_demo(Case& c) {
  const nn::Encoder model(make_encoder_layer(c), size_option(c, "n_layers"));
  check(model.parameter_count() == size_option(c, "num_parameters"), "the encoder has ", model.parameter_count(),
        " parameters");
  const std::int64_t batch = size_option(c, "batch"), t = size_option(c, "t");
  const Tensor x = randn({batch, t, size_option(c, "d_model")});
  const auto lengths = option<std::vector<std::int64_t>>(c, "lengths");
  const Tensor mask = lt(arange(static_cast<double>(t)), Tensor::of(lengths, {batch, 1, 1}, {.dtype = int64}));
  c.out("y_token0", select(model(x, mask), 1, 0));
}

void seed_demo(Case& c) {
  manual_seed(option<std::uint64_t>(c, "seed"));
  const auto demo = option<std::string>(c, "demo");
  if (demo == "layer_norm") return layer_norm_demo(c);
  if (demo == "residual_stack") return residual_stack_demo(c);
  check(demo == "encoder", "unknown demonstration ", demo);
  encoder_demo(c);
}

}  // namespace

nn::TinyLM make_tiny_lm(const Json& config) {
  const auto d_model = config.at("d_model").get<std::int64_t>();
  return nn::TinyLM(config.at("vocab").get<std::int64_t>(),
                    {.d_model = d_model,
                     .n_heads = config.at("h"),
                     .n_layers = config.at("n_layers"),
                     .max_len = config.at("max_len"),
                     .expansion = config.at("d_ff").get<std::int64_t>() / d_model,
                     .use_residual = config.at("use_residual"),
                     .norm = config.at("use_norm") ? nn::Norm::standard : nn::Norm::none});
}

const Handlers& layer_handlers() {
  static const Handlers handlers = {
      {"rng", rng},
      {"init", init},
      {"layer_norm_std", layer_norm_std_kind},
      {"layer_norm", layer_norm_kind},
      {"rms_norm", rms_norm_kind},
      {"linear", linear_kind},
      {"embedding", embedding_kind},
      {"gelu", gelu_kind},
      {"relu", [](Case& c) { y(c, relu(c.in("x"))); }},
      {"softmax", [](Case& c) { y(c, softmax(c.in("x"), size_option(c, "dim"))); }},
      {"log_softmax", [](Case& c) { y(c, log_softmax(c.in("x"), size_option(c, "dim"))); }},
      {"cross_entropy", cross_entropy_kind},
      {"attention", attention_kind},
      {"batch_norm", batch_norm_kind},
      {"label_smoothing_kl", label_smoothing_kl},
      {"embeddings", embeddings},
      {"positional_encoding", positional_encoding},
      {"positionwise_feed_forward", [](Case& c) { y(c, load(c, make_feed_forward(c))(c.in("x"))); }},
      {"multi_headed_attention", multi_headed_attention},
      {"sublayer_connection", sublayer_connection},
      {"encoder_layer", encoder_layer},
      {"encoder", encoder},
      {"decoder_layer", decoder_layer},
      {"encoder_decoder", encoder_decoder},
      {"seed_demo", seed_demo},
      {"causal_self_attention", causal_self_attention},
      {"feed_forward_gelu", feed_forward_gelu},
      {"tiny_lm", tiny_lm},
  };
  return handlers;
}

}  // namespace prenorm::golden
