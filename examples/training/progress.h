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
// plain line now and then.
class Progress {
 public:
  Progress(std::int64_t first_step, std::int64_t steps);
  // The rate of this step is given back, in tokens a second.
  double report(const StepReport& report);
  // Ends the line, so that other output does not run into it.
  void finish();
  // Seconds since the start.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_;
  std::int64_t line_every_;
  bool terminal_;
  bool line_open_ = false;
  Clock::time_point start_, last_, last_drawn_;
  double seconds_per_step_ = 0;  // smoothed
};

// The CSV log: one row a step, header `step,loss,grad_norm,tokens_per_s`. Each row is on its way to the disk before the
// next step begins.
class Log {
 public:
  Log() = default;  // writes nothing
  // Starts a new file, or with `keep_steps` keeps the rows of an old one up to that step and goes on after them. Throws
  // Error on a file that cannot be written or is no such log.
  Log(const std::string& path, std::int64_t keep_steps);
  void row(const StepReport& report, double tokens_per_s);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace prenorm::training
