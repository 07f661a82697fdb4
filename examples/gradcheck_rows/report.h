// How the proof looks: a table for people, JSON for programs, a chart of one sweep.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "gradcheck_rows/run.h"

namespace prenorm::gradcheck_rows {

// A line a row as it is done; on a terminal, also one that tells which row runs.
class Table {
 public:
  Table(const std::vector<Family>& families, std::uint64_t seed);
  void family(const std::string& title);
  void begin(const Row& row);
  void end(const Row& row, const Result& result);
  void summary() const;

  bool all_passed() const { return failed_ == 0; }
  double seconds() const { return seconds_; }
  // Writes the rows and the summary, with the ops that each row ran.
  void write_json(const std::string& path) const;

 private:
  struct Worst {
    double error = 0;
    std::string title;
    void see(double e, const std::string& t) {
      if (title.empty() || !(e <= error)) *this = {e, t};
    }
  };
  struct Done {
    Row row;
    Result result;
  };

  std::size_t rows_ = 0;
  int title_width_ = 0;
  std::uint64_t seed_;
  std::vector<Done> done_;
  std::size_t failed_ = 0;
  std::int64_t elements_ = 0;
  double seconds_ = 0;
  Worst first_, second_;
  bool progress_;
};

// The error by step: the V.
void print_sweep(const Row& row, const std::vector<SweepPoint>& points, double default_step);

}  // namespace prenorm::gradcheck_rows
