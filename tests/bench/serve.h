// How the programs that are timed talk to the one that compares them: each is a process of its own that warms up, says
// so, and then runs so many steps as it is told, line by line, so that several can take turns.
//
//   out  {"ready": "…"}
//   in   5                                      run five steps
//   out  [1.2, 1.1, 1.1, 1.3, 1.2]              milliseconds of each
//   …    until the input ends
//   out  {"first_loss": …, "last_loss": …, "peak_mib": …}
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace prenorm::bench {

inline long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Times are multiplied by `factor`, for a step that stands for more or less work than it does.
inline void serve(const std::function<std::optional<double>()>& step, int warm_up, const std::string& name,
                  double factor = 1) {
  std::optional<double> first, last;
  const auto run = [&] {
    last = step();
    if (!first) first = last;
  };
  for (int i = 0; i < warm_up; ++i) run();
  std::cout << nlohmann::json{{"ready", name}} << std::endl;
  for (int steps; std::cin >> steps;) {
    nlohmann::json times = nlohmann::json::array();
    for (int i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
      times.push_back(time.count() * factor);
    }
    std::cout << times << std::endl;
  }
  nlohmann::json end{{"peak_mib", peak_mib()}, {"first_loss", nullptr}, {"last_loss", nullptr}};
  if (first) end["first_loss"] = *first;
  if (last) end["last_loss"] = *last;
  std::cout << end << std::endl;
}

}  // namespace prenorm::bench
