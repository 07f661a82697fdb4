// What residual connections and norms are for: trains TinyLM on the tiny next-token task with and without each, at
// several depths, and compares.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ablation/figure.h"
#include "ablation/report.h"
#include "ablation/result.h"
#include "ablation/training_run.h"
#include "autograd/atomic_file.h"
#include "autograd/check.h"
#include "autograd/parallel.h"
#include "training/stop.h"

using namespace prenorm;
using namespace prenorm::ablation;

namespace {

struct Options {
  std::vector<std::int64_t> depths{4, 12, 24};
  std::vector<bool> residuals{true, false};
  std::vector<nn::Norm> norms{nn::Norm::standard, nn::Norm::none};
  std::vector<nn::Order> orders{nn::Order::pre};
  std::vector<std::uint64_t> seeds{0};
  Training training;
  int threads = 0;  // 0: all processors
  std::string csv, curves, svg, report;
};

// --- the command line ------------------------------------------------------------------------------------------------

const std::map<std::string, nn::Norm> kNorms{{"unbiased", nn::Norm::unbiased},
                                             {"standard", nn::Norm::standard},
                                             {"rms", nn::Norm::rms},
                                             {"none", nn::Norm::none}};
const std::map<std::string, nn::Order> kOrders{{"pre", nn::Order::pre}, {"post", nn::Order::post}};
const std::map<std::string, bool> kYesNo{{"yes", true}, {"no", false}};

// A list of values that have names.
template <class T>
CLI::Option* add_names(CLI::App& app, const std::string& flag, std::vector<T>& values,
                       const std::map<std::string, T>& names, const std::string& help) {
  const auto take = [&values, &names](const std::vector<std::string>& given) {
    values.clear();
    for (const std::string& name : given) values.push_back(names.at(name));
  };
  return app.add_option_function<std::vector<std::string>>(flag, take, help)
      ->check(CLI::IsMember(names).description(""));
}

void declare(CLI::App& app, Options& o) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const auto at_least_0 = CLI::Range(std::int64_t{0}, kMost).description("");
  const auto at_least_1 = CLI::Range(std::int64_t{1}, kMost).description("");
  const auto positive = CLI::Range(0.0, 1e30).description("");

  const auto row = [](CLI::Option* option) {
    option->delimiter(',')->allow_extra_args(false)->type_name("LIST")->group("Rows, each a list such as 4,12,24");
  };
  row(app.add_option("--depths", o.depths, "Blocks (4,12,24)")->check(at_least_1));
  row(add_names(app, "--residual", o.residuals, kYesNo, "Residual connections: yes, no (yes,no)"));
  row(add_names(app, "--norm", o.norms, kNorms, "Norms: standard, unbiased, rms, none (standard,none)"));
  row(add_names(app, "--order", o.orders, kOrders, "Norm before or after each branch: pre, post (pre)"));
  row(app.add_option("--seeds", o.seeds, "Seeds of the weights and batches (0)"));

  Training& t = o.training;
  const auto training = [](CLI::Option* option) { option->type_name("N")->group("Training, the same for every row"); };
  training(app.add_option("--steps", t.steps, "Steps (300)")->check(at_least_1));
  training(app.add_option("--batch", t.batch, "Sequences a step (32)")->check(at_least_1));
  training(app.add_option("--length", t.length, "Tokens a sequence (32)")->check(at_least_1));
  training(app.add_option("--lr", t.lr, "Learning rate of Adam (3e-4)")->check(positive));
  training(
      app.add_option("--warmup", t.warmup, "Steps over which the learning rate rises to --lr (0)")->check(at_least_0));
  training(app.add_option("--clip", t.clip, "Scale gradients down to this norm, 0: never (0)")->check(positive));
  training(app.add_option("--d-model", t.d_model, "Features, a multiple of --heads (64)")->check(at_least_1));
  training(app.add_option("--heads", t.heads, "Heads of attention (4)")->check(at_least_1));
  training(app.add_option("--threads", o.threads, "Threads (all)")->check(CLI::Range(1, 1024).description("")));

  const auto file = [](CLI::Option* option) { option->type_name("FILE")->group("Files to write"); };
  file(app.add_option("--csv", o.csv, "The table, one row a run"));
  file(app.add_option("--curves", o.curves, "Loss and gradient norm of every step, as CSV"));
  file(app.add_option("--svg", o.svg, "A picture of the curves"));
  file(app.add_option("--report", o.report, "HTML: table, curves, gradients by layer, spread, attention"));
}

void check_together(const Options& o) {
  check(o.training.d_model % o.training.heads == 0, "--d-model ", o.training.d_model, " is not a multiple of --heads ",
        o.training.heads);
  // Runs take minutes: a file that cannot be written is better known before.
  for (const auto& [option, path] : {std::pair{"--csv", o.csv}, std::pair{"--curves", o.curves},
                                     std::pair{"--svg", o.svg}, std::pair{"--report", o.report}}) {
    if (!path.empty()) AtomicFile(path, option);
  }
}

// --- the runs --------------------------------------------------------------------------------------------------------

std::vector<Variant> variants_of(const Options& o) {
  std::vector<Variant> variants;
  for (std::int64_t depth : o.depths) {
    for (bool residual : o.residuals) {
      for (nn::Norm norm : o.norms) {
        for (nn::Order order : o.orders) {
          if (norm == nn::Norm::none && order != o.orders.front()) continue;  // without norms there is one order
          for (std::uint64_t seed : o.seeds) variants.push_back({depth, residual, norm, order, seed});
        }
      }
    }
  }
  return variants;
}

std::string as_time(double seconds) {
  const std::int64_t s = std::llround(seconds);
  return s < 60 ? std::to_string(s) + "s"
                : std::to_string(s / 60) + "m" + (s % 60 < 10 ? "0" : "") + std::to_string(s % 60) + "s";
}

