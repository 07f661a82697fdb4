// Short demonstrations of what norms, residuals, masks and their mistakes do, each with the numbers that must come out.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "autograd/check.h"
#include "demos/report.h"

using namespace prenorm::demos;

namespace {

std::vector<Demo> all_demos() {
  std::vector<Demo> all;
  for (const auto& group : {norm_demos(), residual_demos(), model_demos(), mistake_demos(), precision_demos()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

void list(const std::vector<Demo>& demos) {
  for (const Demo& demo : demos) {
    std::printf("%-20.*s %.*s\n", static_cast<int>(demo.name.size()), demo.name.data(),
                static_cast<int>(demo.title.size()), demo.title.data());
  }
}

// 0: all numbers are as expected; 1: not so.
int show(const std::vector<Demo>& demos) {
  int compared = 0, different = 0;
  for (const Demo& demo : demos) {
    Report report;
    std::printf("%.*s: %.*s\n", static_cast<int>(demo.name.size()), demo.name.data(),
                static_cast<int>(demo.title.size()), demo.title.data());
    demo.show(report);
    std::printf("\n");
    compared += report.compared();
    different += report.different();
  }
  std::printf("%zu demonstrations, %d numbers: %d equal, %d different\n", demos.size(), compared, compared - different,
              different);
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Demo> demos = all_demos();
  std::vector<std::string> only;
  bool only_list = false;
  CLI::App app(
      "Shows what norms, residual connections and masks do, and what mistakes with them look like. Each\n"
      "number is compared with what must come out; exits with 1 if one differs.",
      "demos");
  app.get_formatter()->column_width(20);
  app.add_option("--only", only, "This demonstration only; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--list", only_list, "List the demonstrations");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "demos: " << error.what() << "; --help lists the options\n";
    return 2;
  }
  std::vector<Demo> chosen = only.empty() ? demos : std::vector<Demo>{};
  for (const std::string& name : only) {
    const auto found =
        std::find_if(demos.begin(), demos.end(), [&name](const Demo& demo) { return demo.name == name; });
    if (found == demos.end()) {
      std::cerr << "demos: there is no demonstration '" << name << "'; --list lists them\n";
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
    std::cerr << "demos: " << error.what() << '\n';
    return 1;
  }
  return code;
}
