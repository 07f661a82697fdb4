// Trains TinyLM on the tiny next-token task, or on the bytes of a text, and shows what it learned.
//
//   next_token                          the rule next = (current + 1) mod 50
//   next_token --text FILE              any text, byte by byte
//   next_token --resume FILE            goes on from a checkpoint, bit for bit

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/checkpoint.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "training/data.h"
#include "training/generate.h"
#include "training/options.h"
#include "training/progress.h"

using namespace prenorm;
using namespace prenorm::training;

namespace {

volatile std::sig_atomic_t stop_signal = 0;

void watch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { stop_signal = signal; };
  action.sa_flags = SA_RESETHAND;  // a second Ctrl-C ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// A run of training: the model, and all that changes while it learns.
class Run {
 public:
  explicit Run(const Options& options)
      : o_(options), model_(seeded_model(options)), adam_(model_.parameters(), {.lr = options.lr}) {
    if (!o_.text.empty()) text_.emplace(o_.text, o_.length);
  }

  void resume(const std::string& path);
  // Opens what training writes to, and writes the first checkpoint.
  void prepare();
  // Trains up to o_.steps in all, or until a signal.
  void train();
  void show_result() const;

 private:
  static nn::TinyLM seeded_model(const Options& options) {
    manual_seed(options.seed);
    return nn::TinyLM(options.vocab(), options.model());
  }
  StepReport step();
  void save();
  void show_rule() const;
  void show_text() const;
  double held_out_loss() const;

