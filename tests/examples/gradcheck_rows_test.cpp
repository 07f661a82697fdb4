// The proof is whole: every op with a derivative in autograd/ops/ and every layer in nn/ has a row in
// examples/gradcheck_rows/, and the row runs it.
//
//   gradcheck_rows_test GRADCHECK SOURCE_ROOT
//
// runs the program GRADCHECK and compares what it writes with the sources.

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

int failures = 0;
void fail(const std::string& what) {
  ++failures;
  std::cout << "FAILED: " << what << '\n';
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Without comments, in which examples may stand.
std::string code_of(const fs::path& path) { return std::regex_replace(read(path), std::regex("//[^\\n]*"), ""); }

// The first group of every match.
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) found.push_back((*i)[1]);
  return found;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Every op that a node in the file is the derivative of: the names that its OpInfos have. An op in two forms may have
// two of them.
std::set<std::pair<std::string, std::string>> declared_ops(const fs::path& root) {
  std::set<std::pair<std::string, std::string>> ops;
  for (const fs::path& path : files_in(root / "autograd/ops")) {
    const std::string text = code_of(path), file = fs::relative(path, root).string();
    const std::size_t nodes = matches(text, R"(struct (\w+)[^;{]*: (?:public )?Node \{)").size();
    const std::vector<std::string> names = matches(text, R"re(\.name = "([^"]+)")re");
    if (names.size() < nodes) fail(file + " has more nodes than names for them");
    for (const std::string& name : names) ops.emplace(name, file);
  }
  return ops;
}

std::set<std::string> declared_layers(const fs::path& root) {
  std::set<std::string> layers;
  for (const fs::path& path : files_in(root / "nn")) {
    for (const std::string& name : matches(code_of(path), R"((?:class|struct) (\w+)[^;{]*: (?:public )?Layer<)")) {
      layers.insert(name);
    }
  }
  return layers;
}

std::string quoted(const std::string& text) { return "'" + std::regex_replace(text, std::regex("'"), "'\\''") + "'"; }

// What the command prints, and its exit code.
std::pair<std::string, int> output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {"", -1};
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  const int status = pclose(pipe);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

void compare(const nlohmann::json& rows, const fs::path& root) {
  for (const auto& declared : declared_ops(root)) {
    const auto& name = declared.first;
    const auto& file = declared.second;
    const bool found = std::any_of(rows.begin(), rows.end(), [&](const nlohmann::json& row) {
      const nlohmann::json op{{"name", name}, {"file", file}};
      return row["file"] == file && std::count(row["ops"].begin(), row["ops"].end(), op) > 0;
    });
    if (!found) fail("the op " + name + " in " + file + " has no row of that file that runs it");
  }
  for (const std::string& layer : declared_layers(root)) {
    const bool found =
        std::any_of(rows.begin(), rows.end(), [&](const nlohmann::json& row) { return row["name"] == layer; });
    if (!found) fail("the layer " + layer + " has no row");
  }
  for (const nlohmann::json& row : rows) {
    const std::string title = row["name"].get<std::string>() + ", " + row["variant"].get<std::string>();
    if (!row["passed"].get<bool>()) fail(title + " is wrong: " + row["messages"].dump());
    if (row["elements"].get<int>() == 0) fail(title + " compares nothing");
    if (!fs::exists(root / row["file"].get<std::string>())) fail(title + " names a file that is not there");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: gradcheck_rows_test GRADCHECK SOURCE_ROOT\n";
    return 2;
  }
  const std::string program = quoted(argv[1]);
  char json[] = "gradcheck_rows_test.XXXXXX";
  const int file = mkstemp(json);
  if (file < 0) {
    std::cerr << "gradcheck_rows_test: cannot write here\n";
    return 2;
  }
  const auto [table, code] = output_of(program + " --json " + json);
  std::cout << table;
  const nlohmann::json document = nlohmann::json::parse(read(json), nullptr, false);
  fs::remove(json);
  if (code != 0) fail("the program ended with " + std::to_string(code));
  if (document.is_discarded() || document["rows"].empty()) {
    fail("the program wrote no rows");
    return 1;
  }
  compare(document["rows"], argv[2]);

  const auto [list, list_code] = output_of(program + " --list");
  const auto lines = std::count(list.begin(), list.end(), '\n');
  if (list_code != 0 || lines != static_cast<std::ptrdiff_t>(document["rows"].size())) {
    fail("--list has " + std::to_string(lines) + " rows, not " + std::to_string(document["rows"].size()));
  }
  if (output_of(program + " --only no_such_op 2>&1").second != 2) fail("--only takes a name that is not there");

  std::cout << (failures == 0 ? "every op and layer has its row\n" : "the rows are not whole\n");
  return failures == 0 ? 0 : 1;
}
