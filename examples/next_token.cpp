// Trains TinyLM on the tiny next-token task, or on the bytes of a text, and shows what it learned.
//
//   next_token                          the rule next = (current + 1) mod 50
//   next_token --text FILE              any text, byte by byte
//   next_token --resume FILE            goes on from a checkpoint, bit for bit
//   mpirun -n 2 next_token …            the same on two ranks, in a build with MPI

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/atomic_file.h"
#include "autograd/nan_check.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "nn/tiny_lm.h"
#include "optim/adam.h"
#include "optim/checkpoint.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "training/data.h"
#include "training/failure.h"
#include "training/generate.h"
#include "training/options.h"
#include "training/progress.h"
#include "training/report.h"
#include "training/stop.h"
#include "training/team.h"
#include "training/watch.h"

using namespace prenorm;
using namespace prenorm::training;

namespace {

// A run of training: the model, and all that changes while it learns. Every rank of the team has one, with the same
// options, weights and generator: each draws whole batches, and learns from its own rows.
class Run {
 public:
  Run(const Options& options, Team& team)
      : o_(options),
        team_(team),
        text_(text_of(options, team)),
        model_(seeded_model(options)),
        adam_(model_.parameters(), {.lr = o_.lr}) {}

  // The leader's affair.
  void resume(const optim::Checkpoint& checkpoint);
  // The other ranks take over the leader's state.
  void join();
  // Opens what training writes to, and writes the first checkpoint.
  void prepare();
  // Trains up to o_.steps in all, or until a signal.
  void train();
  // Ends early on a signal.
  void show_result() const;
  // How to go on after a signal.
  void show_way_on() const;
  // The signal that stopped the training on all ranks, or came to this one since; or 0.
  int stopped_by() const { return agreed_signal_ != 0 ? agreed_signal_ : stop_signal(); }

 private:
  static std::optional<Text> text_of(const Options& options, const Team& team) {
    if (options.text.empty()) return std::nullopt;
    std::string bytes = team.leads() ? read_text(options.text) : "";
    team.broadcast(bytes);
    return std::make_optional<Text>(std::move(bytes), options.text, options.length);
  }
  static nn::TinyLM seeded_model(const Options& options) {
    manual_seed(options.seed);
    return nn::TinyLM(options.vocab(), options.model());
  }
  StepReport step();
  double agree(double loss);
  void write_report() const;
  bool stops() const;
  void save() const;
  void keep_earlier_checkpoint() const;
  void show_rule() const;
  void show_text() const;
  double held_out_loss() const;
  std::string default_prompt() const;
  std::vector<std::int64_t> continuation(std::vector<std::int64_t> prompt, std::int64_t count,
                                         double temperature) const;

  Options o_;
  Team& team_;
  std::optional<Text> text_;  // absent for the rule
  nn::TinyLM model_;
  optim::Adam adam_;
  std::int64_t done_ = 0;   // steps
  std::int64_t first_ = 0;  // steps done when this process began to train
  Log log_;
  std::optional<Watch> watch_;  // for the report
  bool agreed_stop_ = false;
  int agreed_signal_ = 0;
};

void Run::resume(const optim::Checkpoint& checkpoint) {
  const auto kept = [&](const std::string& key) {
    const auto found = checkpoint.metadata.find(key);
    check(found != checkpoint.metadata.end(), o_.resume, ": not a checkpoint of next_token: it keeps no ", key);
    return found->second;
  };
  if (text_) {
    check(kept("text.fingerprint") == text_->fingerprint(), o_.text, ": not the text that ", o_.resume,
          " was trained on: it has ", text_->fingerprint(), ", that one had ", kept("text.fingerprint"));
  }
  const std::string steps = kept("step");
  check(!steps.empty() && steps.size() < 16 && steps.find_first_not_of("0123456789") == std::string::npos, o_.resume,
        ": not a checkpoint of next_token: its step is '", steps, "'");
  try {
    restore_checkpoint(checkpoint, model_.state_dict(), adam_, default_generator());
  } catch (const Error& error) {
    fail(o_.resume, ": ", error.what());
  }
  done_ = std::stoll(steps);
}

void Run::join() {
  std::string done = std::to_string(done_);
  team_.broadcast(done);
  done_ = std::stoll(done);
  const Tensor generator = default_generator().state();
  team_.broadcast({{"generator", generator}});
  default_generator().set_state(generator);
  team_.broadcast(adam_.state_dict());
  team_.train(adam_.parameters(), o_.batch);
}

void Run::save() const {
  if (!o_.save) return;
  team_.expect_equal_weights();
  if (!team_.leads()) return;
  SafetensorsMetadata metadata = to_metadata(o_);
  metadata["step"] = std::to_string(done_);
  if (text_) metadata["text.fingerprint"] = text_->fingerprint();
  optim::save_checkpoint(o_.checkpoint, model_.state_dict(), adam_, default_generator(), metadata);
}

// A checkpoint of another run is not lost by starting this one. A copy, so that some whole checkpoint is under the name
// at any moment. What is no checkpoint is nothing to write over.
void Run::keep_earlier_checkpoint() const {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(o_.checkpoint, error) || fs::equivalent(o_.checkpoint, o_.resume, error)) return;
  try {
    optim::read_checkpoint(o_.checkpoint);
  } catch (const Error&) {
    fail(o_.checkpoint, ": is there already and is not a checkpoint; choose another --checkpoint, or remove it");
  }
  const std::string old = o_.checkpoint + ".old";
  fs::copy_file(o_.checkpoint, old, fs::copy_options::overwrite_existing, error);
  check(!error, old, ": the earlier ", o_.checkpoint, " cannot be kept there: ", error.message());
  std::printf("kept the earlier %s as %s\n", o_.checkpoint.c_str(), old.c_str());
}

