// Each lesson shows its one thing, with the number, in what it prints and in the page; its page has a finite difference
// beside every gradient, and ✗ where the lesson plants a mistake and nowhere else.
//
//   lessons_test FOLDER SOURCE_ROOT LESSON
//
// runs the program FOLDER/LESSON.

#include <regex.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

int failures = 0;
void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  std::cout << "FAILED: " << what << '\n';
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The first group of every match of an extended regular expression; a dot is no line end. (By POSIX: in std::regex
// g++ 12 finds "uninitialized" members when it builds with sanitizers.)
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  regex_t regex;
  if (regcomp(&regex, pattern.c_str(), REG_EXTENDED | REG_NEWLINE) != 0) {
    expect(false, "the pattern " + pattern);
    return {};
  }
  std::vector<std::string> found;
  regmatch_t groups[2];
  for (const char* at = text.c_str(); regexec(&regex, at, 2, groups, 0) == 0 && groups[0].rm_eo > 0;) {
    found.emplace_back(at + groups[1].rm_so, at + groups[1].rm_eo);
    at += groups[0].rm_eo;
  }
  regfree(&regex);
  return found;
}

// The number in the first match; NaN where there is none.
double number(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> found = matches(text, pattern);
  expect(!found.empty(), "nothing that matches " + pattern);
  return found.empty() ? std::numeric_limits<double>::quiet_NaN() : std::stod(found[0]);
}

void expect_number(const std::string& text, const std::string& pattern, double low, double high) {
  const double value = number(text, pattern);
  expect(low <= value && value <= high, pattern + " is " + std::to_string(value));
}

