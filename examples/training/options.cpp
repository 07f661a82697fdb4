#include "training/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <vector>

#include "optim/checkpoint.h"
#include "training/data.h"

namespace prenorm::training {
namespace {

const std::map<std::string, nn::Norm> kNorms{{"unbiased", nn::Norm::unbiased},
                                             {"standard", nn::Norm::standard},
                                             {"rms", nn::Norm::rms},
                                             {"none", nn::Norm::none}};
const std::map<std::string, nn::Order> kOrders{{"pre", nn::Order::pre}, {"post", nn::Order::post}};

template <class T>
std::string key_of(const std::map<std::string, T>& names, T value) {
  for (const auto& [name, v] : names) {
    if (v == value) return name;
  }
  return "?";
}

// A number as the shortest text that reads back as the same number.
template <class T>
std::string number(T value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

template <class T>
void read_number(const std::string& name, const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size(), "checkpoint: its option ", name, " is '", text,
        "', which is no number");
}

template <class T>
void read_name(const std::string& name, const std::string& text, const std::map<std::string, T>& names, T& value) {
  const auto found = names.find(text);
  check(found != names.end(), "checkpoint: its option ", name, " is '", text, "', which is none of the choices");
  value = found->second;
}

// An option that a checkpoint keeps: how to write and read it, and whether a resumed run must agree.
struct Kept {
  std::string name;
  bool of_model;
  std::function<std::string(const Options&)> write;
  std::function<void(Options&, const std::string&)> read;
};

template <class T>
Kept kept(std::string name, bool of_model, T Options::*member) {
  return {name, of_model, [member](const Options& o) { return number(o.*member); },
          [name, member](Options& o, const std::string& text) { read_number(name, text, o.*member); }};
}

const std::vector<Kept>& kept_options() {
  static const std::vector<Kept> list{
      kept("depth", true, &Options::depth),
      kept("d-model", true, &Options::d_model),
      kept("heads", true, &Options::heads),
      kept("length", true, &Options::length),
      {"norm", true, [](const Options& o) { return key_of(kNorms, o.norm); },
       [](Options& o, const std::string& text) { read_name("norm", text, kNorms, o.norm); }},
      {"order", true, [](const Options& o) { return key_of(kOrders, o.order); },
       [](Options& o, const std::string& text) { read_name("order", text, kOrders, o.order); }},
      {"no-residual", true, [](const Options& o) { return std::string(o.residual ? "no" : "yes"); },
       [](Options& o, const std::string& text) { o.residual = text != "yes"; }},
      {"text", true, [](const Options& o) { return o.text.empty() ? "" : std::filesystem::absolute(o.text).string(); },
       [](Options& o, const std::string& text) { o.text = text; }},
      kept("batch", false, &Options::batch),
      kept("lr", false, &Options::lr),
      kept("warmup", false, &Options::warmup),
      kept("clip", false, &Options::clip),
      kept("seed", false, &Options::seed),
  };
  return list;
}

void declare(CLI::App& app, Options& o, bool& no_residual, bool& no_checkpoint) {
  const auto at_least_1 = CLI::Range(std::int64_t{1}, std::int64_t{1} << 30);
  const auto at_least_0 = CLI::Range(std::int64_t{0}, std::int64_t{1} << 40);
  app.add_option("--text", o.text, "Train on the bytes of this file instead of the rule next = (current + 1) mod 50");
  app.add_option("--steps", o.steps, "Steps in all, those before a resume included (rule: 300, text: 2000)")
      ->check(at_least_0);
  app.add_option("--batch", o.batch, "Sequences a step (rule: 32, text: 16)")->check(at_least_1);
  app.add_option("--length", o.length, "Tokens a sequence (rule: 32, text: 64)")->check(at_least_1);
  app.add_option("--lr", o.lr, "Learning rate of Adam (rule: 3e-4, text: 1e-3)")->check(CLI::Range(0.0, 1e6));
  app.add_option("--warmup", o.warmup, "Steps over which the learning rate rises to its value (rule: 0, text: 100)")
      ->check(at_least_0);
  app.add_option("--clip", o.clip, "Clip the gradient's norm to this (0: no clipping)")
      ->check(CLI::Range(0.0, 1e30))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Seed of weights and batches")->capture_default_str();
  app.add_option("--threads", o.threads, "Threads (default: one a processor)")->check(CLI::Range(1, 1024));
  const std::string model = "Model";
  app.add_option("--depth", o.depth, "Blocks (rule: 8, text: 4)")->check(at_least_0)->group(model);
  app.add_option("--d-model", o.d_model, "Features (rule: 64, text: 128)")->check(at_least_1)->group(model);
  app.add_option("--heads", o.heads, "Attention heads; d-model is a multiple")
      ->check(at_least_1)
      ->capture_default_str()
      ->group(model);
  app.add_option("--norm", o.norm, "Norm: unbiased, standard, rms or none (default: standard)")
      ->transform(CLI::Transformer(kNorms).description(""))
      ->check(CLI::IsMember(kNorms).description(""))
      ->group(model);
  app.add_option("--order", o.order, "Norm before (pre) or after (post) each branch (default: pre)")
      ->transform(CLI::Transformer(kOrders).description(""))
      ->check(CLI::IsMember(kOrders).description(""))
      ->group(model);
  app.add_flag("--no-residual", no_residual, "Without residual connections")->group(model);
  const std::string files = "Files";
  app.add_option("--checkpoint", o.checkpoint,
                 "Checkpoint to write (default: next_token.safetensors, or the resumed file)")
      ->group(files);
  app.add_option("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints")
      ->check(at_least_1)
      ->capture_default_str()
      ->group(files);
  app.add_flag("--no-checkpoint", no_checkpoint, "Write no checkpoint")->group(files);
  app.add_option("--resume", o.resume, "Go on from this checkpoint, with its options, to --steps in all")->group(files);
  app.add_option("--log", o.log, "CSV file with a row a step: step,loss,grad_norm,tokens_per_s")->group(files);
  const std::string samples = "Samples, with --text";
  app.add_option("--prompt", o.prompt, "What the samples go on from (default: the held-out part's beginning)")
      ->group(samples);
  app.add_option("--temperature", o.temperature, "Below 1 keeps to likely bytes, 0 takes the likeliest")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->group(samples);
}

void set_text_defaults(Options& o) {
  o.depth = 4;
  o.d_model = 128;
  o.length = 64;
  o.batch = 16;
  o.lr = 1e-3;
  o.warmup = 100;
  o.steps = 2000;
}

// Options that were not given take what the checkpoint keeps; those of the model may not differ from it.
void merge(const SafetensorsMetadata& metadata, const CLI::App& app, Options& o) {
  for (const Kept& option : kept_options()) {
    const auto found = metadata.find("option." + option.name);
    check(found != metadata.end(), o.resume, ": no checkpoint of next_token: it keeps no option ", option.name);
    const bool given = app.count("--" + option.name) > 0;
    if (!given) {
      option.read(o, found->second);
      continue;
    }
    check(!option.of_model || option.write(o) == found->second, "--", option.name, " ", option.write(o),
          " does not agree with the checkpoint ", o.resume, ", which was trained with ",
          found->second.empty() ? "the rule" : found->second, "; leave it out");
  }
}

}  // namespace

nn::TinyLMOptions Options::model() const {
  return {.d_model = d_model,
          .n_heads = heads,
          .n_layers = depth,
          .max_len = std::max<std::int64_t>(64, length),
          .use_residual = residual,
          .norm = norm,
          .order = order};
}

std::int64_t Options::vocab() const { return text.empty() ? Rule::kVocab : Text::kVocab; }

SafetensorsMetadata to_metadata(const Options& options) {
  SafetensorsMetadata metadata;
  for (const Kept& option : kept_options()) metadata["option." + option.name] = option.write(options);
  return metadata;
}

Parsed parse(int argc, char** argv) {
  // A first pass finds out whether this is about text, since that decides the defaults of the second.
  Parsed parsed;
  for (const bool first : {true, false}) {
    Options o;
    bool no_residual = false, no_checkpoint = false;
    if (!first && !parsed.options.text.empty()) set_text_defaults(o);
    CLI::App app(
        "Trains TinyLM, a small Transformer, to predict the next token; prints a continuation at the end.\n"
        "Without options it learns the rule next = (current + 1) mod 50. Ctrl-C stops after saving.",
        "next_token");
    app.get_formatter()->column_width(34);
    declare(app, o, no_residual, no_checkpoint);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& help) {
      app.exit(help);
      parsed.exit_code = 0;
      return parsed;
    } catch (const CLI::ParseError& error) {
      std::cerr << "next_token: " << error.what() << "; --help lists the options\n";
      parsed.exit_code = 2;
      return parsed;
    }
    o.residual = !no_residual;
    o.save = !no_checkpoint;
    if (!o.resume.empty()) {
      if (first) parsed.resumed = optim::read_checkpoint(o.resume).metadata;
      merge(*parsed.resumed, app, o);
      if (app.count("--checkpoint") == 0) o.checkpoint = o.resume;
    }
    check(o.text.empty() ? app.count("--prompt") == 0 : true, "--prompt goes with --text");
    check(app.count("--text") == 0 || !o.text.empty(), "--text needs the path of a file");
    check(o.d_model % o.heads == 0, "--d-model ", o.d_model, " cannot be cut into --heads ", o.heads, " of equal size");
    check(o.norm != nn::Norm::unbiased || o.d_model > 1, "--norm unbiased needs a --d-model of at least 2");
    parsed.options = o;
  }
  return parsed;
}

}  // namespace prenorm::training
