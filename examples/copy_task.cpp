// The whole encoder-decoder Transformer learns to copy: from a sequence of ten numbers to the same sequence. As in the
// Annotated Transformer ("A First Example"), with label smoothing and its learning-rate schedule, but a smaller model.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <vector>

#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/random.h"
#include "nn/transformer.h"
#include "optim/adam.h"
#include "optim/schedule.h"

using namespace prenorm;

namespace {

constexpr std::int64_t kVocab = 11, kPad = 0, kStart = 1;  // sequences hold 1 to 10
constexpr std::int64_t kLength = 10;

constexpr std::int64_t kLayers = 2, kDModel = 64, kDFf = 256, kHeads = 4;
constexpr std::int64_t kBatch = 80, kWarmup = 100;
constexpr double kSmoothing = 0.1;

struct Options {
  std::int64_t steps = 400;
  std::uint64_t seed = 0;
  int threads = 0;  // 0: all processors
};

// int64 [n, kLength]: random numbers from 1 to 10, the first one always the start symbol.
Tensor random_sequences(std::int64_t n) {
  return concat({full({n, 1}, kStart, int64), randint(1, kVocab, {n, kLength - 1})}, 1);
}

// bool [B, 1, S]: which positions of the source hold something.
Tensor source_mask(const Tensor& src) { return unsqueeze(ne(src, full({1}, kPad, int64)), 1); }

class CopyTask {
 public:
  CopyTask()
      : model_(nn::make_model(kVocab, kVocab,
                              {.N = kLayers, .d_model = kDModel, .d_ff = kDFf, .h = kHeads, .max_len = kLength})),
        adam_(model_.parameters(), {.lr = 1, .beta2 = 0.98, .eps = 1e-9}) {}

  std::int64_t parameter_count() const { return model_.parameter_count(); }

  // One update; the loss, in nats a token, before it.
  double step(std::int64_t number) {
    const Tensor src = random_sequences(kBatch);
    // The decoder reads a token and predicts the next.
    const Tensor read = slice(src, 1, 0, kLength - 1), next = slice(src, 1, 1, kLength);
    const Tensor out = model_(src, read, source_mask(src), nn::subsequent_mask(kLength - 1));
    const Tensor log_probs = reshape(model_.generator()(out), {next.numel(), kVocab});
    const Tensor loss = nn::label_smoothing_loss(log_probs, reshape(next, {next.numel()}), kPad, kSmoothing) /
                        static_cast<double>(next.numel());
    adam_.zero_grad();
    loss.backward();
    adam_.set_lr_factor(optim::noam(number, kDModel, kWarmup));
    adam_.step();
    return loss.item();
  }

  // What the model makes of sources [n, kLength]: token by token, always the likeliest.
  Tensor greedy_decode(const Tensor& src) const {
    const NoGrad no_grad;
    model_.eval();
    const Tensor mask = source_mask(src);
    const Tensor memory = model_.encode(src, mask);
    Tensor tokens = full({src.size(0), 1}, kStart, int64);
    while (tokens.size(1) < kLength) {
      const Tensor out = model_.decode(memory, mask, tokens, nn::subsequent_mask(tokens.size(1)));
      const Tensor log_probs = model_.generator()(select(out, 1, -1));
      tokens = concat({tokens, argmax(log_probs, -1, true)}, 1);
    }
    model_.train();
    return tokens;
  }

 private:
  nn::EncoderDecoder model_;
  optim::Adam adam_;
};

void train(CopyTask& task, std::int64_t steps) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t line_every = std::max<std::int64_t>(1, steps / 10);
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double loss = task.step(step);
    if (!terminal && step % line_every != 0 && step != 1 && step != steps) continue;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%sstep %lld/%lld  loss %.4f  learning rate %.5f  %.0fs left%s", terminal ? "\r\033[K" : "",
                static_cast<long long>(step), static_cast<long long>(steps), loss, optim::noam(step, kDModel, kWarmup),
                seconds / static_cast<double>(step) * static_cast<double>(steps - step), terminal ? "" : "\n");
    std::fflush(stdout);
  }
  if (terminal) std::printf("\n");
}

// Whether everything was copied.
bool show_copies(const CopyTask& task) {
  constexpr std::int64_t kRandom = 20;
  const Tensor src = concat({reshape(arange(1, kLength + 1), {1, kLength}), random_sequences(kRandom)}, 0);
  const Tensor copies = task.greedy_decode(src);
  int right = 0;
  for (std::int64_t i = 0; i < src.size(0); ++i) {
    const auto given = select(src, 0, i).to_vector<std::int64_t>(),
               got = select(copies, 0, i).to_vector<std::int64_t>();
    const auto print = [](const std::vector<std::int64_t>& tokens) {
      for (std::int64_t token : tokens) std::printf(" %2lld", static_cast<long long>(token));
    };
    print(given);
    std::printf("   ->  ");
    print(got);
    std::printf("   %s\n", given == got ? "right" : "WRONG");
    right += given == got ? 1 : 0;
  }
  std::printf("%d of %lld right\n", right, static_cast<long long>(src.size(0)));
  return right == src.size(0);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Trains an encoder-decoder Transformer to copy sequences of ten numbers, then lets it copy 1 to 10\n"
      "and 20 random sequences. Exits with 1 if it gets one wrong.",
      "copy_task");
  app.get_formatter()->column_width(20);
  const auto at_least_1 = CLI::Range(std::int64_t{1}, std::int64_t{1} << 30).description("");
  app.add_option("--steps", o.steps, "Steps (400)")->check(at_least_1)->type_name("N");
  app.add_option("--seed", o.seed, "Seed of the weights, sequences and dropout (0)")->type_name("N");
  app.add_option("--threads", o.threads, "Threads (all)")->check(CLI::Range(1, 1024).description(""))->type_name("N");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "copy_task: " << error.what() << "; --help lists the options\n";
    return 2;
  }
  try {
    if (o.threads > 0) set_num_threads(o.threads);
    manual_seed(o.seed);
    CopyTask task;
    std::printf("encoder-decoder of %lld layers each: %lld parameters, %d thread%s\n", static_cast<long long>(kLayers),
                static_cast<long long>(task.parameter_count()), num_threads(), num_threads() == 1 ? "" : "s");
    train(task, o.steps);
    const bool all_right = show_copies(task);
    check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "the output cannot be written");
    return all_right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::cerr << "copy_task: " << error.what() << '\n';
    return 1;
  }
}