  Options o_;
  nn::TinyLM model_;
  optim::Adam adam_;
  std::optional<Text> text_;  // absent for the rule
  std::int64_t done_ = 0;     // steps
  Log log_;
};

void Run::resume(const std::string& path) {
  const optim::Checkpoint checkpoint = optim::read_checkpoint(path);
  const auto kept = [&](const std::string& key) {
    const auto found = checkpoint.metadata.find(key);
    check(found != checkpoint.metadata.end(), path, ": no checkpoint of next_token: it keeps no ", key);
    return found->second;
  };
  if (text_) {
    check(kept("text.fingerprint") == text_->fingerprint(), o_.text, ": not the text that ", path,
          " was trained on: ", text_->fingerprint(), " against ", kept("text.fingerprint"));
  }
  const std::string steps = kept("step");
  check(!steps.empty() && steps.size() < 16 && steps.find_first_not_of("0123456789") == std::string::npos, path,
        ": its step is '", steps, "'");
  restore_checkpoint(checkpoint, model_.state_dict(), adam_, default_generator());
  done_ = std::stoll(steps);
}

void Run::save() {
  if (!o_.save) return;
  SafetensorsMetadata metadata = to_metadata(o_);
  metadata["step"] = std::to_string(done_);
  if (text_) metadata["text.fingerprint"] = text_->fingerprint();
  optim::save_checkpoint(o_.checkpoint, model_.state_dict(), adam_, default_generator(), metadata);
}

StepReport Run::step() {
  const Batch batch = !text_ ? Rule::batch(o_.batch, o_.length) : text_->batch(o_.batch, o_.length);
  const Tensor loss = cross_entropy(model_(batch.ids), batch.targets);
  adam_.zero_grad();
  loss.backward();
  const NamedTensors parameters = adam_.parameters();
  const double norm = o_.clip > 0 ? optim::clip_grad_norm_(parameters, o_.clip) : optim::grad_norm(parameters);
  adam_.set_lr_factor(optim::linear_warmup(done_ + 1, o_.warmup));
  adam_.step();
  return {++done_, loss.item(), norm, o_.batch * o_.length};
}

void Run::prepare() {
  if (!o_.log.empty()) log_ = Log(o_.log, done_);
  if (done_ > 0 || !o_.save) return;
  if (o_.resume.empty() && std::filesystem::is_regular_file(o_.checkpoint)) {
    const std::string old = o_.checkpoint + ".old";
    std::filesystem::rename(o_.checkpoint, old);
    std::printf("kept the earlier %s as %s\n", o_.checkpoint.c_str(), old.c_str());
  }
  save();
}

void Run::train() {
  std::printf("TinyLM: %lld parameters, %s, %d thread%s\n", static_cast<long long>(model_.parameter_count()),
              !text_ ? "rule next = (current + 1) mod 50"
                     : (std::to_string(text_->training_bytes()) + " bytes to train on, " +
                        std::to_string(text_->held_out_bytes()) + " held out")
                           .c_str(),
              num_threads(), num_threads() == 1 ? "" : "s");
  if (done_ > 0) std::printf("going on after step %lld\n", static_cast<long long>(done_));
  if (done_ >= o_.steps) return;
  Progress progress(done_ + 1, o_.steps);
  while (done_ < o_.steps && stop_signal == 0) {
    const StepReport report = step();
    log_.row(report, progress.report(report));
    if (done_ % o_.checkpoint_every == 0 && done_ < o_.steps) save();
  }
  progress.finish();
  save();
  std::printf("trained in %.1f s; tensors took at most %.0f MiB%s\n", progress.seconds(),
              static_cast<double>(memory::stats().peak) / (1 << 20),
              o_.save ? ("; saved " + o_.checkpoint).c_str() : "");
}

void Run::show_result() const {
  model_.eval();
  text_ ? show_text() : show_rule();
}

// A continuation that can be checked by eye, and is.
void Run::show_rule() const {
  constexpr std::int64_t kCount = 50, kStart = 7;
  const std::vector<std::int64_t> tokens = generate(model_, {kStart}, kCount, o_.length, 0);
  std::int64_t previous = kStart, right = 0;
  std::printf("%lld ->", static_cast<long long>(kStart));
  for (std::int64_t token : tokens) {
    std::printf(" %lld", static_cast<long long>(token));
    right += token == (previous + 1) % Rule::kVocab;
    previous = token;
  }
  std::printf("\n%lld of %lld right\n", static_cast<long long>(right), static_cast<long long>(kCount));
}

double Run::held_out_loss() const {
  const NoGrad no_grad;
  double total = 0, count = 0;
  for (const Batch& batch : text_->held_out(o_.batch, o_.length)) {
    total += cross_entropy(model_(batch.ids), batch.targets, {.reduction = Reduction::sum}).item();
    count += static_cast<double>(batch.targets.numel());
  }
  return total / count;
}

void Run::show_text() const {
  std::printf("held-out loss %.4f nats a byte; a table of byte pairs has %.4f\n", held_out_loss(),
              text_->pair_table_loss());
  std::vector<std::int64_t> prompt;
  if (o_.prompt.empty()) {
    const Tensor window = text_->held_out(1, o_.length).front().ids;
    prompt = window.to_vector<std::int64_t>();
  } else {
    for (unsigned char c : o_.prompt) prompt.push_back(c);
  }
  constexpr int kSamples = 3;
  constexpr std::int64_t kBytes = 300;
  for (int sample = 1; sample <= kSamples; ++sample) {
    std::printf("--- sample %d, temperature %g\n", sample, o_.temperature);
    for (std::int64_t c : prompt) std::putchar(static_cast<int>(c));
    std::printf("|");
    for (std::int64_t c : generate(model_, prompt, kBytes, o_.length, o_.temperature))
      std::putchar(static_cast<int>(c));
    std::printf("\n");
  }
}

int fail_with(int code, const std::exception& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "next_token: %s\n", error.what());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Run> run;
  Options options;
  try {
    const Parsed parsed = parse(argc, argv);
    if (parsed.exit_code) return *parsed.exit_code;
    options = parsed.options;
    if (options.threads > 0) set_num_threads(options.threads);
    run.emplace(options);
    if (!options.resume.empty()) run->resume(options.resume);
    watch_signals();
    run->prepare();
  } catch (const std::exception& error) {
    return fail_with(2, error);
  }
  try {
    run->train();
    if (stop_signal != 0) {
      std::printf("stopped%s\n", options.save ? ("; go on with --resume " + options.checkpoint).c_str() : "");
      return 128 + stop_signal;
    }
    run->show_result();
  } catch (const std::exception& error) {
    return fail_with(1, error);
  }
  return 0;
}
