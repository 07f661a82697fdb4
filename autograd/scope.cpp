#include "autograd/scope.h"

#include <utility>

namespace prenorm {
namespace {

const std::shared_ptr<const std::string>& root() {
  static const auto empty = std::make_shared<const std::string>();
  return empty;
}
thread_local std::shared_ptr<const std::string> current = root();
thread_local Scope* innermost = nullptr;

}  // namespace

Scope::Scope(std::string_view name) : outer_(current), enclosing_(innermost) {
  innermost = this;
  if (name.empty()) return;
  std::string joined;
  joined.reserve(outer_->size() + 1 + name.size());
  joined.append(*outer_).append(outer_->empty() ? "" : ".").append(name);
  current = std::make_shared<const std::string>(std::move(joined));
}

Scope::~Scope() {
  current = std::move(outer_);
  innermost = enclosing_;
}

OuterScope::OuterScope() : inner_(current), innermost_(innermost) {
  if (innermost_ == nullptr) return;
  current = innermost_->outer_;
  innermost = innermost_->enclosing_;
}

OuterScope::~OuterScope() {
  current = std::move(inner_);
  innermost = innermost_;
}

std::shared_ptr<const std::string> Scope::path() { return current; }

}  // namespace prenorm
