// What papers and algebra say of norms and residual connections, reproduced in small: each fact with its setting, the
// range that the number must lie in, and the number.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "autograd/check.h"
#include "facts/report.h"
#include "facts/stack.h"

using namespace prenorm::facts;

namespace {

std::vector<Fact> all_facts() {
  std::vector<Fact> all;
  for (const auto& group : {gradient_facts(), value_facts(), layer_norm_facts(), path_facts(), training_facts()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

int width(std::string_view text) { return static_cast<int>(text.size()); }

void list(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    std::printf("%-20.*s %.*s\n", width(fact.name), fact.name.data(), width(fact.title), fact.title.data());
  }
}

// 0: all numbers are inside their ranges; 1: not so.
int show(const std::vector<Fact>& facts) {
  int compared = 0, outside = 0;
  Report().paragraph("the stack", kStack);
  std::printf("\n");
  for (const Fact& fact : facts) {
    Report report;
    std::printf("%.*s: %.*s\n  source    %.*s\n", width(fact.name), fact.name.data(), width(fact.title),
                fact.title.data(), width(fact.source), fact.source.data());
    fact.show(report);
    std::printf("\n");
    compared += report.compared();
    outside += report.outside();
  }
  std::printf("%zu fact%s, %d numbers: %d inside their range, %d outside\n", facts.size(), facts.size() == 1 ? "" : "s",
              compared, compared - outside, outside);
  return outside == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Fact> facts = all_facts();
  std::vector<std::string> only;
  bool only_list = false;
  CLI::App app(
      "Reproduces what papers and algebra say of norms and residual connections: each fact with its\n"
      "source, its setting, and numbers beside the range they must lie in. Exits with 1 if one lies\n"
      "outside.",
      "facts");
  app.get_formatter()->column_width(20);
  app.add_option("--only", only, "This fact only; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--list", only_list, "List the facts");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "facts: " << error.what() << "; --help lists the options\n";
    return 2;
  }
  std::vector<Fact> chosen = only.empty() ? facts : std::vector<Fact>{};
  for (const std::string& name : only) {
    const auto found =
        std::find_if(facts.begin(), facts.end(), [&name](const Fact& fact) { return fact.name == name; });
    if (found == facts.end()) {
      std::cerr << "facts: there is no fact '" << name << "'; --list lists them\n";
      return 2;
    }
    chosen.push_back(*found);
  }
  int code = 0;
  try {
    if (only_list) {
      list(chosen);
    } else {
      code = show(chosen);
    }
    prenorm::check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "the output cannot be written");
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::cerr << "facts: " << error.what() << '\n';
    return 1;
  }
  return code;
}