// Tells how far the runs are: one line that is written over on a terminal, else a line a run.
class Progress {
 public:
  Progress(const std::vector<Variant>& variants, std::int64_t steps) : variants_(variants), steps_(steps) {
    for (const Variant& variant : variants) all_ += static_cast<double>(variant.depth * steps);
  }

  void after_step(std::size_t run, std::int64_t step, double loss) {
    done_ += static_cast<double>(variants_[run].depth);
    const auto now = Clock::now();
    if (!terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    std::printf("\r\033[K%s: step %lld/%lld  loss %.4f  %s left", head(run).c_str(), static_cast<long long>(step),
                static_cast<long long>(steps_), std::abs(loss), time_left().c_str());  // a NaN without a sign
    std::fflush(stdout);
  }
  void after_run(std::size_t run, const Run& result) const {
    std::printf("%s%s: loss %.4f to %.4f in %s, %s left\n", terminal_ ? "\r\033[K" : "", head(run).c_str(),
                std::abs(result.summary.first_loss), std::abs(result.summary.last_loss),
                as_time(result.seconds).c_str(), time_left().c_str());
    std::fflush(stdout);
  }
  void stopped(std::size_t run) const {
    std::printf("%s%s: stopped\n", terminal_ ? "\r\033[K" : "", head(run).c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string head(std::size_t run) const {
    return "run " + std::to_string(run + 1) + "/" + std::to_string(variants_.size()) + "  depth " +
           std::to_string(variants_[run].depth) + ", " + combination(variants_[run]);
  }
  // A step takes about as long as it has blocks.
  std::string time_left() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return as_time(seconds / done_ * (all_ - done_));
  }

  const std::vector<Variant>& variants_;
  std::int64_t steps_;
  double all_ = 0, done_ = 0;  // steps, times the blocks of each
  bool terminal_ = isatty(STDOUT_FILENO) != 0;
  Clock::time_point start_ = Clock::now(), drawn_{};
};

// Up to the end, or to a signal: then those runs that were finished.
std::vector<Run> run_all(const std::vector<Variant>& variants, const Training& training, bool looks_inside) {
  std::vector<Run> runs;
  Progress progress(variants, training.steps);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    Run run{variants[i], {}, {}, 0};
    const std::function<void(const training::Watch&)> look = [&](const training::Watch& watch) {
      run.inside = Inside{watch.gradient_norms(), watch.spread("after training"), watch.attention_maps(4)};
    };
    run.curves = train(
        variants[i], training,
        [&](std::int64_t step, double loss) {
          progress.after_step(i, step, loss);
          return training::stop_signal() == 0 && std::ferror(stdout) == 0;
        },
        looks_inside ? look : nullptr);
    if (std::ssize(run.curves.loss) < training.steps) {
      progress.stopped(i);
      break;
    }
    run.summary = summarize(run.curves);
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    progress.after_run(i, run);
    runs.push_back(std::move(run));
  }
  return runs;
}

// --- what comes of them ----------------------------------------------------------------------------------------------

// Whether all runs that have a range are inside.
bool judge(const std::vector<Run>& runs, const Training& training) {
  std::size_t judged = 0;
  for (const Run& run : runs) judged += find_reference(run.variant, training) != nullptr ? 1 : 0;
  const std::vector<std::string> missed = missed_ranges(runs, training);
  for (const std::string& line : missed) std::cout << "OUT OF RANGE: " << line << '\n';
  if (judged > 0 && missed.empty()) std::cout << judged << " of " << judged << " runs are inside their ranges\n";
  return missed.empty();
}

// Prints and writes everything; the exit code.
int report(const std::vector<Run>& runs, const Options& o) {
  if (runs.empty()) return 0;
  std::cout << '\n';
  print_table(std::cout, runs, o.training);
  std::cout << '\n';
  for (const std::string& sentence : conclusions(runs)) std::cout << sentence << '\n';
  if (!o.csv.empty()) write_file(o.csv, table_csv(runs), "--csv");
  if (!o.curves.empty()) write_file(o.curves, curves_csv(runs), "--curves");
  if (!o.svg.empty()) write_file(o.svg, draw_figure(runs), "--svg");
  if (!o.report.empty()) write_file(o.report, report_html(runs, o.training), "--report");
  return judge(runs, o.training) ? 0 : 1;
}

int fail_with(int code, const std::exception& error) {
  std::cout.flush();
  std::cerr << "ablation: " << error.what() << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is to be an output error like others
  training::watch_stop_signals();
  Options o;
  CLI::App app(
      "Trains TinyLM on the rule next = (current + 1) mod 50 with and without residual connections and\n"
      "norms, at several depths, and prints what became of it: the table, and what it says in words.\n"
      "Exits with 1 if runs with the default training give other results than they should.\n",
      "ablation");
  app.get_formatter()->column_width(25);
  declare(app, o);
  try {
    app.parse(argc, argv);
    check_together(o);
  } catch (const CLI::CallForHelp&) {
    std::string help = app.help();
    for (std::size_t at; (at = help.find("\n\n\n")) != std::string::npos;) help.erase(at, 1);
    std::cout << help << std::flush;
    return std::cout.good() ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    std::cerr << "ablation: " << error.what() << "; --help lists the options\n";
    return 2;
  } catch (const Error& error) {
    return fail_with(2, error);
  }
  try {
    if (o.threads > 0) set_num_threads(o.threads);
    training::stop_later();
    const int code = report(run_all(variants_of(o), o.training, !o.report.empty()), o);
    check(std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0,
          "the output cannot be written");
    return training::stop_signal() == 0 ? code : 128 + training::stop_signal();
  } catch (const std::exception& error) {
    return fail_with(1, error);
  }
}
