// A file that is read at places of one's choice, for the readers of formats. What it says is input from outside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "autograd/check.h"
#include "autograd/descriptor.h"

namespace prenorm {

class InputFile {
 public:
  // Messages of errors begin with `who` and the path. Throws Error unless it is a regular file that can be opened.
  InputFile(const std::filesystem::path& path, std::string_view who);

  // In bytes, when it was opened.
  std::uint64_t size() const { return size_; }

  // Throws Error where the file has become too short meanwhile.
  void read(void* out, std::uint64_t bytes, std::uint64_t offset) const;

  // check() with "who: path: " in front.
  template <class... Parts>
  void require(bool ok, const Parts&... reason) const {
    check(ok, who_, ": ", path_, ": ", reason...);
  }

 private:
  std::string who_;
  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace prenorm
