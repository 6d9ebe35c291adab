// Failures that dtype.h only names.
// May include: base.
// Invariant: dtype.h itself stays free of error.h, which includes it.
#include "base/error.h"

namespace clew {

void fail_promotion(DType a, DType b) {
  fail("promotion: uint64 and a signed integer type have no common type; got ", a, " and ", b,
       "; convert one of them first, e.g. with .to(clew.int64)");
}

void fail_complex_of(DType d) {
  fail("dtype: there are no complex numbers of two ", d, "; widen it first, e.g. to clew.float16");
}

void fail_stored(DType d) {
  fail(ErrorKind::NotImplemented, "this operation is not implemented for ", d,
       ", which is kept and converted, not computed with; convert the input first, e.g. with ",
       is_complex(d) ? ".to(clew.complex64)" : ".float()");
}

// float8 meets no other type, as in PyTorch; half complex numbers meet all but it.
DType promote_stored(DType a, DType b) {
  if (is_float8(a) || is_float8(b))
    fail("promotion: float8 types have no common type with others; got ", a, " and ", b,
         "; convert one of them first, e.g. with .to(clew.float32)");
  if (is_complex(a)) return a;
  return a <= DType::Float16 ? b : complex_of(a);
}

}  // namespace clew
