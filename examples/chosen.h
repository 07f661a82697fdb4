// The command line of a program that shows a list of things with names: all of them, or those that --only names.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "autograd/check.h"

namespace prenorm {

// Runs `show(chosen)` and gives back its exit code; 2 for what is wrong with the command line. Items have a name and a
// title. `one` and `several` are what an item is called: "fact", "facts".
template <class Item, class Show>
int show_chosen(int argc, char** argv, const char* program, const std::string& description, const std::string& one,
                const std::string& several, const std::vector<Item>& items, const Show& show) {
  std::vector<std::string> only;
  bool only_list = false;
  CLI::App app(description, program);
  app.get_formatter()->column_width(20);
  app.add_option("--only", only, "This " + one + " only; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--list", only_list, "List the " + several);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << program << ": " << error.what() << "; --help lists the options\n";
    return 2;
  }
  std::vector<Item> chosen = only.empty() ? items : std::vector<Item>{};
  for (const std::string& name : only) {
    const auto found =
        std::find_if(items.begin(), items.end(), [&name](const Item& item) { return item.name == name; });
    if (found == items.end()) {
      std::cerr << program << ": there is no " << one << " '" << name << "'; --list lists them\n";
      return 2;
    }
    chosen.push_back(*found);
  }
  int code = 0;
  try {
    if (only_list) {
      for (const Item& item : chosen) {
        std::printf("%-20.*s %.*s\n", static_cast<int>(item.name.size()), item.name.data(),
                    static_cast<int>(item.title.size()), item.title.data());
      }
    } else {
      code = show(chosen);
    }
    check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "the output cannot be written");
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::cerr << program << ": " << error.what() << '\n';
    return 1;
  }
  return code;
}

}  // namespace prenorm
