"""Rules for an export to ONNX that never happens: there are none."""
