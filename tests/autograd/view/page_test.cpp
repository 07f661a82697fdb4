#include "autograd/view/page.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "autograd/view/run_json.h"

namespace prenorm::view {
namespace {

std::string in_source_tree(const std::string& path) {
  std::ifstream file(std::filesystem::path(PRENORM_SOURCE_DIR) / path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("the page's files and the ops' sources are embedded as they are") {
  int ops = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PRENORM_SOURCE_DIR "/autograd/ops")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string path = "autograd/ops/" + entry.path().filename().string();
    CAPTURE(path);
    REQUIRE(embedded_file(path) != nullptr);
    CHECK(*embedded_file(path) == in_source_tree(path));
    ++ops;
  }
  CHECK(ops > 40);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PRENORM_SOURCE_DIR "/autograd/view/page")) {
    if (!entry.is_regular_file()) continue;
    const std::string path = std::filesystem::relative(entry.path(), PRENORM_SOURCE_DIR).string();
    CAPTURE(path);
    REQUIRE(embedded_file(path) != nullptr);
    CHECK(*embedded_file(path) == in_source_tree(path));
  }
  CHECK(embedded_file("autograd/ops/none.cpp") == nullptr);
}

TEST_CASE("the page holds all of it, once") {
  const std::string page = page_with(R"({"note":"@run@ /*@css@*/"})");
  CHECK(page.find(R"(<script type="application/json" id="run">{"note":"@run@ /*@css@*/"}</script>)") !=
        std::string::npos);
  CHECK(page.find("/*@css@*/") == page.rfind("/*@css@*/"));  // the record's own alone
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PRENORM_SOURCE_DIR "/autograd/view/page")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".html") continue;
    const std::string path = std::filesystem::relative(entry.path(), PRENORM_SOURCE_DIR).string();
    CAPTURE(path);
    CHECK(page.find(*embedded_file(path)) != std::string::npos);
  }
}

TEST_CASE("a backward is found in its source") {
  const std::string& source = *embedded_file("autograd/ops/embedding.cpp");  // holds two ops
  const auto text = [&](std::string_view op) {
    const LineRange lines = backward_lines(source, op);
    std::istringstream in(source);
    std::string out, line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      if (number >= lines.first && number <= lines.last) out += line + '\n';
    }
    return out;
  };
  CHECK(text("scatter_add").find("void backward(") != std::string::npos);
  CHECK(text("scatter_add").find("dx.add(1, embedding(input(0), dy[0]))") != std::string::npos);
  CHECK(text("embedding").find("scatter_into(out, input(0), dy[0]);") != std::string::npos);
  CHECK(text("embedding").find("struct") == std::string::npos);
  CHECK(backward_lines(source, "relu").first == 0);
}

TEST_CASE("each op of a run has its backward's lines") {
  Recording run;
  const Tensor x = randn64({2, 3}, 1), w = randn64({3, 3}, 2);
  sum(softmax(layer_norm(linear(x, w))) * gelu(x)).backward();
  const Json json = parse(run);
  for (const auto& item : json["ops"].items()) {
    const std::string& op = item.key();
    const Json& info = item.value();
    CAPTURE(op);
    REQUIRE(info["backward"].is_array());
    CHECK(info["backward"][0].get<int>() <= info["backward"][1].get<int>());
    CHECK(json["sources"].contains(info["file"].get<std::string>()));
    CHECK(!info["formula"].get<std::string>().empty());
  }
}

TEST_CASE("an op from outside the library has no source here") {
  Recording run;
  const Tensor x = randn64({2}, 1), w = randn64({2}, 2);
  sum(wrong_product(x, w, 1)).backward();
  const Json json = parse(run);
  CHECK(json["ops"]["wrong_product"]["backward"].is_null());
  CHECK(json["ops"]["wrong_product"]["file"] == "elsewhere/wrong_product.cpp");
  CHECK(!json["sources"].contains("elsewhere/wrong_product.cpp"));
}

}  // namespace
}  // namespace prenorm::view
