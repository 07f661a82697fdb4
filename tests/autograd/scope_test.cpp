#include "autograd/scope.h"

#include <stdexcept>
#include <string>
#include <thread>

#include "support.h"

namespace prenorm {
namespace {

TEST_CASE("scopes nest into a dotted path and end with their blocks") {
  CHECK(*Scope::path() == "");
  {
    const Scope block("blocks.0");
    CHECK(*Scope::path() == "blocks.0");
    {
      const Scope attention("attn");
      CHECK(*Scope::path() == "blocks.0.attn");
      const Scope linear("qkv");
      CHECK(*Scope::path() == "blocks.0.attn.qkv");
    }
    CHECK(*Scope::path() == "blocks.0");
    const Scope other("ffn");
    CHECK(*Scope::path() == "blocks.0.ffn");
  }
  CHECK(*Scope::path() == "");
}

TEST_CASE("an empty name leaves the path as it is") {
  const Scope root("");
  CHECK(*Scope::path() == "");
  const Scope layer("head"), nameless("");
  CHECK(*Scope::path() == "head");
}

TEST_CASE("a path that was kept outlives its scope") {
  std::shared_ptr<const std::string> kept;
  {
    const Scope scope("tok");
    kept = Scope::path();
    CHECK(kept == Scope::path());  // shared, not copied
  }
  CHECK(*kept == "tok");
}

TEST_CASE("a scope ends when an exception leaves it") {
  try {
    const Scope outer("a"), inner("b");
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {
    CHECK(*Scope::path() == "");
  }
}

TEST_CASE("each thread has a path of its own") {
  const Scope scope("main");
  std::string there = "?";
  std::thread([&] {
    there = *Scope::path();
    const Scope other("worker");
    there += "," + *Scope::path();
  }).join();
  CHECK(there == ",worker");
  CHECK(*Scope::path() == "main");
}

TEST_CASE("an outer scope steps out of the innermost one for as long as it lasts") {
  const Scope caller("sublayer.0");
  {
    const Scope module("norm");
    {
      const OuterScope outer;
      CHECK(*Scope::path() == "sublayer.0");
      const Scope callee("attn");
      CHECK(*Scope::path() == "sublayer.0.attn");
      {
        const OuterScope again;
        CHECK(*Scope::path() == "sublayer.0");
        const OuterScope and_again;
        CHECK(*Scope::path() == "");
        const OuterScope outside_all;
        CHECK(*Scope::path() == "");
      }
      CHECK(*Scope::path() == "sublayer.0.attn");
    }
    CHECK(*Scope::path() == "sublayer.0.norm");
  }
  CHECK(*Scope::path() == "sublayer.0");
}

}  // namespace
}  // namespace prenorm