void Run::write_report() const {
  if (!watch_) return;
  Report report(
      "TinyLM: " + std::to_string(o_.depth) + " blocks, " + std::to_string(model_.parameter_count()) + " parameters",
      "Trained on " + (text_ ? o_.text : std::string("the rule next = (current + 1) mod 50")) + "; steps " +
          std::to_string(first_ + 1) + " to " + std::to_string(done_) + " of " + std::to_string(o_.steps) +
          (first_ > 0 ? ", those since it went on from a checkpoint" : "") + ".");
  show(*watch_, 8, report);
  write_file(o_.report, report.html(), "--report");
}

void Run::prepare() {
  first_ = done_;
  if (!o_.report.empty() && team_.leads()) {
    const Tensor ids = text_ ? text_->held_out_batch(0, o_.batch, o_.length).ids : Rule::fixed_ids(o_.batch, o_.length);
    watch_.emplace(model_, ids, done_ + 1, o_.steps);
  }
  write_report();  // so that a file that cannot be written is known before the work
  if (!o_.log.empty() && team_.leads()) log_ = Log(o_.log);
  if (o_.save && team_.leads()) keep_earlier_checkpoint();
  if (done_ < o_.steps || o_.checkpoint != o_.resume) save();
  log_.begin_after(done_);
}

StepReport Run::step() {
  Batch batch = !text_ ? Rule::batch(o_.batch, o_.length) : text_->batch(o_.batch, o_.length);
  if (team_.size() > 1) batch = rows(batch, team_.rows(o_.batch).begin, team_.rows(o_.batch).end);
  const Tensor loss = cross_entropy(model_(batch.ids), batch.targets);
  adam_.zero_grad();
  loss.backward();
  team_.average_gradients();
  const double whole_loss = agree(loss.item());
  if (watch_) watch_->gradients(done_ + 1);
  const NamedTensors parameters = adam_.parameters();
  const double norm = optim::grad_norm(parameters);
  const bool clips = o_.clip > 0;
  if (clips && std::isfinite(norm)) optim::clip_grad_norm_(parameters, o_.clip);
  adam_.set_lr_factor(optim::linear_warmup(done_ + 1, o_.warmup));
  // Clipping keeps steps bounded; what cannot be clipped would spoil the weights for good.
  if (!clips || std::isfinite(norm)) adam_.step();
  return {++done_, whole_loss, norm, o_.batch * o_.length};
}

