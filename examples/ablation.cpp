// What residual connections and norms are for: trains TinyLM on the tiny next-token task with and without each, at
// several depths, and compares.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ablation/figure.h"
#include "ablation/result.h"
#include "ablation/training_run.h"
#include "autograd/check.h"
#include "autograd/parallel.h"

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
  std::string csv, curves, svg;
};

const std::map<std::string, nn::Norm> kNorms{{"unbiased", nn::Norm::unbiased},
                                             {"standard", nn::Norm::standard},
                                             {"rms", nn::Norm::rms},
                                             {"none", nn::Norm::none}};
const std::map<std::string, nn::Order> kOrders{{"pre", nn::Order::pre}, {"post", nn::Order::post}};
const std::map<std::string, bool> kYesNo{{"yes", true}, {"no", false}};

// A comma-separated option whose values have names.
template <class T>
void add_names(CLI::App& app, const std::string& flag, std::vector<T>& values, const std::map<std::string, T>& names,
               const std::string& help) {
  app.add_option_function<std::vector<std::string>>(
         flag,
         [&values, &names](const std::vector<std::string>& given) {
           values.clear();
           for (const std::string& name : given) values.push_back(names.at(name));
         },
         help)
      ->delimiter(',')
      ->check(CLI::IsMember(names).description(""));
}

