// What a run tells of itself while it trains: a progress line, and a log file.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace prenorm::training {

struct StepReport {
  std::int64_t step;  // from 1
  double loss;        // before the step's update
  double grad_norm;
  std::int64_t tokens;
};

// Prints step, loss, gradient norm, tokens/s and the time left: one line that is written over on a terminal, else a
// plain line now and then. Notes the first step whose numbers are not finite. Output errors are left to
// std::ferror(stdout).
class Progress {
 public:
  // Not `on_terminal`: plain lines even where the output seems to go to one.
  Progress(std::int64_t first_step, std::int64_t steps, bool on_terminal = true);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Gives back the rate of this step, in tokens a second.
  double report(const StepReport& report);
  // Ends the line, so that other output does not run into it.
  void finish();
  // Seconds since the start.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const StepReport& report);

  std::int64_t first_step_, steps_;
  std::int64_t line_every_;
  bool terminal_;
  bool line_open_ = false;
  bool finite_ = true;
  Clock::time_point start_, last_, last_drawn_;
  double seconds_per_step_ = 0;  // smoothed
};

// The CSV log: one row a step, header `step,loss,grad_norm,tokens_per_s`. Each row is handed to the system before the
// next step begins. Errors throw Error.
class Log {
 public:
  Log() = default;  // writes nothing
  // Looks whether it can be written and, if there is something in it, whether it is such a log. Changes nothing.
  explicit Log(const std::string& path);
  // Drops all rows after `step`, and the last one if it was not written whole.
  void begin_after(std::int64_t step);
  void row(const StepReport& report, double tokens_per_s);

 private:
  void write(const std::string& line);

  std::string path_;
  std::ofstream file_;  // appends
};

}  // namespace prenorm::training
