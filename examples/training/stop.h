// Ctrl-C and its like. Until stop_later() is called, SIGINT, SIGTERM, SIGHUP and SIGUSR1 (which mpirun passes on,
// without killing after a while) end the program at once, with the exit code that a shell gives such an end: 128 +
// signal. Afterwards they only leave a note, which loops ask for, so that work can be saved; a second one ends the
// program at once.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace prenorm::training {
namespace detail {

// Handlers may use atomics without a lock, and few functions of the system.
inline std::atomic<bool> stops_later{false};
inline std::atomic<int> stop_signal{0};
inline std::atomic<std::int64_t> stop_time{0};  // milliseconds

inline void on_stop(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t time = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  // `timeout` and service managers send a signal to a process and to its group: twice to us, at about the same time.
  constexpr std::int64_t echo = 500;
  if (!stops_later || (stop_signal != 0 && time - stop_time > echo)) _exit(128 + signal);
  if (stop_signal != 0) return;
  stop_time = time;
  stop_signal = signal;
}

}  // namespace detail

// To be called once, at the start.
inline void watch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = detail::on_stop;
  action.sa_flags = SA_RESTART;  // so that no read or write in progress fails
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // else this runs under nohup
}

inline constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

inline void stop_later() { detail::stops_later = true; }

// The signal that asked for the end, or 0.
inline int stop_signal() { return detail::stop_signal; }

}  // namespace prenorm::training
