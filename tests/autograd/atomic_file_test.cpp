#include "autograd/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "files.h"

namespace prenorm {
namespace {

namespace fs = std::filesystem;

// Whether writing fails with this word, and leaves the folder with as many files as before.
bool refuses(const Folder& folder, const fs::path& path, std::string_view word, std::string_view content = "new") {
  const std::size_t files = folder.files();
  const std::string message = error_of([&] { write_file(path, content); });
  const bool refused = message.starts_with("write_file: ") && message.find(word) != std::string::npos &&
                       message.find(path.string()) != std::string::npos;
  if (!refused) MESSAGE("got: ", message);
  return refused && folder.files() == files;
}

TEST_CASE("the file is there after commit, not before") {
  const Folder folder;
  put(folder / "a", "old");
  {
    AtomicFile file(folder / "a", "test");
    file.write("new ");
    file.write("content");
    CHECK(get(folder / "a") == "old");
    CHECK(folder.files() == 2);
    file.commit();
    CHECK(get(folder / "a") == "new content");
  }
  { AtomicFile(folder / "a", "test").write("given up"); }
  CHECK(get(folder / "a") == "new content");
  CHECK(folder.files() == 1);
  write_file(folder / "b", "");
  CHECK(get(folder / "b").empty());
  CHECK(folder.files() == 2);
}

TEST_CASE("what cannot be written is refused before anything happens") {
  const Folder folder;
  put(folder / "a", "old");
  CHECK(refuses(folder, folder / "none" / "a", "No such file"));
  CHECK(refuses(folder, folder / "a" / "b", "Not a directory"));
  CHECK(refuses(folder, folder / "", "expected the name of a file"));
  fs::create_directory(folder / "folder");
  CHECK(refuses(folder, folder / "folder", "not a regular file"));
  CHECK(refuses(folder, "/dev/null", "not a regular file"));
  CHECK(get(folder / "a") == "old");
}

TEST_CASE("when there is no room the old file stays and nothing is left behind") {
  const Folder folder;
  put(folder / "a", "old");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  for (rlim_t room : {0, 8, 100, 4096}) {
    CAPTURE(room);
    const rlimit small{room, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const bool refused = refuses(folder, folder / "a", "cannot write it: File too large", std::string(10000, 'x'));
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(refused);
    CHECK(get(folder / "a") == "old");
  }
  std::signal(SIGXFSZ, handler);
}

TEST_CASE("permissions: as the system gives them to a new file, as they were for an old one") {
  const Folder folder;
  const auto mode = [&] { return fs::status(folder / "a").permissions(); };
  const mode_t mask = ::umask(027);
  write_file(folder / "a", "new");
  ::umask(mask);
  CHECK(mode() == fs::perms{0640});
  for (int kept : {0600, 0664, 0755}) {
    fs::permissions(folder / "a", fs::perms{static_cast<unsigned>(kept)});
    write_file(folder / "a", "newer");
    CHECK(mode() == fs::perms{static_cast<unsigned>(kept)});
  }
  if (::geteuid() == 0) return;  // root may write to everything
  fs::permissions(folder / "a", fs::perms{0444});
  CHECK(refuses(folder, folder / "a", "may not be written"));
}

TEST_CASE("a symbolic link stays one, and what it leads to is replaced") {
  const Folder folder;
  fs::create_directory(folder / "inner");
  put(folder / "inner" / "file", "old");
  fs::create_symlink(fs::path("inner") / "file", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "chain");
  write_file(folder / "chain", "new");
  CHECK(fs::is_symlink(folder / "relative"));
  CHECK(fs::is_symlink(folder / "chain"));
  CHECK(get(folder / "inner" / "file") == "new");

  fs::create_symlink("later", folder / "dangling");
  write_file(folder / "dangling", "new");
  CHECK(fs::is_symlink(folder / "dangling"));
  CHECK(get(folder / "later") == "new");

  fs::create_symlink("round", folder / "round");
  CHECK(refuses(folder, folder / "round", "circles"));
}

TEST_CASE("a name of the greatest length, and one without a folder") {
  const Folder folder;
  const std::string name(255, 'n');
  write_file(folder / name, "new");
  CHECK(get(folder / name) == "new");

  const fs::path before = fs::current_path();
  fs::current_path(folder / ".");
  write_file("here", "new");
  fs::current_path(before);
  CHECK(get(folder / "here") == "new");
}

TEST_CASE("readers see a whole file while others write it") {
  const Folder folder;
  const auto content = [](int value) { return std::string(10000, static_cast<char>('a' + value)); };
  put(folder / "a", content(0));
  std::vector<std::thread> writers;
  for (int writer = 1; writer <= 2; ++writer) {
    writers.emplace_back([&folder, &content, writer] {
      for (int i = 0; i < 20; ++i) write_file(folder / "a", content(writer));
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::string seen = get(folder / "a");
    REQUIRE(seen.size() == 10000);
    REQUIRE(seen == std::string(10000, seen[0]));
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(folder.files() == 1);
}

TEST_CASE("what a killed process left behind is removed by the next of that name, and nothing else") {
  const Folder folder;
  put(folder / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "a", "test");
    file.write("half");
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(get(folder / "a") == "old");
  const std::string left = ".a." + std::to_string(child) + "-";
  const auto is_left = [&] {
    for (const auto& entry : fs::directory_iterator(folder / "."))
      if (entry.path().filename().string().starts_with(left)) return true;
    return false;
  };
  CHECK(is_left());
  const std::vector<std::string> others = {".a.1-2.tmp~", ".a.x-2.tmp", ".a.1.tmp",
                                           ".a.-.tmp",    ".b.1-2.tmp", "a.1-2.tmp"};
  for (const std::string& other : others) put(folder / other, "");
  fs::create_symlink("none", folder / ".a.7-7.tmp");

  write_file(folder / "b", "b");
  CHECK(is_left());  // another name's
  write_file(folder / "a", "new");
  CHECK_FALSE(is_left());
  CHECK(get(folder / "a") == "new");
  CHECK(fs::exists(folder / ".b.1-2.tmp") == false);
  for (const std::string& other : others)
    if (other != ".b.1-2.tmp") CHECK_MESSAGE(fs::exists(folder / other), other);
  CHECK(fs::is_symlink(folder / ".a.7-7.tmp"));
}

TEST_CASE("killed at any moment of a save, the file is the old one or the new one") {
  const Folder folder;
  const auto content = [](char c) { return std::string(300'000, c); };
  put(folder / "a", content('a'));
  std::set<fs::path> left;  // by kills in the middle of a save
  for (int kill = 0; kill < 100; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (char c = 'b';; c = c == 'z' ? 'b' : static_cast<char>(c + 1)) write_file(folder / "a", content(c));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(kill * 37 % 3001));
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    const std::string seen = get(folder / "a");
    REQUIRE(seen == content(seen[0]));
    REQUIRE(folder.files() <= 2);
    for (const auto& entry : fs::directory_iterator(folder / "."))
      if (entry.path().filename() != "a") left.insert(entry.path());
  }
  MESSAGE("killed 100 times, ", left.size(), " of them in the middle of a save");
  write_file(folder / "a", "last");
  CHECK(get(folder / "a") == "last");
  CHECK(folder.files() == 1);
}

TEST_CASE("what is being written by someone is not taken for left behind") {
  const Folder folder;
  AtomicFile first(folder / "a", "test");
  first.write("first");
  write_file(folder / "a", "second");
  CHECK(get(folder / "a") == "second");
  first.commit();
  CHECK(get(folder / "a") == "first");
  CHECK(folder.files() == 1);
}

}  // namespace
}  // namespace prenorm
