// Layers and their functions, from the generator up to TinyLM.

#include <string>
#include <vector>

#include "autograd/check.h"
#include "autograd/ops.h"
#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/norm.h"
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

// Masked scores become -1e9, as in the Annotated Transformer.
void attention_kind(Case& c) {
  const AttentionResult result =
      scaled_dot_product_attention(c.in("q"), c.in("k"), c.in("v"), c.optional_in("mask"), {.masked_score = -1e9});
  c.out("y", result.y);
  c.out("p", result.weights);
  c.backward();
}

// --- layers ----------------------------------------------------------------------------------------------------------

// Gives a layer the file's parameters, by name, and has its gradients compared with the file's.
template <class L>
const L& load(Case& c, const L& layer) {
  layer.to(float64);
  layer.load_state_dict(c.params());
  c.use_params(layer.parameters());
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

void causal_self_attention(Case& c) {
  y(c, load(c, nn::CausalSelfAttention(size_option(c, "d_model"), size_option(c, "h")))(c.in("x")));
}

void feed_forward_gelu(Case& c) {
  const std::int64_t d_model = size_option(c, "d_model");
  y(c, load(c, nn::FeedForward(d_model, size_option(c, "d_ff") / d_model))(c.in("x")));
}

void tiny_lm(Case& c) {
  const Tensor logits = load(c, make_tiny_lm(c.config()))(c.in("ids"));
  c.out("logits", logits);
  c.out("loss", cross_entropy(logits, c.in("targets")));
  c.backward();
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
      {"causal_self_attention", causal_self_attention},
      {"feed_forward_gelu", feed_forward_gelu},
      {"tiny_lm", tiny_lm},
  };
  return handlers;
}

}  // namespace prenorm::golden
