// Failures that dtype.h only names.
// May include: base.
// Invariant: dtype.h itself stays free of error.h, which includes it.
#include "base/error.h"

namespace clew {

void fail_promotion(DType a, DType b) {
  fail("promotion: uint64 and a signed integer type have no common type; got ", a, " and ", b,
       "; convert one of them first, e.g. with .to(clew.int64)");
}

}  // namespace clew
