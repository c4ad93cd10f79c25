"""The documentation: links and tables are correct, and every block of code runs."""