struct Outcome {
  std::string out, err;
  int code = -1;
};
Outcome run(const fs::path& program, const std::string& arguments) {
  const int status = std::system(("'" + program.string() + "' " + arguments + " >out 2>err </dev/null").c_str());
  return {read("out"), read("err"), WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

// --- the page
const json* find(const json& page, const std::string& name) {
  for (const json& node : page["nodes"]) {
    if (node["name"] == name) return &node;
  }
  return nullptr;
}
std::vector<double> gradient_of(const json& page, const std::string& leaf) {
  const json* node = find(page, leaf);
  expect(node != nullptr, "the page has no " + leaf);
  return node == nullptr ? std::vector<double>{} : (*node)["cotangents"][0]["values"].get<std::vector<double>>();
}
double sum(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value;
  return total;
}
double length(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value * value;
  return std::sqrt(total);
}
// The fork at a value that has a name.
json fork_at(const json& page, const std::string& name) {
  const json* node = find(page, name);
  for (const json& fork : page["forks"]) {
    if (node != nullptr && fork["node"] == (*node)["id"]) return fork;
  }
  expect(false, "no fork at " + name);
  return json{{"parts", json::array()}};
}

void expect_page(const std::string& html, const std::set<std::string>& planted, json& page) {
  const std::string begin = "id=\"run\">";
  const std::size_t from = html.find(begin), to = html.find("</script>", from);
  if (from == std::string::npos || to == std::string::npos) return expect(false, "the page holds no run");
  page = json::parse(html.substr(from + begin.size(), to - from - begin.size()));
  expect(html.size() <= 1000000, "the page has " + std::to_string(html.size()) + " bytes");
  expect(!page["truncated"].get<bool>(), "tensors of the page were summarised for want of space");
  std::set<std::string> wrong;
  for (const json& node : page["nodes"]) {
    const std::string op = node["op"], verdict = node["verdict"], where = op + " " + node["id"].dump();
    const bool source = op == "leaf" || op == "constant";
    if (verdict == "wrong") {
      wrong.insert(op + " in " + node["scope"].get<std::string>());
    } else {
      expect(verdict == (source ? "none" : "ok"), where + " is " + verdict);
    }
    for (const json& check : node["checks"]) {
      if (!check.is_null()) expect(check["mode"] != "none", where + " is not checked");
    }
  }
  expect(wrong == planted, "✗ is not where it should be");
  expect(page["broken"].is_null() == planted.empty(), "what is said of planted faults");
}

// --- what each lesson shows
struct Expected {
  std::set<std::string> planted;  // "op in scope" where the page shows ✗
  std::function<void(const std::string& out, const json& page)> look;
};

const std::map<std::string, Expected> kLessons{
    {"01_scalar_chain_rule",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "agree to ([0-9.]+) digits", 9.5, 16);
        expect_number(out, "by hand .* = ([0-9.]+)", 0.498645487343, 0.498645487345);
        expect_number(out, "by backward .* = ([0-9.]+)", 0.498645487343, 0.498645487345);
        expect(std::abs(gradient_of(page, "x")[0] - 0.498645487344) < 1e-12, "the page's gradient");
      }}},
    {"02_fan_out",
     {{"leaf in wrong"},
      [](const std::string& out, const json& page) {
        expect_number(out, "with \\+= +dy/dx = ([0-9.]+)   difference 3.14705464   ✓", 3.1470546, 3.1470547);
        expect_number(out, "with = +dy/dx = ([0-9.]+)   difference 3.14705464   ✗", 1.5505493, 1.5505494);
        expect_number(out, "the engine's +dy/dx = ([0-9.]+)   difference 3.14705464   ✓", 3.1470546, 3.1470547);
        expect(std::abs(gradient_of(page, "right.x")[0] - 3.14705464) < 1e-8, "the page's gradient");
        expect(std::abs(gradient_of(page, "wrong.x")[0] - 1.55054930) < 1e-8, "the page's wrong gradient");
        expect(fork_at(page, "right.x")["parts"].size() == 2, "two parts at x");
      }}},
    {"03_tape",
     {{"sin in wrong"},
      [](const std::string& out, const json& page) {
        expect(matches(out, "in the order (. . .): .* ✓\n") == std::vector<std::string>{"L e h"}, "the right order");
        expect(matches(out, "in the order (. . .): .* ✗\n").size() == 5, "five wrong orders");
        expect_number(out, "in the order L e h: dL/dx = ([0-9.]+)", 2.4516255, 2.4516256);
        const double wrong = number(out, "in the order L h e: dL/dx = ([0-9.]+)");
        expect(std::abs(gradient_of(page, "wrong.x")[0] - wrong) < 1e-8, "the page's wrong order is the printed one");
        expect(std::abs(gradient_of(page, "right.x")[0] - 2.45162555) < 1e-8, "the page's gradient");
      }}},
    {"04_matmul_and_broadcasting",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "largest differences: dW ([0-9.e+-]+)", 0, 1e-12);
        expect_number(out, "largest differences: .* dX ([0-9.e+-]+)", 0, 1e-12);
        expect_number(out, "largest differences: .* db ([0-9.e+-]+)", 0, 1e-12);
        expect(gradient_of(page, "W").size() == 8 && gradient_of(page, "b").size() == 4, "the gradients' shapes");
        expect_number(out, "db, by backward +(\\S+)", -1.2427, -1.2425);
      }}},
    {"05_trusting_a_check",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "the bottom of the V: error (\\S+)", 0, 1e-8);
        expect_number(out, "the bottom of the V: .* h = (\\S+)", 0.99e-7, 1.01e-4);
        expect_number(out, "h = 1e-01   (\\S+)", 1e-3, 1);
        expect_number(out, "h = 1e-11   (\\S+)", 1e-7, 1);
        expect(page["note"].get<std::string>().find("h = 1e-06: ") != std::string::npos, "the V in the page's note");
      }}},
    {"06_softmax_and_cross_entropy",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "largest difference of the gradients (\\S+),", 0, 1e-12);
        expect_number(out, "largest \\|row sum\\| (\\S+)\n", 0, 1e-12);
        const std::vector<double> dz = gradient_of(page, "z");
        expect(length(dz) > 0.1 && std::abs(sum(dz)) < 1e-12, "the page's gradient");
      }}},
    {"07_layer_norm",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "dx sums to (\\S+);", 0, 1e-12);
        expect_number(out, "dx \\. y is (\\S+),", 0, 1e-5);
        expect(matches(out, "(unbiased.* 1\\.5000  -0\\.5000  -0\\.5000  -0\\.5000)\n").size() == 1,
               "the unbiased form");
        expect(matches(out, "(standard.* 1\\.7320  -0\\.5773  -0\\.5773  -0\\.5773)\n").size() == 1,
               "the standard form");
        expect(matches(out, "= their sum +(.*)\n") == matches(out, "dx, by backward +(.*)\n"), "the routes' sum is dx");
        expect(fork_at(page, "x")["parts"].size() == 3, "three routes meet at x");
        expect(std::abs(sum(gradient_of(page, "x"))) < 1e-12, "the page's gradient sums to zero");
      }}},
    {"08_fused_layer_norm",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "largest difference from lesson 7's primitives: (\\S+)", 0, 1e-12);
        expect_number(out, "ratio of their lengths: (\\S+)", 0.4999, 0.5001);
        expect(matches(out, "= dx +(.*)\n") == matches(out, "dx, by backward +(.*)\n"), "the parts give dx");
        expect(page["norms"].size() == 1 && !page["norms"][0]["mean_part"].is_null(), "the norm's parts in the page");
      }}},
    {"09_residual",
     {{},
      [](const std::string& out, const json& page) {
        expect(matches(out, "their sum +(.*)\n") == matches(out, "dL/dx, by backward +(.*)\n"), "I g + J^T g is dL/dx");
        const double with = number(out, "with the skip +\\|dL/dx\\| = (\\S+)");
        const double without = number(out, "without +\\|dL/dx\\| = (\\S+)");
        expect(with > 1 && without < 0.1, "the gradient with and without the skip");
        expect(std::abs(length(gradient_of(page, "with_skip.x")) - with) < 1e-3, "the page's gradient");
        expect(std::abs(length(gradient_of(page, "without.x")) - without) < 1e-3, "the page's gradient without");
        expect(matches(out, "  \\[(=*~*)\\]  skip").size() == 4, "four bars");
        expect(page["paths"].size() == 1 && page["paths"][0]["stream"].size() == 16, "the page's residual stream");
        expect(std::abs(page["paths"][0]["sum"].get<double>() - 1) < 1e-12, "the shares add up to 1");
        const json parts = fork_at(page, "with_skip.x")["parts"];
        expect(parts.size() == 2 && parts[0]["role"] == "skip" && parts[1]["role"] == "branch", "skip and branch");
      }}},
    {"10_causal_attention",
     {{},
      [](const std::string& out, const json& page) {
        expect(
            matches(out, "exactly zero, of the 15 to later positions: ([0-9]+)") == std::vector<std::string>{"15", "0"},
            "zeros with and without the mask");
        const std::vector<double> dx = gradient_of(page, "x");
        expect(dx.size() == 24 && std::all_of(dx.begin() + 12, dx.end(), [](double v) { return v == 0; }),
               "rows 3 to 5 of the page's gradient are zero");
        expect(std::all_of(dx.begin(), dx.begin() + 12, [](double v) { return v != 0; }), "rows 0 to 2 are not");
      }}},
    {"11_pre_and_post_norm",
     {{},
      [](const std::string& out, const json& page) {
        const std::vector<std::string> slopes = matches(out, "  slope (\\S+)\n");
        expect(slopes.size() == 2, "two slopes");
        if (slopes.size() != 2) return;
        const double pre = std::stod(slopes[0]), post = std::stod(slopes[1]);
        expect(-0.6 <= pre && pre <= -0.3, "the pre-norm slope " + slopes[0]);
        expect(-0.15 <= post && post <= 0.15, "the post-norm slope " + slopes[1]);
        expect(page["paths"].size() == 2 && page["norms"].size() == 9, "two stacks in the page");
      }}},
    {"12_train",
     {{},
      [](const std::string& out, const json& page) {
        expect_number(out, "loss (\\S+) at the first step", 2, 3.5);
        expect_number(out, "at the first step, (\\S+) at step 150", 0, 0.1);
        const std::vector<std::string> crossed = matches(out, "on average (\\S+) branches");
        expect(crossed.size() == 2, "path lengths before and after");
        if (crossed.size() == 2) expect(std::stod(crossed[1]) > std::stod(crossed[0]), "training lengthens the ways");
        for (const std::string& shares : matches(out, "    (0: .* 6: \\S+)\n")) {
          double total = 0;
          for (const std::string& share : matches(shares, "[0-9]: (\\S+)")) total += std::stod(share);
          expect(std::abs(total - 1) < 0.005, "the shares add up to 1: " + shares);
        }
        expect(matches(out, "    block [0-2] \\|(.{50})\\|\n").size() == 3, "the heat-map");
        const std::vector<std::string> attention = matches(out, "    at [0-7] \\|(.{16})\\|\n");
        expect(attention.size() == 8, "the attention map");
        for (std::size_t t = 0; t < attention.size(); ++t) {
          expect(attention[t].substr(2 * t + 2).find_first_not_of(' ') == std::string::npos, "no look at what comes");
        }
        expect(page["paths"].size() == 1 && page["paths"][0]["stream"].size() == 6, "the page's residual stream");
      }}},
};

