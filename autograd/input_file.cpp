#include "autograd/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace prenorm {

InputFile::InputFile(const std::filesystem::path& path, std::string_view who)
    : who_(who),
      path_(path),
      // Without blocking, so that a pipe that nobody writes to is refused below instead of waited for.
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  require(file_.is_open(), "cannot open it: ", SystemError{});
  struct stat info {};
  require(::fstat(file_.get(), &info) == 0, "cannot look at it: ", SystemError{});
  require(S_ISREG(info.st_mode), "it is not a regular file");
  size_ = static_cast<std::uint64_t>(info.st_size);
}

void InputFile::read(void* out, std::uint64_t bytes, std::uint64_t offset) const {
  auto* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_.get(), next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, "cannot read it: ", SystemError{});
    require(got > 0, "it became shorter while it was read");
    next += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

}  // namespace prenorm
