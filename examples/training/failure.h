// What a program says of the exception that ends it.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace prenorm::training {

inline std::string failure(std::string_view program, const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return std::string(program) + ": " + (memory ? "the memory is used up" : error.what());
}

}  // namespace prenorm::training
