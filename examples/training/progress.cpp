#include "training/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "autograd/check.h"

namespace prenorm::training {
namespace {

constexpr std::string_view kHeader = "step,loss,grad_norm,tokens_per_s";

std::string as_time(double seconds) {
  const long long s = std::llround(seconds);
  char text[64];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", s / 3600, s / 60 % 60);
  } else if (s >= 60) {
    std::snprintf(text, sizeof text, "%lldm%02llds", s / 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%llds", s);
  }
  return text;
}

// A terminal on which a line can be written over.
bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// printf() shows the sign of a NaN, which means nothing.
double unsigned_nan(double value) { return std::isnan(value) ? std::abs(value) : value; }

// Where the rows after `step` begin, as an offset in the file. What follows a row that is torn or out of order was
// written by no orderly run, and is dropped too.
std::uintmax_t end_of_rows(const std::string& path, std::int64_t step) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::uintmax_t end = 0;
  std::int64_t last = 0;
  // getline() stops at the end of the file, too: a line that ends there is torn.
  for (bool header = true; std::getline(file, line) && !file.eof(); header = false) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    const bool row = error == std::errc() && *rest == ',' && std::count(line.begin(), line.end(), ',') == 3;
    if (!header && !(row && number > last && number <= step)) break;
    end += line.size() + 1;
    last = number;
  }
  return end;
}

}  // namespace

Progress::Progress(std::int64_t first_step, std::int64_t steps, bool on_terminal)
    : first_step_(first_step),
      steps_(steps),
      line_every_(std::max<std::int64_t>(1, (steps - first_step + 1) / 20)),
      terminal_(on_terminal && is_terminal()),
      start_(Clock::now()),
      last_(start_),
      last_drawn_(start_) {}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Progress::report(const StepReport& report) {
  const auto now = Clock::now();
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - last_).count());
  last_ = now;
  seconds_per_step_ = seconds_per_step_ == 0 ? seconds : 0.95 * seconds_per_step_ + 0.05 * seconds;
  const bool ends = report.step == first_step_ || report.step == steps_;
  const bool due = terminal_ ? now - last_drawn_ > std::chrono::milliseconds(100)
                             : report.step % line_every_ == 0 || now - last_drawn_ > std::chrono::seconds(30);
  if (ends || due) draw(report);
  if (finite_ && !(std::isfinite(report.loss) && std::isfinite(report.grad_norm))) {
    finite_ = false;
    finish();
    std::printf("step %lld: the loss is %.4f, the gradient norm %.4f; going on\n", static_cast<long long>(report.step),
                unsigned_nan(report.loss), unsigned_nan(report.grad_norm));
  }
  return static_cast<double>(report.tokens) / seconds;
}

void Progress::draw(const StepReport& report) {
  last_drawn_ = last_;
  char text[256];
  std::snprintf(text, sizeof text, "step %lld/%lld  loss %.4f  grad norm %.4f  %.0f tokens/s  %s left",
                static_cast<long long>(report.step), static_cast<long long>(steps_), unsigned_nan(report.loss),
                unsigned_nan(report.grad_norm), static_cast<double>(report.tokens) / seconds_per_step_,
                as_time(static_cast<double>(steps_ - report.step) * seconds_per_step_).c_str());
  if (terminal_) {
    // Cut to the width, since a line that wraps cannot be written over; the rest of the old line is erased.
    std::printf("\r%.*s\033[K", static_cast<int>(terminal_columns()) - 1, text);
  } else {
    std::printf("%s\n", text);
  }
  std::fflush(stdout);
  line_open_ = terminal_;
}

void Progress::finish() {
  if (line_open_) std::printf("\n");
  line_open_ = false;
}

Log::Log(const std::string& path) : path_(path), file_(path, std::ios::app | std::ios::binary) {
  check(file_.is_open(), path, ": the log cannot be written: ", std::strerror(errno));
  if (!std::filesystem::is_regular_file(path)) return;
  std::string first_line;
  std::ifstream old(path, std::ios::binary);
  const bool empty = !std::getline(old, first_line);
  check(empty || first_line == kHeader, path, ": not a log of next_token: its first line is not ", kHeader);
}

void Log::begin_after(std::int64_t step) {
  if (!file_.is_open()) return;
  std::uintmax_t end = 0;
  if (std::filesystem::is_regular_file(path_)) {
    end = step > 0 ? end_of_rows(path_, step) : 0;
    std::error_code error;
    std::filesystem::resize_file(path_, end, error);
    check(!error, path_, ": the log cannot be cut back to step ", step, ": ", error.message());
  }
  if (end == 0) write(std::string(kHeader));
}

void Log::row(const StepReport& report, double tokens_per_s) {
  if (!file_.is_open()) return;
  char text[128];  // as many digits of loss and norm as a float32 needs to be read back as it was
  std::snprintf(text, sizeof text, "%lld,%.9g,%.9g,%.0f", static_cast<long long>(report.step),
                unsigned_nan(report.loss), unsigned_nan(report.grad_norm), tokens_per_s);
  write(text);
}

void Log::write(const std::string& line) {
  file_ << line << '\n' << std::flush;
  check(file_.good(), path_, ": the log cannot be written: ", std::strerror(errno));
}

}  // namespace prenorm::training
