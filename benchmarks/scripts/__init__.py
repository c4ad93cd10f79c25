"""Scripts that build and check worlds inside a store; only benchmarks run them, and only on stores of their own."""
