// What the readers and writers of files share: an open file that closes itself, and the system's reason for a failure.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

namespace prenorm {

// Prints what errno says. An object rather than a call: arguments may be evaluated before the system call beside them.
struct SystemError {};
inline std::ostream& operator<<(std::ostream& out, SystemError) { return out << std::strerror(errno); }

// A file or folder, closed at the end of its block.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  // False if the system had an error to report that it had kept back until now.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace prenorm
