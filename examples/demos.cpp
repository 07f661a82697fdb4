// Short demonstrations of what norms, residuals, masks and their mistakes do, each with the numbers that must come out.

#include <cstdio>
#include <vector>

#include "chosen.h"
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
  return prenorm::show_chosen(
      argc, argv, "demos",
      "Shows what norms, residual connections and masks do, and what mistakes with them look like. Each\n"
      "number is compared with what must come out; exits with 1 if one differs.",
      "demonstration", "demonstrations", all_demos(), show);
}
