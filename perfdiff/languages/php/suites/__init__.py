"""Benchmarks and tests that PHP projects have: drivers in the project's PHP try them, and what they tell becomes a listing."""
