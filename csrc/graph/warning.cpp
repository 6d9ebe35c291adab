// Warnings that operations give.
// May include: graph.
// Invariant: an exception that a filter makes of a warning travels on as PythonError.
#include "graph/warning.h"

#include "graph/node.h"

namespace clew {

void warn(const std::string& text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
}

}  // namespace clew
