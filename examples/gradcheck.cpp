// The proof: every op and every layer, with each of its optional arguments, against finite differences.
//
// The rows stand in gradcheck_rows/, one file a family.

#include "autograd/gradcheck.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "gradcheck_rows/report.h"
#include "gradcheck_rows/rows.h"
#include "gradcheck_rows/run.h"

namespace {

using namespace prenorm;
using namespace prenorm::gradcheck_rows;

struct Options {
  std::vector<std::string> only;
  std::string sweep, json;
  std::uint64_t seed = 0;
  bool list = false;
};

// Returns the exit code where there is nothing to run.
std::optional<int> parse(int argc, char** argv, Options& o) {
  CLI::App app(
      "Checks the derivatives of every op and layer, with each of their optional arguments, against finite\n"
      "differences, to order 2, and prints a table. Exits 1 if any is wrong.",
      "gradcheck");
  app.get_formatter()->column_width(22);
  app.add_option("--only", o.only, "Only this op or layer, or those that begin so; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_flag("--list", o.list, "List the rows, and the files in which their backwards stand");
  app.add_option("--sweep", o.sweep, "Print the error of this op or layer against the step of the differences")
      ->type_name("NAME")
      ->excludes("--only");
  app.add_option("--json", o.json, "Write the table to this file as well")->type_name("FILE");
  app.add_option("--seed", o.seed, "Of inputs, weights and cotangents")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{0xffffffff}).description(""))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "gradcheck: %s; --help lists the options\n", error.what());
    return 2;
  }
  return std::nullopt;
}

void print_list(const std::vector<Family>& families) {
  for (const Family& family : families) {
    for (const Row& row : family.rows) std::printf("%-50s %s\n", row.title().c_str(), row.file.c_str());
  }
}

// For who mistyped one.
std::string all_names(const std::vector<Family>& families) {
  std::string text, line;
  for (const Family& family : families) {
    for (std::size_t i = 0; i < family.rows.size(); ++i) {
      const std::string& name = family.rows[i].name;
      if (i > 0 && family.rows[i - 1].name == name) continue;
      if (line.size() + name.size() > 100) {
        text += line + '\n';
        line.clear();
      }
      line += (line.empty() ? "  " : " ") + name;
    }
  }
  return text + line;
}

// The rows of this name, or of this title; if there are none, those whose title begins so.
std::vector<Family> select(const std::vector<Family>& families, const std::vector<std::string>& names) {
  const auto is = [](const Row& row, const std::string& name) { return row.name == name || row.title() == name; };
  const auto begins = [](const Row& row, const std::string& name) { return row.title().starts_with(name); };
  const auto any = [&](const auto& matches, const std::string& name) {
    return std::any_of(families.begin(), families.end(), [&](const Family& family) {
      return std::any_of(family.rows.begin(), family.rows.end(), [&](const Row& row) { return matches(row, name); });
    });
  };
  std::vector<std::string> exact, prefixes;
  for (const std::string& name : names) {
    (any(is, name) ? exact : prefixes).push_back(name);
    check(any(begins, name), "there is no op or layer ", name);
  }
  std::vector<Family> selected;
  for (const Family& family : families) {
    Rows rows;
    std::copy_if(family.rows.begin(), family.rows.end(), std::back_inserter(rows), [&](const Row& row) {
      return std::any_of(exact.begin(), exact.end(), [&](const std::string& name) { return is(row, name); }) ||
             std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& name) { return begins(row, name); });
    });
    if (!rows.empty()) selected.push_back({family.title, rows});
  }
  return selected;
}

int run_all(const std::vector<Family>& families, const Options& o) {
  Table table(families, o.seed);
  for (const Family& family : families) {
    table.family(family.title);
    for (const Row& row : family.rows) {
      table.begin(row);
      table.end(row, run(row, o.seed));
    }
  }
  table.summary();
  if (!o.json.empty()) table.write_json(o.json);
  return table.all_passed() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (const std::optional<int> code = parse(argc, argv, o)) return *code;
  std::vector<Family> families = all_families();
  try {
    if (!o.sweep.empty()) o.only = {o.sweep};
    if (!o.only.empty()) families = select(families, o.only);
  } catch (const Error& error) {
    std::fprintf(stderr, "gradcheck: %s; there are:\n%s\n", error.what(), all_names(families).c_str());
    return 2;
  }
  try {
    if (o.list) {
      print_list(families);
      return 0;
    }
    if (!o.sweep.empty()) {
      const Row& row = families[0].rows[0];
      const std::vector<SweepPoint> points = sweep(row, o.seed);
      check(!points.empty(), row.title(), " has no derivative to be swept");
      print_sweep(row, points, GradcheckOptions().step);
      return 0;
    }
    return run_all(families, o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gradcheck: %s\n", error.what());
    return 2;
  }
}