// The loss of the whole batch. With it the ranks learn whether one of them is to stop, so that all do after this step.
double Run::agree(double loss) {
  if (team_.size() == 1) return loss;
  std::array<double, 2 + kStopSignals.size()> sums{loss * team_.rows(o_.batch).share};
  if (std::ferror(stdout) != 0) sums[1] = 1;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) sums[2 + i] = stop_signal() == kStopSignals[i] ? 1 : 0;
  team_.sum(sums);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    if (sums[2 + i] > 0) agreed_signal_ = kStopSignals[i];
  }
  agreed_stop_ = agreed_signal_ != 0 || sums[1] > 0;
  return sums[0];
}

bool Run::stops() const { return team_.size() > 1 ? agreed_stop_ : stop_signal() != 0 || std::ferror(stdout) != 0; }

void Run::train() {
  const std::string task = !text_ ? "rule next = (current + 1) mod 50"
                                  : std::to_string(text_->training().size()) + " bytes to train on, " +
                                        std::to_string(text_->held_out().size()) + " held out";
  const std::string ranks = team_.size() == 1 ? "" : std::to_string(team_.size()) + " ranks of ";
  std::printf("TinyLM: %lld parameters, %s, %s%d thread%s\n", static_cast<long long>(model_.parameter_count()),
              task.c_str(), ranks.c_str(), num_threads(), num_threads() == 1 ? "" : "s");
  if (done_ >= o_.steps) {
    std::printf("step %lld of %lld is done; a larger --steps trains on\n", static_cast<long long>(done_),
                static_cast<long long>(o_.steps));
    return;
  }
  if (done_ > 0) std::printf("going on after step %lld\n", static_cast<long long>(done_));
  const std::unique_ptr<NanCheck> nan_check = o_.nan_check ? std::make_unique<NanCheck>() : nullptr;
  // mpirun gives ranks a terminal of its own, wherever the output goes in the end.
  Progress progress(done_ + 1, o_.steps, team_.size() == 1);
  while (done_ < o_.steps && !stops()) {
    const StepReport report = step();
    log_.row(report, progress.report(report));
    if (watch_) watch_->after_step(report);
    if (done_ % o_.checkpoint_every == 0 && done_ < o_.steps) {
      save();
      write_report();
    }
  }
  progress.finish();
  save();
  write_report();
  std::printf("trained in %.1f s; tensors took at most %.0f MiB%s\n", progress.seconds(),
              static_cast<double>(memory::stats().peak) / (1 << 20),
              o_.save ? ("; saved " + o_.checkpoint).c_str() : "");
}

void Run::show_way_on() const {
  std::printf("stopped after step %lld of %lld", static_cast<long long>(done_), static_cast<long long>(o_.steps));
  if (o_.save) {
    std::printf("; %s --resume %s%s", done_ < o_.steps ? "go on with" : "see the result with", o_.checkpoint.c_str(),
                o_.log.empty() ? "" : (" --log " + o_.log).c_str());
  }
  std::printf("\n");
}

void Run::show_result() const {
  model_.eval();
  text_ ? show_text() : show_rule();
}

std::vector<std::int64_t> Run::continuation(std::vector<std::int64_t> prompt, std::int64_t count,
                                            double temperature) const {
  std::vector<std::int64_t> tokens = std::move(prompt);
  const auto given = static_cast<std::ptrdiff_t>(tokens.size());
  for (std::int64_t i = 0; i < count && stop_signal() == 0; ++i) {
    tokens.push_back(next_token(model_, tokens, o_.length, temperature));
  }
  return {tokens.begin() + given, tokens.end()};
}

// A continuation that can be checked by eye, and is.
void Run::show_rule() const {
  constexpr std::int64_t kCount = 50, kStart = 7;
  const std::vector<std::int64_t> tokens = continuation({kStart}, kCount, 0);
  if (stop_signal() != 0) return;
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
  const std::int64_t batches = text_->held_out_batches(o_.batch, o_.length);
  for (std::int64_t i = 0; i < batches && stop_signal() == 0; ++i) {
    const Batch batch = text_->held_out_batch(i, o_.batch, o_.length);
    total += cross_entropy(model_(batch.ids), batch.targets, {.reduction = Reduction::sum}).item();
    count += static_cast<double>(batch.targets.numel());
  }
  return total / count;
}

// A few words of the held-out part, from the beginning of a line where there is one.
std::string Run::default_prompt() const {
  constexpr std::size_t kBytes = 64;
  const std::string_view held_out = text_->held_out();
  const std::size_t line = held_out.find('\n') + 1;  // 0: there is none
  return std::string(held_out.substr(line + kBytes <= held_out.size() ? line : 0, kBytes));
}

