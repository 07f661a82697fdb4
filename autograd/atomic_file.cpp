#include "autograd/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace prenorm {
namespace {

namespace fs = std::filesystem;

// Cut, so that a name of the greatest length leaves room for the rest.
std::string temporary_prefix(const std::string& name) { return "." + name.substr(0, 200) + "."; }

// Removes a number from the front.
bool skip_number(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

// True if both are there and the same file.
bool same_file(const Descriptor& folder, const std::string& name, const Descriptor& file) {
  struct stat named {
  }, open{};
  return ::fstatat(folder.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(file.get(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path, std::string_view who)
    : who_(who), path_(path), target_(follow_links(path)), folder_(open_folder()), name_(target_.filename().string()) {
  struct stat info {};
  if (::fstatat(folder_.get(), name_.c_str(), &info, 0) == 0) {
    require(S_ISREG(info.st_mode), "there is something else of that name, not a regular file");
    require(::faccessat(folder_.get(), name_.c_str(), W_OK, AT_EACCESS) == 0,
            "it is there and may not be written: ", SystemError{});
    replaced_ = info;
  } else {
    require(errno == ENOENT, "cannot look at it: ", SystemError{});
  }
  remove_left_behind();  // before anything is written: a full disk may need the room
  create_temporary();
  try {
    keep_permissions();
  } catch (...) {
    ::unlinkat(folder_.get(), temporary_.c_str(), 0);  // the destructor of a half-made object does not run
    throw;
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_.get(), next, bytes);
    if (written < 0 && errno == EINTR) continue;
    require(written >= 0, "cannot write it: ", SystemError{});
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  // On the disk before the name leads to it: the other way round, a crash could leave an empty file under the name.
  require(::fsync(file_.get()) == 0, "cannot write it to the disk: ", SystemError{});
  // The lock has to outlive close(), whose errors count, until the name is no longer that of a temporary file.
  const Descriptor lock(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  require(lock.is_open() && file_.close(), "cannot write it: ", SystemError{});
  require(::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) == 0,
          "cannot put the new file in its place: ", SystemError{});
  temporary_.clear();
  // Some file systems have no fsync for folders and say so by EINVAL.
  require(::fsync(folder_.get()) == 0 || errno == EINVAL,
          "it is in place, but its folder cannot be written to the disk: ", SystemError{});
}

// The file that a symbolic link leads to, at the end of a chain, there or not.
fs::path AtomicFile::follow_links(fs::path path) const {
  std::error_code ignored;
  for (int links = 0; fs::is_symlink(path, ignored); ++links) {
    require(links < 40, "its symbolic links go in circles");
    const fs::path next = fs::read_symlink(path, ignored);
    require(!next.empty(), "cannot follow its symbolic link");
    path = path.parent_path() / next;  // an absolute `next` replaces all of it
  }
  return path;
}

// Held open, so that all that follows happens in one and the same folder.
int AtomicFile::open_folder() const {
  require(target_.has_filename(), "expected the name of a file");
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  const int number = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require(number >= 0, "cannot open the folder ", folder, ": ", SystemError{});
  return number;
}

bool AtomicFile::is_temporary(std::string_view name) const {
  const std::string prefix = temporary_prefix(name_);
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (!skip_number(name) || !name.starts_with('-')) return false;
  name.remove_prefix(1);
  return skip_number(name) && name == ".tmp";
}

// What cannot be looked at or removed stays: it is in nobody's way.
void AtomicFile::remove_left_behind() const {
  const int number = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (number < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(number), ::closedir);
  if (!folder) {
    ::close(number);
    return;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (!is_temporary(name)) continue;
    const Descriptor file(::openat(folder_.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;  // its writer is at work
    if (same_file(folder_, name, file)) ::unlinkat(folder_.get(), name.c_str(), 0);
  }
}

// Sets temporary_ and file_, which is locked.
void AtomicFile::create_temporary() {
  static std::atomic<std::uint64_t> counter{0};
  // Of someone else's file nobody else shall read the new content before it has that file's permissions.
  const mode_t mode = replaced_ ? S_IRUSR | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  errno = EEXIST;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name =
        temporary_prefix(name_) + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    file_ = Descriptor(::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file_.is_open()) {
      if (errno != EEXIST) break;
      continue;
    }
    // In the moment before the lock somebody may have taken the file for left behind: then another is made. Where the
    // file system has no locks, nobody can.
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (!same_file(folder_, name, file_)) continue;
    temporary_ = name;
    return;
  }
  require(false, "cannot create a temporary file beside it: ", SystemError{});
}

void AtomicFile::keep_permissions() const {
  if (!replaced_) return;
  // Only root can give a file away; anyone else's new file is their own.
  [[maybe_unused]] const int given = ::fchown(file_.get(), replaced_->st_uid, replaced_->st_gid);
  require(::fchmod(file_.get(), replaced_->st_mode & 0777) == 0, "cannot set its permissions: ", SystemError{});
}

void write_file(const fs::path& path, std::string_view content, std::string_view who) {
  AtomicFile file(path, who);
  file.write(content);
  file.commit();
}

}  // namespace prenorm