void declare(CLI::App& app, Options& o) {
  const auto at_least_1 = CLI::Range(std::int64_t{1}, std::int64_t{1} << 30);
  const std::string rows = "Rows (lists, separated by commas)";
  app.add_option("--depths", o.depths, "Blocks (default: 4,12,24)")->delimiter(',')->check(at_least_1)->group(rows);
  add_names(app, "--residual", o.residuals, kYesNo, "With residual connections or without (default: yes,no)");
  add_names(app, "--norm", o.norms, kNorms, "Norms: standard, unbiased, rms, none (default: standard,none)");
  add_names(app, "--order", o.orders, kOrders, "Norm before (pre) or after (post) each branch (default: pre)");
  for (const char* flag : {"--residual", "--norm", "--order"}) app.get_option(flag)->group(rows);
  app.add_option("--seeds", o.seeds, "Seeds of weights and batches (default: 0)")->delimiter(',')->group(rows);
  Training& t = o.training;
  const std::string training = "Training of every row";
  app.add_option("--steps", t.steps, "Steps")->check(at_least_1)->capture_default_str()->group(training);
  app.add_option("--batch", t.batch, "Sequences a step")->check(at_least_1)->capture_default_str()->group(training);
  app.add_option("--length", t.length, "Tokens a sequence")->check(at_least_1)->capture_default_str()->group(training);
  app.add_option("--lr", t.lr, "Learning rate of Adam (default: 3e-4)")->check(CLI::Range(0.0, 1e6))->group(training);
  app.add_option("--warmup", t.warmup, "Steps over which the learning rate rises to its value (default: 0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30))
      ->group(training);
  app.add_option("--clip", t.clip, "Clip the gradient's norm to this (default: no clipping)")
      ->check(CLI::Range(0.0, 1e30))
      ->group(training);
  app.add_option("--d-model", t.d_model, "Features")->check(at_least_1)->capture_default_str()->group(training);
  app.add_option("--heads", t.heads, "Attention heads")->check(at_least_1)->capture_default_str()->group(training);
  app.add_option("--threads", o.threads, "Threads (default: one a processor)")->check(CLI::Range(1, 1024));
  const std::string files = "Files to write";
  app.add_option("--csv", o.csv, "The table, one row a run")->group(files);
  app.add_option("--curves", o.curves, "Loss and gradient norm of every step, as CSV")->group(files);
  app.add_option("--svg", o.svg, "A picture of the curves")->group(files);
}

std::vector<Variant> variants_of(const Options& o) {
  std::vector<Variant> variants;
  for (std::int64_t depth : o.depths) {
    for (bool residual : o.residuals) {
      for (nn::Norm norm : o.norms) {
        for (nn::Order order : o.orders) {
          if (norm == nn::Norm::none && order != o.orders.front()) continue;  // no norm, no order
          for (std::uint64_t seed : o.seeds) variants.push_back({depth, residual, norm, order, seed});
        }
      }
    }
  }
  return variants;
}

std::string as_time(double seconds) {
  const auto s = static_cast<int>(seconds + 0.5);
  return s >= 60 ? std::to_string(s / 60) + "m" + (s % 60 < 10 ? "0" : "") + std::to_string(s % 60) + "s"
                 : std::to_string(s) + "s";
}

// Tells how far the runs are: one line that is written over on a terminal, else a line a run.
class Progress {
 public:
  Progress(const std::vector<Variant>& variants, std::int64_t steps) : variants_(variants), steps_(steps) {
    for (const Variant& v : variants) left_ += static_cast<double>(v.depth * steps);
  }

  void after_step(std::size_t run, std::int64_t step, double loss) {
    done_ += static_cast<double>(variants_[run].depth);
    const auto now = Clock::now();
    if (!terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    std::printf("\r\033[K%s: step %lld/%lld  loss %.4f  %s left", head(run).c_str(), static_cast<long long>(step),
                static_cast<long long>(steps_), loss, time_left().c_str());
    std::fflush(stdout);
  }
  void after_run(std::size_t run, const Run& result) {
    std::printf("%s%s: loss %.4f to %.4f in %s, %s left\n", terminal_ ? "\r\033[K" : "", head(run).c_str(),
                result.summary.first_loss, result.summary.last_loss, as_time(result.seconds).c_str(),
                time_left().c_str());
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string head(std::size_t run) const {
    return "run " + std::to_string(run + 1) + "/" + std::to_string(variants_.size()) + "  depth " +
           std::to_string(variants_[run].depth) + ", " + combination(variants_[run]);
  }
  // A step takes about as long as its blocks.
  std::string time_left() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return as_time(seconds / done_ * (left_ - done_));
  }

  const std::vector<Variant>& variants_;
  std::int64_t steps_;
  double left_ = 0, done_ = 0;  // blocks times steps, in all and so far
  bool terminal_ = isatty(STDOUT_FILENO) != 0;
  Clock::time_point start_ = Clock::now(), drawn_{};
};

std::vector<Run> run_all(const std::vector<Variant>& variants, const Training& training) {
  std::vector<Run> runs;
  Progress progress(variants, training.steps);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    Run run{variants[i], {}, {}, 0};
    run.curves = train(variants[i], training,
                       [&](std::int64_t step, double loss) { progress.after_step(i, step, loss); });
    run.summary = summarize(run.curves);
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    progress.after_run(i, run);
    runs.push_back(std::move(run));
  }
  return runs;
}

void write_files(const Options& o, const std::vector<Run>& runs) {
  if (!o.csv.empty()) write_table_csv(o.csv, runs);
  if (!o.curves.empty()) write_curves_csv(o.curves, runs);
  if (!o.svg.empty()) {
    std::ofstream file(o.svg, std::ios::trunc);
    file << draw_figure(runs) << std::flush;
    check(file.good(), o.svg, ": cannot be written");
  }
}

// 0: inside the ranges, or no run that has any; 1: not so.
int judge(const std::vector<Run>& runs, const Training& training) {
  std::size_t judged = 0;
  for (const Run& run : runs) judged += find_reference(run.variant, training) != nullptr ? 1 : 0;
  const std::vector<std::string> missed = missed_ranges(runs, training);
  for (const std::string& line : missed) std::cout << "OUT OF RANGE: " << line << '\n';
  if (judged > 0 && missed.empty()) std::cout << judged << " of " << judged << " runs are inside their ranges\n";
  return missed.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains TinyLM on the rule next = (current + 1) mod 50 with and without residual connections and norms, at several\n"
      "depths, and prints what became of it. Exits with 1 if the default settings give other results than they should.",
      "ablation");
  app.get_formatter()->column_width(34);
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ablation: " << error.what() << "; --help lists the options\n";
    return 2;
  }
  try {
    if (options.threads > 0) set_num_threads(options.threads);
    const std::vector<Run> runs = run_all(variants_of(options), options.training);
    std::cout << '\n';
    print_table(std::cout, runs, options.training);
    std::cout << '\n';
    for (const std::string& sentence : conclusions(runs)) std::cout << sentence << '\n';
    write_files(options, runs);
    return judge(runs, options.training);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::cerr << "ablation: " << error.what() << '\n';
    return 1;
  }
}