void Run::show_text() const {
  std::printf("held-out loss ");
  std::fflush(stdout);  // a long text takes a while
  const double loss = held_out_loss();
  if (stop_signal() != 0) return static_cast<void>(std::printf("not known\n"));
  std::printf("%.4f nats a byte; a table of byte pairs has %.4f\n", std::abs(loss), text_->pair_table_loss());
  if (!std::isfinite(loss)) return;  // there is nothing to draw samples from

  constexpr std::int64_t kBytes = 300;
  const std::string prompt = o_.prompt.empty() ? default_prompt() : o_.prompt;
  std::printf("--- prompt\n%s\n", printable(prompt).c_str());
  const int samples = o_.temperature == 0 ? 1 : 3;  // the likeliest continuation is always the same
  for (int sample = 1; sample <= samples && stop_signal() == 0; ++sample) {
    std::vector<std::int64_t> tokens;
    for (unsigned char c : prompt) tokens.push_back(c);
    std::string text;
    for (std::int64_t c : continuation(std::move(tokens), kBytes, o_.temperature)) text += static_cast<char>(c);
    std::printf("--- sample %d, temperature %g\n%s\n", sample, o_.temperature, printable(text).c_str());
  }
}

// A closed standard stream would be taken by the next file that is opened, and output would end up in it.
void secure_standard_streams() {
  const bool has_output = fcntl(STDOUT_FILENO, F_GETFD) != -1;
  for (int file = 0; file <= 2; ++file) {
    check(fcntl(file, F_GETFD) != -1 || open("/dev/null", O_RDWR) == file,
          "a standard stream is closed, and /dev/null cannot take its place");
  }
  check(has_output, "the standard output is closed");
}

// What the leader prints is what the team has to say.
void silence_output() {
  const int null = open("/dev/null", O_WRONLY);
  check(null >= 0 && dup2(null, STDOUT_FILENO) == STDOUT_FILENO, "/dev/null cannot take the place of the output");
  close(null);
}

void finish_output() { check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "the output cannot be written"); }

// The leader reads the command line, and the checkpoint to go on from. The others, who may not share its files, are
// told.
Parsed parse_together(const Team& team, int argc, char** argv) {
  std::string arguments;
  for (int i = 1; i < argc; ++i) arguments += std::string(argv[i]) + '\n';
  team.expect_same("arguments", arguments);
  Parsed parsed;
  if (team.leads()) {
    parsed = parse(argc, argv);
    check(parsed.help || parsed.options.batch >= team.size(), "--batch ", parsed.options.batch,
          " has fewer rows than there are ranks (", team.size(), ")");
  }
  std::string options = parsed.help ? "" : to_bytes(parsed.options);
  team.broadcast(options);
  if (team.leads()) return parsed;
  if (options.empty()) return {.help = "", .options = {}, .resumed = {}};
  return {.help = {}, .options = from_bytes(options), .resumed = {}};
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that went away, and a limit on file sizes, are to be output errors like others.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  watch_stop_signals();
  std::optional<Team> joined;
  try {
    secure_standard_streams();
    joined.emplace();
    if (!joined->leads()) silence_output();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", failure("next_token", error).c_str());
    return 2;
  }
  Team& team = *joined;
  int failed_code = 2;
  try {
    const Parsed parsed = parse_together(team, argc, argv);
    if (parsed.help) {
      failed_code = 1;
      std::fputs(parsed.help->c_str(), stdout);
      finish_output();
      return 0;
    }
    set_num_threads(parsed.options.threads > 0 ? parsed.options.threads : team.threads());
    Run run(parsed.options, team);
    if (parsed.resumed) run.resume(*parsed.resumed);
    run.join();
    stop_later();
    run.prepare();
    failed_code = 1;
    run.train();
    finish_output();
    if (run.stopped_by() == 0 && team.leads()) run.show_result();
    if (run.stopped_by() != 0) run.show_way_on();
    finish_output();
    return run.stopped_by() == 0 ? 0 : 128 + run.stopped_by();
  } catch (const std::exception& error) {
    return team.fail("next_token", error, failed_code);
  }
}
