// Warnings that operations give.
// May include: the standard library only.
// Invariant: where the program makes warnings errors, the operation does nothing.
#pragma once
#include <string>

namespace clew {

// A UserWarning at the line that called the operation.
void warn(const std::string& text);

}  // namespace clew
