// Files that are replaced as a whole or not at all: checkpoints, reports, pages.
//
//   AtomicFile file("step.html", "write_html");
//   file.write(page);
//   file.commit();
//
// The content goes into a temporary file ".NAME.PID-N.tmp" in the same folder, which commit() puts on the disk (fsync)
// and then in the place of the old file (rename). A reader sees the old file or the new one, also when the process is
// killed, the disk is full or the machine stops. A killed process leaves its temporary file behind; the next AtomicFile
// of the same name removes it. It knows one that is still being written, by whatever process, by the lock (flock) that
// its writer holds.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/check.h"
#include "autograd/descriptor.h"

namespace prenorm {

class AtomicFile {
 public:
  // Begins new content for the file `path`. Messages of errors begin with `who` and the path. An existing file has to
  // be a regular one that may be written, and keeps its permissions; a symbolic link keeps its place: the file it leads
  // to is replaced. Throws Error where this cannot work out.
  AtomicFile(const std::filesystem::path& path, std::string_view who);
  // Without commit(), nothing has happened.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // When it returns, the new content is on the disk and in its place. To be called once, last.
  void commit();

 private:
  template <class... Parts>
  void require(bool ok, const Parts&... reason) const {
    check(ok, who_, ": ", path_, ": ", reason...);
  }
  std::filesystem::path follow_links(std::filesystem::path path) const;
  int open_folder() const;
  bool is_temporary(std::string_view name) const;
  void remove_left_behind() const;
  void create_temporary();
  void keep_permissions() const;

  std::string who_;
  std::filesystem::path path_, target_;
  Descriptor folder_;
  std::string name_;
  std::optional<struct stat> replaced_;
  std::string temporary_;  // its name; empty: there is none
  Descriptor file_;
};

// The whole content at once.
void write_file(const std::filesystem::path& path, std::string_view content, std::string_view who = "write_file");

}  // namespace prenorm