void check_command_line(const fs::path& program) {
  const Outcome help = run(program, "--help");
  expect(help.code == 0 && help.out.find("--html FILE") != std::string::npos && help.err.empty(), "--help");
  const auto one_line = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n') == 1; };
  for (const char* wrong : {"--nothing", "--html", "--html=", "file.html", "--html ''"}) {
    const Outcome outcome = run(program, wrong);
    expect(outcome.code == 2 && outcome.out.empty() && one_line(outcome.err), std::string("the command line ") + wrong);
  }
  const Outcome nowhere = run(program, "--html /nowhere/at/all.html");
  expect(nowhere.code == 1 && one_line(nowhere.err), "a page that cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || !kLessons.contains(argv[3])) {
    std::cerr << "usage: lessons_test FOLDER SOURCE_ROOT LESSON\n";
    return 2;
  }
  const std::string name = argv[3];
  const fs::path program = fs::absolute(fs::path(argv[1]) / name), root = fs::absolute(argv[2]);
  const fs::path folder = fs::temp_directory_path() / ("prenorm_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::current_path(folder);
  const Expected& expected = kLessons.at(name);

  const Outcome plain = run(program, "");
  expect(plain.code == 0 && plain.err.empty(), "the run: " + plain.err);
  const std::string start = "Lesson " + std::to_string(std::stoi(name)) + ": ";
  expect(plain.out.starts_with(start), "the title");

  const Outcome with_page = run(program, "--html page.html");
  expect(with_page.code == 0 && with_page.out.starts_with(plain.out), "the run with a page prints the same");
  json page;
  expect_page(read("page.html"), expected.planted, page);
  if (!page.is_null()) {
    expect(page["title"].get<std::string>().starts_with(start), "the page's title");
    expect(!page["note"].get<std::string>().empty(), "the page's note");
    expected.look(plain.out, page);
  }
  check_command_line(program);

  // The index: the lesson is in it, with a picture that is small.
  const std::string index = read(root / "examples/lessons/README.md");
  expect(index.find("(" + name + ".cpp)") != std::string::npos, "the index names the lesson");
  const std::vector<std::string> pictures = matches(index, "\\((pictures/" + name + "\\.[a-z]+)\\)");
  expect(pictures.size() == 1, "the index shows a picture");
  for (const std::string& picture : pictures) {
    const fs::path path = root / "examples/lessons" / picture;
    expect(fs::exists(path) && fs::file_size(path) < 60000, picture + " is there and small");
  }
  const std::string source = read(root / "examples/lessons" / (name + ".cpp"));
  expect(std::count(source.begin(), source.end(), '\n') <= 120, "the lesson is short");

  fs::current_path("/");
  fs::remove_all(folder);
  std::cout << (failures == 0 ? "all is as it should be\n" : "");
  return failures == 0 ? 0 : 1;
}
