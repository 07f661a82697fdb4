#include "training/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "autograd/check.h"

namespace prenorm::training {
namespace {

std::string as_time(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  char text[32];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%ldh%02ldm", s / 3600, s / 60 % 60);
  } else if (s >= 60) {
    std::snprintf(text, sizeof text, "%ldm%02lds", s / 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%lds", s);
  }
  return text;
}

constexpr const char* kHeader = "step,loss,grad_norm,tokens_per_s";

// The header and the rows up to a step of an existing log.
std::vector<std::string> rows_up_to(const std::string& path, std::int64_t step) {
  std::vector<std::string> rows{kHeader};
  std::ifstream old(path);
  std::string line;
  if (!std::getline(old, line)) return rows;  // it is empty
  check(line == kHeader, path, ": no log of next_token: its first line is not ", kHeader);
  while (std::getline(old, line)) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || *end != ',' || number > step) break;
    rows.push_back(line);
  }
  return rows;
}

}  // namespace

Progress::Progress(std::int64_t first_step, std::int64_t steps)
    : steps_(steps),
      line_every_(std::max<std::int64_t>(1, (steps - first_step + 1) / 20)),
      terminal_(isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()),
      last_(start_),
      last_drawn_(start_ - std::chrono::hours(1)) {}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Progress::report(const StepReport& report) {
  const auto now = Clock::now();
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - last_).count());
  last_ = now;
  seconds_per_step_ = seconds_per_step_ == 0 ? seconds : 0.95 * seconds_per_step_ + 0.05 * seconds;
  const bool ends = report.step == 1 || report.step == steps_;
  const bool due = terminal_ ? now - last_drawn_ > std::chrono::milliseconds(100) : report.step % line_every_ == 0;
  if (ends || due) {
    last_drawn_ = now;
    std::printf("%sstep %lld/%lld  loss %.4f  grad norm %.4f  %.0f tokens/s  %s left%s", terminal_ ? "\r" : "",
                static_cast<long long>(report.step), static_cast<long long>(steps_), report.loss, report.grad_norm,
                static_cast<double>(report.tokens) / seconds_per_step_,
                as_time(static_cast<double>(steps_ - report.step) * seconds_per_step_).c_str(),
                terminal_ ? "   " : "\n");
    std::fflush(stdout);
    line_open_ = terminal_;
  }
  return static_cast<double>(report.tokens) / seconds;
}

void Progress::finish() {
  if (line_open_) std::printf("\n");
  line_open_ = false;
}

Log::Log(const std::string& path, std::int64_t keep_steps) : path_(path) {
  const auto check_good = [&path](const std::ofstream& out) {
    check(out.good(), path, ": the log cannot be written: ", std::strerror(errno));
  };
  if (keep_steps > 0 && std::filesystem::is_regular_file(path)) {
    // Cut by writing beside the old log and moving over it, so that no row is lost if this is cut short.
    const std::string temporary = path + ".tmp";
    {
      std::ofstream out(temporary, std::ios::trunc);
      for (const std::string& row : rows_up_to(path, keep_steps)) out << row << '\n';
      out.flush();
      check_good(out);
    }
    std::error_code error;
    std::filesystem::rename(temporary, path, error);
    check(!error, path, ": the log cannot be written: ", error.message());
    file_.open(path, std::ios::app);
  } else {
    file_.open(path, std::ios::trunc);
    file_ << kHeader << '\n' << std::flush;
  }
  check_good(file_);
}

void Log::row(const StepReport& report, double tokens_per_s) {
  if (!file_.is_open()) return;
  char text[128];
  std::snprintf(text, sizeof text, "%lld,%.9g,%.9g,%.0f\n", static_cast<long long>(report.step), report.loss,
                report.grad_norm, tokens_per_s);
  file_ << text << std::flush;
  check(file_.good(), path_, ": the log cannot be written: ", std::strerror(errno));
}

}  // namespace prenorm::training
