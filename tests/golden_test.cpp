// Compares the library with results of PyTorch: every file of a folder, by what it says it is.
//
//   golden_test [--golden DIR] [--only KIND]

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/golden_case.h"

namespace prenorm::golden {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path folder = fs::path(PRENORM_SOURCE_DIR) / "tests/golden";
  std::string only;  // empty: all kinds
};

struct Counts {
  int passed = 0, failed = 0, unknown = 0;
};

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.passed << " passed, " << counts.failed << " failed, " << counts.unknown << " unknown";
}

std::vector<fs::path> golden_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Null where no handler is known.
Handler find_handler(const Case& c) {
  const bool is_op = c.kind() == "op";
  const std::string name = is_op ? c.config().at("op").get<std::string>() : c.kind();
  for (const Handlers* handlers :
       {is_op ? &op_handlers() : &layer_handlers(), is_op ? nullptr : &training_handlers()}) {
    if (handlers == nullptr) continue;
    if (const auto found = handlers->find(name); found != handlers->end()) return found->second;
  }
  return nullptr;
}

// The file's kind as its name states it, for files that cannot be read.
std::string kind_in_name(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.substr(0, name.find('.'));
}

void run(const fs::path& file, std::map<std::string, Counts>& counts) {
  std::vector<std::string> faults;
  std::string kind = kind_in_name(file);
  try {
    Case c(file);
    kind = c.kind();
    const Handler handler = find_handler(c);
    if (handler == nullptr) {
      ++counts[kind].unknown;
      return;
    }
    handler(c);
    faults = c.faults();
  } catch (const std::exception& error) {
    faults.push_back(error.what());
  }
  ++(faults.empty() ? counts[kind].passed : counts[kind].failed);
  for (const std::string& fault : faults) std::cout << "FAILED " << file.filename().string() << ": " << fault << '\n';
}

// 0: all passed (unknown ones aside), 1: not so, or there was no file.
int run_all(const Options& options) {
  std::map<std::string, Counts> counts;
  for (const fs::path& file : golden_files(options.folder)) {
    if (options.only.empty() || kind_in_name(file) == options.only) run(file, counts);
  }
  Counts all;
  for (const auto& [kind, of_kind] : counts) {
    std::cout << std::left << std::setw(26) << kind << of_kind << '\n';
    all.passed += of_kind.passed;
    all.failed += of_kind.failed;
    all.unknown += of_kind.unknown;
  }
  if (counts.empty()) std::cout << "FAILED: no such file in " << options.folder.string() << '\n';
  std::cout << all << '\n';
  return all.failed > 0 || counts.empty() ? 1 : 0;
}

}  // namespace
}  // namespace prenorm::golden

int main(int argc, char** argv) {
  prenorm::golden::Options options;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--golden" && has_value) {
      options.folder = arguments[i + 1];
    } else if (arguments[i] == "--only" && has_value) {
      options.only = arguments[i + 1];
    } else {
      std::cerr << "usage: golden_test [--golden DIR] [--only KIND]\n";
      return 2;
    }
  }
  try {
    return prenorm::golden::run_all(options);
  } catch (const std::exception& error) {
    std::cerr << "golden_test: " << error.what() << '\n';
    return 1;
  }
}
