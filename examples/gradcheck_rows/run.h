// Runs the rows of the proof.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/gradcheck.h"
#include "gradcheck_rows/rows.h"

namespace prenorm::gradcheck_rows {

struct Result {
  bool passed = true;
  std::vector<std::string> shapes;    // one a case
  std::vector<std::string> messages;  // of the cases that failed
  std::int64_t elements = 0;          // compared, both orders
  double worst_first = 0, worst_second = 0;
  bool second_order = false;  // whether any case was checked to order 2
  double seconds = 0;
};

// The same inputs for each run with the same seed, whichever other rows run.
Cases cases_of(const Row& row, std::uint64_t seed);

Result run(const Row& row, std::uint64_t seed);

// The ops that the row's functions and their derivatives ran: name and file.
std::set<std::pair<std::string, std::string>> ops_of(const Row& row, std::uint64_t seed);

// The worst error of all cases, by step.
std::vector<SweepPoint> sweep(const Row& row, std::uint64_t seed);

}  // namespace prenorm::gradcheck_rows
