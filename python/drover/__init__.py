"""Helpers around drover: builders of ONNX models, readers of its files."""
